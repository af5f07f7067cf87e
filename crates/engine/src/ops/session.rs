//! `session` describes the caller's session with totals from the journal. `session` also begins and ends explicit
//! sessions, which continue after the process that began them has ended.

use serde::{Deserialize, Serialize};
use stead_path::RelPath;

use super::text_pages::shorten_for_error;
use crate::{
    call_context::CallContext,
    caller::CallerAccessMode,
    engine::ConversationSessionSwitch,
    errors::{Error, ErrorKind},
    next_step::NextStep,
    operation::{OperationPlanningResult, PathlessOperation, PlanResult},
    outcome::{OperationOutcome, RecordedEntryFields, UtcTime},
    quota::{self, QuotaReport},
    session_store::{SessionRecord, SessionStoreReply, SessionStoreWriteRequest, SessionTotalsQuery},
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionOperationArgs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<RequestedSessionAction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestedSessionAction {
    Show,
    Begin,
    End,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SessionOutcome {
    Shown(Box<SessionFields>),
    Begun(BegunSession),
    Ended(Box<SessionEndOutcome>),
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionFields {
    pub session: String,
    pub principal: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
    #[serde(rename = "face")]
    pub protocol: String,
    pub started: UtcTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<UtcTime>,
    pub seconds: i64,
    pub calls: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    #[serde(rename = "kept_bytes")]
    pub history_bytes: u64,
    #[serde(rename = "kept_bytes_max")]
    pub history_bytes_max: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaReport>,
    pub access: &'static str,
    pub readable: Vec<RelPath>,
    pub writable: Vec<RelPath>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct BegunSession {
    #[serde(flatten)]
    pub session: Option<NewSessionFields>,
    #[serde(flatten)]
    pub recorded: RecordedEntryFields,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct NewSessionFields {
    pub session: String,
    pub principal: String,
    #[serde(rename = "face")]
    pub protocol: String,
    pub started: UtcTime,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionEndOutcome {
    #[serde(flatten)]
    pub session: SessionFields,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<UtcTime>,
    #[serde(flatten)]
    pub recorded: RecordedEntryFields,
    /// Whether the ended session is the session of the caller.
    #[serde(skip)]
    pub is_own: bool,
}

impl OperationOutcome for SessionOutcome {
    fn session_switch(&self) -> Option<ConversationSessionSwitch> {
        match self {
            SessionOutcome::Shown(_) => None,
            SessionOutcome::Begun(begun) => {
                begun.session.as_ref().map(|new| ConversationSessionSwitch::Enter(new.session.clone()))
            }
            SessionOutcome::Ended(ended) => ended.is_own.then_some(ConversationSessionSwitch::Leave),
        }
    }
}

impl PathlessOperation for SessionOperationArgs {
    type Outcome = SessionOutcome;

    fn plan(&self, context: &CallContext<'_>) -> PlanResult<Self> {
        match (self.action.unwrap_or(RequestedSessionAction::Show), &self.id) {
            (RequestedSessionAction::Show, _) => self.plan_show(context),
            (RequestedSessionAction::Begin, None) => Ok(plan_begin()),
            (RequestedSessionAction::Begin, Some(_)) => {
                Err(Error::new(ErrorKind::BadRequest, "the id of a new session cannot be chosen")
                    .with_next_step(NextStep::repeat_without("id")))
            }
            (RequestedSessionAction::End, _) => self.plan_end(context),
        }
    }
}

impl SessionOperationArgs {
    fn find_session(&self, context: &CallContext<'_>) -> Result<Option<SessionRecord>, Error> {
        let id = self.id.as_deref().unwrap_or(&context.caller.session);
        let session = context
            .workspace()
            .session(id)?
            .filter(|session| context.caller.principal.may_see_items_of(&session.principal));
        match (&self.id, session) {
            (Some(id), None) => Err(unknown_session_error(id)),
            (_, session) => Ok(session),
        }
    }

    fn plan_show(&self, context: &CallContext<'_>) -> PlanResult<Self> {
        let fields = describe_session(context, self.find_session(context)?.as_ref())?;
        Ok(OperationPlanningResult::Read { outcome: SessionOutcome::Shown(Box::new(fields)), bytes: 0 })
    }

    fn plan_end(&self, context: &CallContext<'_>) -> PlanResult<Self> {
        let session = self.find_session(context)?.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "this call does not belong to a session that was started with begin")
                .with_next_step("pass the id that the call which began the session returned")
        })?;
        if session.ended_ms.is_some() {
            return Err(Error::new(ErrorKind::NothingToDo, format!("session {} has already ended", session.id))
                .with_next_step(NextStep::call(SessionOperationArgs::begin(), "start another one")));
        }
        let is_own = context.caller.session == session.id;
        let fields = describe_session(context, Some(&session))?;
        Ok(OperationPlanningResult::Session {
            request: SessionStoreWriteRequest::End { session_id: session.id },
            build_outcome: Box::new(move |reply, receipt| {
                let ended_ms = match reply {
                    SessionStoreReply::Session(session) => session.ended_ms,
                    SessionStoreReply::Alert(_) | SessionStoreReply::RecordedOnly => None,
                };
                let ended = ended_ms.map(|unix_ms| UtcTime { unix_ms });
                SessionOutcome::Ended(Box::new(SessionEndOutcome {
                    session: fields,
                    ended,
                    recorded: receipt.into(),
                    is_own,
                }))
            }),
        })
    }
}

fn plan_begin() -> OperationPlanningResult<SessionOutcome> {
    OperationPlanningResult::Session {
        request: SessionStoreWriteRequest::Begin,
        build_outcome: Box::new(|reply, receipt| {
            let session = match reply {
                SessionStoreReply::Session(session) => Some(NewSessionFields {
                    session: session.id.clone(),
                    principal: session.principal.clone(),
                    protocol: session.protocol.clone(),
                    started: UtcTime { unix_ms: session.created_ms },
                }),
                SessionStoreReply::Alert(_) | SessionStoreReply::RecordedOnly => None,
            };
            SessionOutcome::Begun(BegunSession { session, recorded: receipt.into() })
        }),
    }
}

/// Describes an explicit session, or the caller's implicit session if `session` is `None`.
fn describe_session(context: &CallContext<'_>, session: Option<&SessionRecord>) -> Result<SessionFields, Error> {
    let (workspace, caller) = (context.workspace(), context.caller);
    let id = session.map_or(&caller.session, |session| &session.id);
    let from_entry = session.map_or(caller.session_first_entry, |session| session.first_entry);
    let totals =
        workspace.session_totals(&SessionTotalsQuery { principal: &caller.principal, session: id, from_entry })?;
    let usage = workspace.storage_usage()?;
    let now_ms = workspace.now_ms();
    let first_ms = totals.first_call.map_or(now_ms, |(_, time_ms)| time_ms);
    let implicit_ms = if caller.session_started_ms > 0 { caller.session_started_ms } else { first_ms };
    let started_ms = session.map_or(implicit_ms, |session| session.created_ms);
    let ended_ms = session.and_then(|session| session.ended_ms);
    let (access, writable) = match caller.grants.access {
        CallerAccessMode::ReadWrite => ("read_write", caller.grants.writable.clone()),
        CallerAccessMode::ReadOnly => ("read_only", Vec::new()),
    };
    Ok(SessionFields {
        session: id.clone(),
        principal: caller.principal.to_string(),
        on_behalf_of: caller.on_behalf_of.as_ref().map(ToString::to_string),
        protocol: session.map_or(caller.protocol, |session| session.protocol.as_str()).to_owned(),
        started: UtcTime { unix_ms: started_ms },
        ended: ended_ms.map(|unix_ms| UtcTime { unix_ms }),
        seconds: ended_ms.unwrap_or(now_ms).saturating_sub(started_ms).max(0) / 1000,
        calls: totals.calls,
        bytes_read: totals.bytes_read,
        bytes_written: totals.bytes_written,
        history_bytes: usage.history_bytes,
        history_bytes_max: usage.history_bytes_max,
        quota: quota::report_quota(context, &caller.principal)?,
        access,
        readable: caller.grants.readable.clone(),
        writable,
        root: workspace.profile().root_spellings.first().cloned(),
    })
}

fn unknown_session_error(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("session {} does not exist", shorten_for_error(id)))
        .with_next_step(NextStep::call(SessionOperationArgs::begin(), "start one"))
}
