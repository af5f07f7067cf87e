//! `alert`, `alerts` and `respond`: an agent tells people something, people see it, and one of them answers. The answer
//! reaches the agent with its `events`. Reaches no file.

use serde::Deserialize;
use serde_json::{Map, Value};
use text::visible::visible_line;

use super::answer::{Facts, excerpt, iso_utc};
use crate::{
    caller::Principal,
    desk::{Alert as Sent, DeskAsk, Desked, Severity},
    failure::{Failure, Kind},
    limits,
    operation::{Ask, FinishKept, Operation, Planned, Target},
    view::View,
};

/// The arguments of `alert`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Alert {
    message: String,
    severity: Option<String>,
}

/// The arguments of `alerts`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Alerts {
    id: Option<String>,
}

/// The arguments of `respond`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Respond {
    alert: String,
    text: String,
}

impl Operation for Alert {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(Vec::new())
    }

    fn plan(&self, _view: &View<'_>, _targets: &[Target]) -> Result<Planned, Failure> {
        let severity = match &self.severity {
            None => Severity::Info,
            Some(word) => word.parse().map_err(|error| Failure::new(Kind::BadRequest, format!("{error}")))?,
        };
        let message = said(&self.message, "message")?;
        Ok(Planned::Keep { ask: DeskAsk::Alert { severity, message }, finish: told("sent") })
    }
}

impl Operation for Alerts {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(Vec::new())
    }

    fn plan(&self, view: &View<'_>, _targets: &[Target]) -> Result<Planned, Failure> {
        let found = match &self.id {
            Some(id) => vec![one(view, id)?],
            None => {
                let from = match &view.caller.principal {
                    Principal::User(_) | Principal::System | Principal::Outside => None,
                    agent @ Principal::Agent(_) => Some(agent),
                };
                view.workspace().alerts(from, limits::ALERTS_LISTED_MAX)?
            }
        };
        let mut text = String::new();
        for alert in &found {
            text.push_str(&line(alert));
        }
        if found.is_empty() {
            text.push_str("no alerts\n");
        }
        let truncated = found.len() == limits::ALERTS_LISTED_MAX;
        let listed: Vec<Value> = found.iter().map(|alert| Value::Object(object(alert))).collect();
        let answer = Facts::new().with("alerts", listed).with("truncated", truncated).answer(text.trim_end());
        Ok(Planned::Read { answer, bytes: 0 })
    }
}

impl Operation for Respond {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(Vec::new())
    }

    fn plan(&self, view: &View<'_>, _targets: &[Target]) -> Result<Planned, Failure> {
        match &view.caller.principal {
            Principal::User(_) => {}
            Principal::Agent(_) | Principal::System | Principal::Outside => {
                return Err(Failure::new(Kind::NotOwner, "only a person answers an alert"));
            }
        }
        let alert = one(view, &self.alert)?;
        if let Some(answer) = &alert.answer {
            return Err(Failure::new(Kind::Exists, format!("{} was answered by {}", alert.id, answer.by)));
        }
        let text = said(&self.text, "text")?;
        Ok(Planned::Keep { ask: DeskAsk::Answer { alert: alert.id, text }, finish: told("answered") })
    }
}

/// An alert that this caller may see.
fn one(view: &View<'_>, id: &str) -> Result<Sent, Failure> {
    let found = view.workspace().alert(id)?.filter(|alert| match &view.caller.principal {
        Principal::User(_) | Principal::System | Principal::Outside => true,
        agent @ Principal::Agent(_) => alert.from == agent.to_string(),
    });
    found.ok_or_else(|| {
        Failure::new(Kind::NotFound, format!("there is no alert {}", excerpt(id)))
            .hint("call alerts to see which there are")
    })
}

/// A text that is there and not too long.
fn said(text: &str, name: &str) -> Result<String, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::new(Kind::BadRequest, format!("the {name} is empty")));
    }
    if text.chars().count() > limits::ALERT_CHARS_MAX {
        let detail = format!("the {name} is longer than {} characters", limits::ALERT_CHARS_MAX);
        return Err(Failure::new(Kind::TooLarge, detail).hint("say it in fewer words"));
    }
    Ok(text.to_owned())
}

fn told(verb: &'static str) -> FinishKept {
    Box::new(move |kept, committed| match kept {
        Desked::Alert(alert) => {
            let text = format!("{verb} alert {}", alert.id);
            Facts::new().extended(object(alert)).committed(committed).line(text)
        }
        Desked::Session(_) | Desked::Noted => Facts::new().committed(committed).line("no alert"),
    })
}

fn object(alert: &Sent) -> Map<String, Value> {
    let answer = alert.answer.as_ref();
    Facts::new()
        .with("alert", alert.id.clone())
        .with("from", alert.from.clone())
        .with("session", alert.session.clone())
        .with("severity", alert.severity.word())
        .with("message", alert.message.clone())
        .with("time", iso_utc(alert.time_ms))
        .with("state", if answer.is_some() { "answered" } else { "open" })
        .maybe("answer", answer.map(|answer| answer.text.clone()))
        .maybe("answered_by", answer.map(|answer| answer.by.clone()))
        .maybe("answered", answer.map(|answer| iso_utc(answer.time_ms)))
        .object()
}

fn line(alert: &Sent) -> String {
    let (id, from, severity) = (&alert.id, &alert.from, alert.severity);
    let mut line =
        format!("{id}  {}  {from}  {severity}  {}\n", iso_utc(alert.time_ms), visible_line(&alert.message));
    if let Some(answer) = &alert.answer {
        line.push_str(&format!("  answered by {}: {}\n", answer.by, visible_line(&answer.text)));
    }
    line
}
