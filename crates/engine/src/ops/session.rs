//! `session`: what the caller's conversation is and did, counted from the journal; and beginning or ending one in so many
//! words, so that it outlives the process that carries it. Reaches no file.

use serde::Deserialize;
use serde_json::Value;

use super::answer::{Facts, excerpt, iso_utc};
use crate::{
    caller::{Access, Principal},
    desk::{DeskAsk, Desked, Session as Begun, TallyOf},
    engine::Switch,
    failure::{Failure, Kind},
    operation::{Ask, Operation, Planned, Target},
    quota,
    view::View,
};

/// The arguments of `session`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Session {
    action: Option<Action>,
    id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Show,
    Begin,
    End,
}

impl Operation for Session {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(Vec::new())
    }

    fn plan(&self, view: &View<'_>, _targets: &[Target]) -> Result<Planned, Failure> {
        match (self.action.unwrap_or(Action::Show), &self.id) {
            (Action::Show, _) => {
                let answer = self.shown(view)?;
                let text = format!("session {}", text(&answer, "session"));
                Ok(Planned::Read { answer: answer.line(text), bytes: 0 })
            }
            (Action::Begin, None) => Ok(begin()),
            (Action::Begin, Some(_)) => {
                Err(Failure::new(Kind::BadRequest, "a new session gets its id itself").hint("leave id out"))
            }
            (Action::End, _) => self.end(view),
        }
    }
}

impl Session {
    /// What is known of the session meant.
    fn shown(&self, view: &View<'_>) -> Result<Facts, Failure> {
        let caller = view.caller;
        let named = self.id.as_deref().unwrap_or(&caller.session);
        let begun = view.workspace().session(named)?.filter(|begun| may_see(view, begun));
        if let (Some(id), None) = (&self.id, &begun) {
            return Err(unknown(id));
        }
        let of = TallyOf {
            principal: &caller.principal,
            session: named,
            from_entry: begun.as_ref().map_or(caller.since_entry, |begun| begun.first),
        };
        let tally = view.workspace().tally(&of)?;
        let usage = view.workspace().usage()?;
        let now_ms = view.workspace().now_ms();
        let first_ms = tally.first.map_or(now_ms, |(_, time_ms)| time_ms);
        let implicit_ms = if caller.since_ms > 0 { caller.since_ms } else { first_ms };
        let started_ms = begun.as_ref().map_or(implicit_ms, |begun| begun.created_ms);
        let ended_ms = begun.as_ref().and_then(|begun| begun.ended_ms);
        let seconds = ended_ms.unwrap_or(now_ms).saturating_sub(started_ms).max(0) / 1000;
        Ok(Facts::new()
            .with("session", named)
            .with("principal", caller.principal.to_string())
            .maybe("on_behalf_of", caller.on_behalf_of.as_ref().map(ToString::to_string))
            .with("face", begun.as_ref().map_or(caller.face, |begun| begun.face.as_str()))
            .with("started", iso_utc(started_ms))
            .maybe("ended", ended_ms.map(iso_utc))
            .with("seconds", seconds)
            .with("calls", tally.calls)
            .with("bytes_read", tally.bytes_read)
            .with("bytes_written", tally.bytes_written)
            .with("kept_bytes", usage.kept_bytes)
            .with("kept_bytes_max", usage.kept_bytes_max)
            .maybe("quota", quota::told(view, &caller.principal)?)
            .extended(scope(view)))
    }

    fn end(&self, view: &View<'_>) -> Result<Planned, Failure> {
        let named = self.id.as_deref().unwrap_or(&view.caller.session);
        let begun = view.workspace().session(named)?.filter(|begun| may_see(view, begun));
        let begun = begun.ok_or_else(|| unknown(named))?;
        if begun.ended_ms.is_some() {
            return Err(Failure::new(Kind::NothingToDo, format!("session {named} has ended already")));
        }
        let own = view.caller.session == begun.id;
        let facts = Session { action: None, id: Some(begun.id.clone()) }.shown(view)?;
        let finish = move |kept: &Desked, committed: &crate::workspace::Committed| {
            let ended_ms = match kept {
                Desked::Session(session) => session.ended_ms,
                Desked::Alert(_) | Desked::Noted => None,
            };
            let text = format!("ended session {}", begun.id);
            let facts = facts.maybe("ended", ended_ms.map(iso_utc)).committed(committed);
            let mut answer = facts.line(text);
            answer.switch = own.then_some(Switch::Back);
            answer
        };
        Ok(Planned::Keep { ask: DeskAsk::End { session: named.to_owned() }, finish: Box::new(finish) })
    }
}

fn begin() -> Planned {
    let finish = |kept: &Desked, committed: &crate::workspace::Committed| match kept {
        Desked::Session(session) => {
            let text = format!("began session {}", session.id);
            let mut answer = Facts::new()
                .with("session", session.id.clone())
                .with("principal", session.principal.clone())
                .with("face", session.face.clone())
                .with("started", iso_utc(session.created_ms))
                .committed(committed)
                .line(text);
            answer.switch = Some(Switch::To(session.id.clone()));
            answer
        }
        Desked::Alert(_) | Desked::Noted => Facts::new().committed(committed).line("no session"),
    };
    Planned::Keep { ask: DeskAsk::Begin, finish: Box::new(finish) }
}

/// A session is its principal's own; people see all.
fn may_see(view: &View<'_>, begun: &Begun) -> bool {
    match &view.caller.principal {
        Principal::User(_) | Principal::System | Principal::Outside => true,
        agent @ Principal::Agent(_) => begun.principal == agent.to_string(),
    }
}

fn unknown(id: &str) -> Failure {
    Failure::new(Kind::NotFound, format!("there is no session {}", excerpt(id)))
        .hint("call session with action begin to begin one")
}

/// What the caller may reach, in the spelling of the workspace.
fn scope(view: &View<'_>) -> serde_json::Map<String, Value> {
    let grants = &view.caller.grants;
    let (access, writable) = match grants.access {
        Access::ReadWrite => ("read_write", grants.writable.as_slice()),
        Access::ReadOnly => ("read_only", &[][..]),
    };
    let wires = |paths: &[path::RelPath]| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
    Facts::new()
        .with("access", access)
        .with("readable", wires(&grants.readable))
        .with("writable", wires(writable))
        .maybe("root", view.workspace().profile().roots.first().cloned())
        .object()
}

fn text(facts: &Facts, name: &str) -> String {
    facts.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}
