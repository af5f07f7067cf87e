//! `review`, `keep`, `reject` and `turn`: what a session changed, seen file by file and hunk by hunk against what was there
//! before it, and what a person makes of it. Everything is found from the journal and the kept bytes; only what was kept
//! as it is, is remembered beside it.
//!
//! A rejected hunk is an ordinary change. It takes away what the session put there and brings back what it took; lines
//! that somebody else wrote stay, saved or not.

mod blame;
mod hunk;
mod keep;
mod list;
mod reject;
mod traced;
mod tracks;
mod turn;

use serde::Deserialize;

pub use self::traced::Traced;
pub(crate) use self::{keep::Keep, list::Review, reject::Reject, turn::Turn};
use crate::{
    caller::Principal,
    failure::{Failure, Kind},
    limits,
    view::View,
    workspace::{EntryFilter, Order, Which},
};

/// Whose work is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Whose {
    principal: String,
    session: String,
}

/// From where on it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Since {
    /// The start of the session.
    #[default]
    Session,
    /// Its last turn.
    Turn,
}

impl Since {
    fn word(self) -> &'static str {
        match self {
            Since::Session => "session",
            Since::Turn => "turn",
        }
    }
}

/// The session that is meant: the one that is named, the caller's own, or for a person the one that changed something last.
fn whose(view: &View<'_>, principal: Option<&str>, session: Option<&str>) -> Result<Whose, Failure> {
    let own = view.caller.principal.to_string();
    let asked = principal.map(Principal::parse).transpose()?.map(|asked| asked.to_string());
    match &view.caller.principal {
        Principal::Agent(_) => {
            if asked.is_some_and(|asked| asked != own) {
                return Err(Failure::new(Kind::NotOwner, "you may see your own work")
                    .hint("leave author out; a person sees everybody's"));
            }
            let session = session.unwrap_or(&view.caller.session).to_owned();
            Ok(Whose { principal: own, session })
        }
        Principal::User(_) | Principal::System | Principal::Outside => {
            if let (Some(principal), Some(session)) = (&asked, session) {
                return Ok(Whose { principal: principal.clone(), session: session.to_owned() });
            }
            latest(view, asked.as_deref(), session)
        }
    }
}

/// The agent's session that changed something last, among those that fit.
fn latest(view: &View<'_>, principal: Option<&str>, session: Option<&str>) -> Result<Whose, Failure> {
    let filter = EntryFilter {
        principal: principal.map(str::to_owned),
        what: Which::Changes,
        order: Order::NewestFirst,
        limit: limits::ENTRIES_SCANNED_MAX,
        ..EntryFilter::default()
    };
    let found =
        view.workspace().entries(&filter)?.into_iter().map(|stored| stored.entry.caller).find(|caller| {
            let named = principal.is_some() || caller.principal.starts_with("agent:");
            named && session.is_none_or(|session| caller.session == session)
        });
    found.map(|caller| Whose { principal: caller.principal, session: caller.session }).ok_or_else(|| {
        Failure::new(Kind::NothingToDo, "no such session has changed anything")
            .hint("call history to see who changed what")
    })
}

/// Whether something stands is for a person to say.
fn refuse_agents(view: &View<'_>) -> Result<(), Failure> {
    match &view.caller.principal {
        Principal::User(_) => Ok(()),
        Principal::Agent(_) | Principal::System | Principal::Outside => {
            Err(Failure::new(Kind::PolicyDenied, "only a person keeps or rejects what was changed")
                .hint("call undo to take back your own entries"))
        }
    }
}
