//! `review`, `keep`, `reject` and `turn`: shows the changes of a session by file and hunk, and lets a person accept
//! or reject them. Changes are derived from the journal and the stored versions; only accepted texts are stored in
//! addition.
//!
//! Rejecting a hunk is an ordinary change: it reverts the lines of the session and keeps lines that others wrote,
//! saved or not.

mod attributed_text;
mod blame;
mod hunks;
mod keep;
mod list;
mod reject;
mod session_changes;
mod turn;

use serde::Deserialize;

pub use self::attributed_text::AttributedText;
pub(crate) use self::{keep::KeepArgs, list::ReviewArgs, reject::RejectArgs, turn::TurnArgs};
use crate::{
    call_context::CallContext,
    caller::Principal,
    errors::{Error, ErrorKind},
    limits,
    workspace::{JournalEntryOrder, JournalEntryQuery, JournalEntrySelection},
};

#[derive(Debug, Clone, PartialEq, Eq)]
struct ReviewedSession {
    principal: String,
    session: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReviewStart {
    #[default]
    Session,
    Turn,
}

impl ReviewStart {
    fn as_str(self) -> &'static str {
        match self {
            ReviewStart::Session => "session",
            ReviewStart::Turn => "turn",
        }
    }
}

/// The given session, the caller's own, or for a person the session with the latest change.
fn resolve_session(
    context: &CallContext<'_>,
    principal: Option<&str>,
    session: Option<&str>,
) -> Result<ReviewedSession, Error> {
    let own = context.caller.principal.to_string();
    let requested = principal.map(Principal::parse).transpose()?.map(|requested| requested.to_string());
    match &context.caller.principal {
        Principal::Agent(_) => {
            if requested.is_some_and(|requested| requested != own) {
                return Err(Error::new(ErrorKind::NotOwner, "you can only review your own changes")
                    .with_next_step("omit author; only a person can review the changes of others"));
            }
            let session = session.unwrap_or(&context.caller.session).to_owned();
            Ok(ReviewedSession { principal: own, session })
        }
        Principal::User(_) | Principal::System | Principal::External => {
            if let (Some(principal), Some(session)) = (&requested, session) {
                return Ok(ReviewedSession { principal: principal.clone(), session: session.to_owned() });
            }
            latest_session(context, requested.as_deref(), session)
        }
    }
}

/// The agent session with the latest change, among those that match.
fn latest_session(
    context: &CallContext<'_>,
    principal: Option<&str>,
    session: Option<&str>,
) -> Result<ReviewedSession, Error> {
    let filter = JournalEntryQuery {
        principal: principal.map(str::to_owned),
        selection: JournalEntrySelection::WithChanges,
        order: JournalEntryOrder::NewestFirst,
        limit: limits::ENTRIES_SCANNED_MAX,
        ..JournalEntryQuery::default()
    };
    let found = context.workspace().entries(&filter)?.into_iter().map(|stored| stored.entry.caller).find(|caller| {
        let named = principal.is_some() || caller.principal.starts_with("agent:");
        named && session.is_none_or(|session| caller.session == session)
    });
    found.map(|caller| ReviewedSession { principal: caller.principal, session: caller.session }).ok_or_else(|| {
        Error::new(ErrorKind::NothingToDo, "no agent session has changes to review")
            .with_next_step("call history to see who changed what")
    })
}

fn require_person(context: &CallContext<'_>) -> Result<(), Error> {
    match &context.caller.principal {
        Principal::User(_) => Ok(()),
        Principal::Agent(_) | Principal::System | Principal::External => {
            Err(Error::new(ErrorKind::PolicyDenied, "only a person can keep or reject changes")
                .with_next_step("call undo to revert your own entries"))
        }
    }
}
