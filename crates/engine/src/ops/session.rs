//! `session` describes the caller's session with totals from the journal. `session` also begins and ends explicit
//! sessions, which continue after the process that began them has ended.

use serde::Deserialize;
use serde_json::{Map, Value};
use stead_path::RelPath;

use super::outcome_builder::{OutcomeBuilder, format_iso_utc, shorten_for_error};
use crate::{
    call_context::CallContext,
    caller::{CallerAccessMode, Principal},
    engine::{CallOutcome, SessionForLaterCalls},
    errors::{Error, ErrorKind},
    operation::{Operation, OperationPlanningResult, PlanResult, RequestedPaths, ResolvedTargets},
    outcome::to_json_object,
    quota,
    session_store::{SessionRecord, SessionStoreReply, SessionStoreWriteRequest, SessionTotalsQuery},
    workspace::CommitReceipt,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionOperationArgs {
    action: Option<RequestedSessionAction>,
    id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RequestedSessionAction {
    Show,
    Begin,
    End,
}

impl Operation for SessionOperationArgs {
    type Resolved = ();
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, _paths: &mut RequestedPaths) -> Result<(), Error> {
        Ok(())
    }

    fn plan(&self, context: &CallContext<'_>, (): (), _targets: &ResolvedTargets) -> PlanResult<Self> {
        match (self.action.unwrap_or(RequestedSessionAction::Show), &self.id) {
            (RequestedSessionAction::Show, _) => {
                let fields = self.session_fields(context)?;
                let text = describe_session(&fields);
                Ok(OperationPlanningResult::Read { outcome: fields.build_one_line(text), bytes: 0 })
            }
            (RequestedSessionAction::Begin, None) => Ok(plan_begin()),
            (RequestedSessionAction::Begin, Some(_)) => {
                Err(Error::new(ErrorKind::BadRequest, "the id of a new session cannot be chosen")
                    .with_next_step("omit id; the result has the id of the new session"))
            }
            (RequestedSessionAction::End, _) => self.plan_end(context),
        }
    }
}

impl SessionOperationArgs {
    fn session_fields(&self, context: &CallContext<'_>) -> Result<OutcomeBuilder, Error> {
        let caller = context.caller;
        let id = self.id.as_deref().unwrap_or(&caller.session);
        let session = context.workspace().session(id)?.filter(|session| may_see_session(context, session));
        if let (Some(id), None) = (&self.id, &session) {
            return Err(unknown_session_error(id));
        }
        let query = SessionTotalsQuery {
            principal: &caller.principal,
            session: id,
            from_entry: session.as_ref().map_or(caller.session_first_entry, |session| session.first_entry),
        };
        let totals = context.workspace().session_totals(&query)?;
        let usage = context.workspace().storage_usage()?;
        let now_ms = context.workspace().now_ms();
        let first_ms = totals.first_call.map_or(now_ms, |(_, time_ms)| time_ms);
        let implicit_ms = if caller.session_started_ms > 0 { caller.session_started_ms } else { first_ms };
        let started_ms = session.as_ref().map_or(implicit_ms, |session| session.created_ms);
        let ended_ms = session.as_ref().and_then(|session| session.ended_ms);
        let seconds = ended_ms.unwrap_or(now_ms).saturating_sub(started_ms).max(0) / 1000;
        Ok(OutcomeBuilder::new()
            .with_field("session", id)
            .with_field("principal", caller.principal.to_string())
            .with_some("on_behalf_of", caller.on_behalf_of.as_ref().map(ToString::to_string))
            .with_field("face", session.as_ref().map_or(caller.protocol, |session| session.protocol.as_str()))
            .with_field("started", format_iso_utc(started_ms))
            .with_some("ended", ended_ms.map(format_iso_utc))
            .with_field("seconds", seconds)
            .with_field("calls", totals.calls)
            .with_field("bytes_read", totals.bytes_read)
            .with_field("bytes_written", totals.bytes_written)
            .with_field("kept_bytes", usage.history_bytes)
            .with_field("kept_bytes_max", usage.history_bytes_max)
            .with_some("quota", quota::report_quota(context, &caller.principal)?.map(|quota| to_json_object(&quota)))
            .with_fields(scope_json(context)))
    }

    fn plan_end(&self, context: &CallContext<'_>) -> Result<OperationPlanningResult, Error> {
        let id = self.id.as_deref().unwrap_or(&context.caller.session);
        let session = context.workspace().session(id)?.filter(|session| may_see_session(context, session));
        let session = session.ok_or_else(|| match &self.id {
            Some(id) => unknown_session_error(id),
            None => {
                Error::new(ErrorKind::NotFound, "this call does not belong to a session that was started with begin")
                    .with_next_step("pass the id that session with action begin returned")
            }
        })?;
        if session.ended_ms.is_some() {
            return Err(Error::new(ErrorKind::NothingToDo, format!("session {id} has already ended"))
                .with_next_step("call session with action begin to start another one"));
        }
        let ends_own = context.caller.session == session.id;
        let fields = SessionOperationArgs { action: None, id: Some(session.id.clone()) }.session_fields(context)?;
        let build_outcome = move |reply: &SessionStoreReply, receipt: &CommitReceipt| {
            let ended_ms = match reply {
                SessionStoreReply::Session(session) => session.ended_ms,
                SessionStoreReply::Alert(_) | SessionStoreReply::RecordedOnly => None,
            };
            let text = format!("ended session {}", session.id);
            let fields = fields.with_some("ended", ended_ms.map(format_iso_utc)).with_receipt(receipt);
            let mut outcome = fields.build_one_line(text);
            outcome.session_switch = ends_own.then_some(SessionForLaterCalls::Leave);
            outcome
        };
        Ok(OperationPlanningResult::Session {
            request: SessionStoreWriteRequest::End { session_id: id.to_owned() },
            build_outcome: Box::new(build_outcome),
        })
    }
}

fn plan_begin() -> OperationPlanningResult {
    let build_outcome = |reply: &SessionStoreReply, receipt: &CommitReceipt| match reply {
        SessionStoreReply::Session(session) => {
            let text = format!("began session {}", session.id);
            let mut outcome = OutcomeBuilder::new()
                .with_field("session", session.id.clone())
                .with_field("principal", session.principal.clone())
                .with_field("face", session.protocol.clone())
                .with_field("started", format_iso_utc(session.created_ms))
                .with_receipt(receipt)
                .build_one_line(text);
            outcome.session_switch = Some(SessionForLaterCalls::Enter(session.id.clone()));
            outcome
        }
        SessionStoreReply::Alert(_) | SessionStoreReply::RecordedOnly => {
            OutcomeBuilder::new().with_receipt(receipt).build_one_line("no session")
        }
    };
    OperationPlanningResult::Session {
        request: SessionStoreWriteRequest::Begin,
        build_outcome: Box::new(build_outcome),
    }
}

/// An agent sees only its own sessions; a person sees all sessions.
fn may_see_session(context: &CallContext<'_>, session: &SessionRecord) -> bool {
    match &context.caller.principal {
        Principal::User(_) | Principal::System | Principal::External => true,
        agent @ Principal::Agent(_) => session.principal == agent.to_string(),
    }
}

fn unknown_session_error(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("session {} does not exist", shorten_for_error(id)))
        .with_next_step("call session with action begin to start one")
}

fn scope_json(context: &CallContext<'_>) -> Map<String, Value> {
    let grants = &context.caller.grants;
    let (access, writable) = match grants.access {
        CallerAccessMode::ReadWrite => ("read_write", grants.writable.as_slice()),
        CallerAccessMode::ReadOnly => ("read_only", &[][..]),
    };
    let wires = |paths: &[RelPath]| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
    OutcomeBuilder::new()
        .with_field("access", access)
        .with_field("readable", wires(&grants.readable))
        .with_field("writable", wires(writable))
        .with_some("root", context.workspace().profile().root_spellings.first().cloned())
        .into_json()
}

fn describe_session(fields: &OutcomeBuilder) -> String {
    let text = |name: &str| match fields.field(name) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    };
    let list = |name: &str| {
        let paths: Vec<&str> =
            fields.field(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        if paths.is_empty() { "nothing".to_owned() } else { paths.join(", ") }
    };
    format!(
        "session {} of {}, {} calls so far; may read {} and change {}",
        text("session"),
        text("principal"),
        text("calls"),
        list("readable"),
        list("writable")
    )
}
