//! With `alert` an agent sends an alert to people; with `alerts` and `respond` a person lists and answers alerts. The
//! operation `events` delivers a person's answer to the agent that sent the alert.

use serde::{Deserialize, Serialize};

use super::text_pages::shorten_for_error;
use crate::{
    call_context::CallContext,
    caller::Principal,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{BuildSessionCallOutcomeFn, OperationPlanningResult, PathlessOperation, PlanResult},
    outcome::{Completeness, OperationOutcome, RecordedEntryFields, UtcTime},
    session_store::{AgentSentAlertAndResponse, AlertSeverity, SessionStoreReply, SessionStoreWriteRequest},
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendAlertArgs {
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["info", "warning", "critical"]))]
    pub severity: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListAlertsArgs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerAlertArgs {
    pub alert: String,
    pub text: String,
}

impl PathlessOperation for SendAlertArgs {
    type Outcome = AlertOutcome;

    fn plan(&self, _context: &CallContext<'_>) -> PlanResult<Self> {
        let severity = match &self.severity {
            None => AlertSeverity::Info,
            Some(word) => word.parse().map_err(|error| Error::new(ErrorKind::BadRequest, format!("{error}")))?,
        };
        let message = validate_alert_text(&self.message, "message")?;
        Ok(OperationPlanningResult::Session {
            request: SessionStoreWriteRequest::SendAlert { severity, message },
            build_outcome: build_alert_outcome(SentOrAnsweredAlert::Sent),
        })
    }
}

impl PathlessOperation for ListAlertsArgs {
    type Outcome = ListAlertsOutcome;

    fn plan(&self, context: &CallContext<'_>) -> PlanResult<Self> {
        let found = match &self.id {
            Some(id) => vec![find_visible_alert(context, id)?],
            None => {
                context.workspace().alerts(context.caller.principal.only_visible_owner(), limits::ALERTS_LISTED_MAX)?
            }
        };
        let completeness = match found.len() {
            limits::ALERTS_LISTED_MAX => Completeness::narrowed_by("id", "ALERTS_LISTED_MAX"),
            _ => Completeness::Complete,
        };
        let outcome = ListAlertsOutcome { alerts: found.iter().map(AlertFields::from).collect(), completeness };
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}

impl PathlessOperation for AnswerAlertArgs {
    type Outcome = AlertOutcome;

    fn plan(&self, context: &CallContext<'_>) -> PlanResult<Self> {
        match &context.caller.principal {
            Principal::User(_) => {}
            Principal::Agent(_) | Principal::System | Principal::External => {
                return Err(Error::new(ErrorKind::NotOwner, "only a person can answer an alert")
                    .with_next_step(NextStep::person_command("alerts list", "answer it")));
            }
        }
        let alert = find_visible_alert(context, &self.alert)?;
        if let Some(response) = &alert.response {
            let detail = format!("alert {} is already answered by {}", alert.id, response.responder);
            return Err(Error::new(ErrorKind::Exists, detail)
                .with_next_step(NextStep::call(ListAlertsArgs { id: Some(alert.id.clone()) }, "read the answer")));
        }
        let text = validate_alert_text(&self.text, "text")?;
        Ok(OperationPlanningResult::Session {
            request: SessionStoreWriteRequest::AnswerAlert { alert_id: alert.id, text },
            build_outcome: build_alert_outcome(SentOrAnsweredAlert::Answered),
        })
    }
}

fn find_visible_alert(context: &CallContext<'_>, id: &str) -> Result<AgentSentAlertAndResponse, Error> {
    let found = context.workspace().alert(id)?;
    let found = found.filter(|alert| context.caller.principal.may_see_items_of(&alert.sender));
    found.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("alert {} does not exist", shorten_for_error(id)))
            .with_next_step(NextStep::call(ListAlertsArgs::default(), "list the alerts"))
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

#[derive(Debug, Serialize, JsonSchema)]
pub struct AlertFields {
    pub alert: String,
    pub from: String,
    pub session: String,
    pub severity: &'static str,
    pub message: String,
    pub time: UtcTime,
    pub state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered: Option<UtcTime>,
}

impl From<&AgentSentAlertAndResponse> for AlertFields {
    fn from(alert: &AgentSentAlertAndResponse) -> Self {
        let response = alert.response.as_ref();
        Self {
            alert: alert.id.clone(),
            from: alert.sender.clone(),
            session: alert.session.clone(),
            severity: alert.severity.as_str(),
            message: alert.message.clone(),
            time: UtcTime { unix_ms: alert.time_ms },
            state: if response.is_some() { "answered" } else { "open" },
            answer: response.map(|response| response.text.clone()),
            answered_by: response.map(|response| response.responder.clone()),
            answered: response.map(|response| UtcTime { unix_ms: response.time_ms }),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ListAlertsOutcome {
    pub alerts: Vec<AlertFields>,
    #[serde(flatten)]
    pub completeness: Completeness<ListAlertsArgs>,
}

impl OperationOutcome for ListAlertsOutcome {}

#[derive(Debug, Serialize, JsonSchema)]
pub struct AlertOutcome {
    #[serde(flatten)]
    pub alert: Option<AlertFields>,
    #[serde(flatten)]
    pub recorded: RecordedEntryFields,
    #[serde(skip)]
    pub change: SentOrAnsweredAlert,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentOrAnsweredAlert {
    Sent,
    Answered,
}

impl OperationOutcome for AlertOutcome {}

fn build_alert_outcome(change: SentOrAnsweredAlert) -> BuildSessionCallOutcomeFn<AlertOutcome> {
    Box::new(move |reply, receipt| {
        let alert = match reply {
            SessionStoreReply::Alert(alert) => Some(AlertFields::from(alert)),
            SessionStoreReply::Session(_) | SessionStoreReply::RecordedOnly => None,
        };
        AlertOutcome { alert, recorded: receipt.into(), change }
    })
}
