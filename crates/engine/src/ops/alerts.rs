//! With `alert` an agent sends an alert to people; with `alerts` and `respond` a person lists and answers alerts. The
//! operation `events` delivers the answer to the agent.

use serde::Deserialize;
use serde_json::{Map, Value};
use stead_text::visible::escape_deceptive_line;

use super::outcome_builder::{OutcomeBuilder, format_iso_utc, shorten_for_error};
use crate::{
    call_context::CallContext,
    caller::Principal,
    engine::CallOutcome,
    errors::{Error, ErrorKind},
    limits,
    operation::{
        BuildSessionCallOutcomeFn, Operation, OperationPlanningResult, PlanResult, RequestedPaths, ResolvedTargets,
    },
    session_store::{AgentSentAlertAndResponse, AlertSeverity, SessionStoreReply, SessionStoreWriteRequest},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SendAlertArgs {
    message: String,
    severity: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListAlertsArgs {
    id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerAlertArgs {
    alert: String,
    text: String,
}

impl Operation for SendAlertArgs {
    type Resolved = ();
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, _paths: &mut RequestedPaths) -> Result<(), Error> {
        Ok(())
    }

    fn plan(&self, _context: &CallContext<'_>, (): (), _targets: &ResolvedTargets) -> PlanResult<Self> {
        let severity = match &self.severity {
            None => AlertSeverity::Info,
            Some(word) => word.parse().map_err(|error| Error::new(ErrorKind::BadRequest, format!("{error}")))?,
        };
        let message = validate_alert_text(&self.message, "message")?;
        Ok(OperationPlanningResult::Session {
            request: SessionStoreWriteRequest::SendAlert { severity, message },
            build_outcome: alert_outcome("sent"),
        })
    }
}

impl Operation for ListAlertsArgs {
    type Resolved = ();
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, _paths: &mut RequestedPaths) -> Result<(), Error> {
        Ok(())
    }

    fn plan(&self, context: &CallContext<'_>, (): (), _targets: &ResolvedTargets) -> PlanResult<Self> {
        let found = match &self.id {
            Some(id) => vec![find_visible_alert(context, id)?],
            None => {
                let sender = match &context.caller.principal {
                    Principal::User(_) | Principal::System | Principal::External => None,
                    agent @ Principal::Agent(_) => Some(agent),
                };
                context.workspace().alerts(sender, limits::ALERTS_LISTED_MAX)?
            }
        };
        let mut text: String = found.iter().map(render_alert_line).collect();
        if found.is_empty() {
            text.push_str("no alerts\n");
        }
        let truncated = found.len() == limits::ALERTS_LISTED_MAX;
        let listed: Vec<_> = found.iter().map(alert_json).collect();
        let outcome = OutcomeBuilder::new()
            .with_field("alerts", listed)
            .with_field("truncated", truncated)
            .build(text.trim_end());
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}

impl Operation for AnswerAlertArgs {
    type Resolved = ();
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, _paths: &mut RequestedPaths) -> Result<(), Error> {
        Ok(())
    }

    fn plan(&self, context: &CallContext<'_>, (): (), _targets: &ResolvedTargets) -> PlanResult<Self> {
        match &context.caller.principal {
            Principal::User(_) => {}
            Principal::Agent(_) | Principal::System | Principal::External => {
                return Err(Error::new(ErrorKind::NotOwner, "only a person can answer an alert")
                    .with_next_step("ask a person to run `stead alerts`"));
            }
        }
        let alert = find_visible_alert(context, &self.alert)?;
        if let Some(response) = &alert.response {
            let detail = format!("alert {} is already answered by {}", alert.id, response.responder);
            return Err(
                Error::new(ErrorKind::Exists, detail).with_next_step("call alerts with the id to read the answer")
            );
        }
        let text = validate_alert_text(&self.text, "text")?;
        Ok(OperationPlanningResult::Session {
            request: SessionStoreWriteRequest::AnswerAlert { alert_id: alert.id, text },
            build_outcome: alert_outcome("answered"),
        })
    }
}

fn find_visible_alert(context: &CallContext<'_>, id: &str) -> Result<AgentSentAlertAndResponse, Error> {
    let found = context.workspace().alert(id)?.filter(|alert| match &context.caller.principal {
        Principal::User(_) | Principal::System | Principal::External => true,
        agent @ Principal::Agent(_) => alert.sender == agent.to_string(),
    });
    found.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("alert {} does not exist", shorten_for_error(id)))
            .with_next_step("call alerts to list the alerts")
    })
}

fn validate_alert_text(text: &str, name: &str) -> Result<String, Error> {
    if text.trim().is_empty() {
        return Err(Error::new(ErrorKind::BadRequest, format!("the {name} is empty"))
            .with_next_step(format!("pass a {name} of 1 to {} characters", limits::ALERT_CHARS_MAX)));
    }
    if text.chars().count() > limits::ALERT_CHARS_MAX {
        let detail = format!("the {name} is longer than {} characters", limits::ALERT_CHARS_MAX);
        return Err(Error::new(ErrorKind::TooLarge, detail).with_next_step(format!("shorten the {name}")));
    }
    Ok(text.to_owned())
}

fn alert_outcome(verb: &'static str) -> BuildSessionCallOutcomeFn {
    Box::new(move |reply, receipt| match reply {
        SessionStoreReply::Alert(alert) => {
            let text = format!("{verb} alert {}", alert.id);
            OutcomeBuilder::new().with_fields(alert_json(alert)).with_receipt(receipt).build_one_line(text)
        }
        SessionStoreReply::Session(_) | SessionStoreReply::RecordedOnly => {
            OutcomeBuilder::new().with_receipt(receipt).build_one_line("no alert")
        }
    })
}

fn alert_json(alert: &AgentSentAlertAndResponse) -> Map<String, Value> {
    let response = alert.response.as_ref();
    OutcomeBuilder::new()
        .with_field("alert", alert.id.clone())
        .with_field("from", alert.sender.clone())
        .with_field("session", alert.session.clone())
        .with_field("severity", alert.severity.as_str())
        .with_field("message", alert.message.clone())
        .with_field("time", format_iso_utc(alert.time_ms))
        .with_field("state", if response.is_some() { "answered" } else { "open" })
        .with_some("answer", response.map(|response| response.text.clone()))
        .with_some("answered_by", response.map(|response| response.responder.clone()))
        .with_some("answered", response.map(|response| format_iso_utc(response.time_ms)))
        .into_json()
}

fn render_alert_line(alert: &AgentSentAlertAndResponse) -> String {
    let (id, from, severity) = (&alert.id, &alert.sender, alert.severity);
    let mut line = format!(
        "{id}  {}  {from}  {severity}  {}\n",
        format_iso_utc(alert.time_ms),
        escape_deceptive_line(&alert.message)
    );
    if let Some(response) = &alert.response {
        line.push_str(&format!("  answered by {}: {}\n", response.responder, escape_deceptive_line(&response.text)));
    }
    line
}
