//! Sessions and alerts in memory.

use engine::{
    Alert, Committed, Desk, DeskAsk, Desked, Failure, Holding, Kind, Look, Principal, Record, Response,
    Reviewed, Session, Stock, Tally, TallyOf, Usage, limits,
};
use journal::Link;

use super::{MemoryWorkspace, State};

/// What is kept, newest last.
#[derive(Default)]
pub(super) struct Kept {
    sessions: Vec<Session>,
    alerts: Vec<Alert>,
    reviewed: std::collections::BTreeMap<(String, String, path::RelPath), Option<Vec<u8>>>,
}

/// The bytes that a workspace in memory says it has.
const TOTAL_BYTES: u64 = 1 << 30;

impl Desk for MemoryWorkspace {
    fn keep(&self, ask: &DeskAsk, record: &Record<'_>) -> Result<(Desked, Committed), Failure> {
        let mut state = self.state();
        judge(&state, ask, record)?;
        let head = self.record(&mut state, record, Vec::new(), Link::None);
        let kept = write(&mut state, ask, record, head.number)?;
        let committed =
            Committed { number: head.number, hash: head.hash, trash: Vec::new(), notices: Vec::new() };
        Ok((kept, committed))
    }

    fn session(&self, id: &str) -> Result<Option<Session>, Failure> {
        Ok(self.state().desk.sessions.iter().find(|session| session.id == id).cloned())
    }

    fn tally(&self, of: &TallyOf<'_>) -> Result<Tally, Failure> {
        let mut tally = Tally::default();
        let principal = of.principal.to_string();
        for stored in self.state().ledger.all() {
            let entry = &stored.entry;
            let counts = entry.number >= of.from_entry;
            if counts && entry.caller.principal == principal && entry.caller.session == of.session {
                tally.add(entry);
            }
        }
        Ok(tally)
    }

    fn reviewed(&self, principal: &str, session: &str) -> Result<Vec<Reviewed>, Failure> {
        let state = self.state();
        let own = state
            .desk
            .reviewed
            .iter()
            .filter(|((whose, which, _), _)| whose == principal && which == session);
        Ok(own.map(|((_, _, path), text)| Reviewed { path: path.clone(), text: text.clone() }).collect())
    }

    fn alert(&self, id: &str) -> Result<Option<Alert>, Failure> {
        Ok(self.state().desk.alerts.iter().find(|alert| alert.id == id).cloned())
    }

    fn alerts(&self, from: Option<&Principal>, limit: usize) -> Result<Vec<Alert>, Failure> {
        let from = from.map(ToString::to_string);
        let state = self.state();
        let mine = |alert: &&Alert| from.as_ref().is_none_or(|from| alert.from == *from);
        Ok(state.desk.alerts.iter().rev().filter(mine).take(limit).cloned().collect())
    }

    fn usage(&self) -> Result<Usage, Failure> {
        let state = self.state();
        let kept_bytes = state.kept.values().map(|bytes| bytes.len() as u64).sum();
        Ok(Usage {
            total_bytes: TOTAL_BYTES,
            free_bytes: TOTAL_BYTES,
            trash_items: state.trash.len() as u64,
            trash_bytes: state.trash.values().map(|item| item.facts.tree.bytes).sum(),
            kept_bytes,
            kept_bytes_max: TOTAL_BYTES,
        })
    }

    fn holding(&self, principal: &Principal, _look: Look) -> Result<Option<Holding>, Failure> {
        Ok(Some(held(&self.state(), principal)))
    }

    fn held_before(&self, number: u64) -> Result<Option<Stock>, Failure> {
        Ok(self.state().before.get(&number).copied())
    }

    fn history_bytes(&self, _principal: &Principal) -> Result<u64, Failure> {
        Ok(self.state().kept.values().map(|bytes| bytes.len() as u64).sum())
    }
}

/// What is held, counted every time.
pub(super) fn held(state: &State, principal: &Principal) -> Holding {
    let owner = principal.to_string();
    let owned = state.trash.values().filter(|item| item.facts.owner == owner);
    let sizes = state.tree.paths().filter_map(|path| state.tree.get(path)).map(|placed| placed.node().size);
    let stock = sizes
        .fold(Stock::default(), |stock, size| Stock { bytes: stock.bytes + size, files: stock.files + 1 });
    Holding { stock, trash_bytes: owned.map(|item| item.facts.tree.bytes).sum() }
}

fn judge(state: &State, ask: &DeskAsk, record: &Record<'_>) -> Result<(), Failure> {
    let principal = record.caller.principal.to_string();
    let desk = &state.desk;
    match ask {
        DeskAsk::Begin => {
            let open =
                desk.sessions.iter().filter(|one| one.principal == principal && one.ended_ms.is_none());
            bounded(open.count(), limits::SESSIONS_OPEN_MAX, "you have too many open sessions")
        }
        DeskAsk::Alert { .. } => {
            let open = desk.alerts.iter().filter(|alert| alert.from == principal && alert.answer.is_none());
            bounded(open.count(), limits::ALERTS_OPEN_MAX, "too many of your alerts wait for an answer")
        }
        DeskAsk::Reviewed { .. } | DeskAsk::Turn => Ok(()),
        DeskAsk::End { session } => match desk.sessions.iter().find(|one| one.id == *session) {
            Some(open) if open.ended_ms.is_none() => Ok(()),
            Some(_) | None => Err(Failure::new(Kind::NothingToDo, "the session has ended already")),
        },
        DeskAsk::Answer { alert, .. } => match desk.alerts.iter().find(|one| one.id == *alert) {
            Some(open) if open.answer.is_none() => Ok(()),
            Some(_) | None => Err(Failure::new(Kind::Exists, "the alert was answered already")),
        },
    }
}

fn bounded(count: usize, most: usize, detail: &str) -> Result<(), Failure> {
    if count >= most { Err(Failure::new(Kind::TooMany, detail)) } else { Ok(()) }
}

fn write(state: &mut State, ask: &DeskAsk, record: &Record<'_>, number: u64) -> Result<Desked, Failure> {
    let (principal, now_ms) = (record.caller.principal.to_string(), state.now_ms);
    let gone = || Failure::new(Kind::NotFound, "it is gone");
    let desk = &mut state.desk;
    match ask {
        DeskAsk::Begin => {
            let session = Session {
                id: format!("s{number}"),
                principal,
                face: record.caller.face.to_owned(),
                created_ms: now_ms,
                ended_ms: None,
                first: number,
            };
            desk.sessions.push(session.clone());
            Ok(Desked::Session(session))
        }
        DeskAsk::End { session } => {
            let found = desk.sessions.iter_mut().find(|one| one.id == *session).ok_or_else(gone)?;
            found.ended_ms = Some(now_ms);
            Ok(Desked::Session(found.clone()))
        }
        DeskAsk::Alert { severity, message } => {
            let alert = Alert {
                id: format!("a{number}"),
                from: principal,
                session: record.caller.session.clone(),
                severity: *severity,
                message: message.clone(),
                time_ms: now_ms,
                answer: None,
            };
            desk.alerts.push(alert.clone());
            Ok(Desked::Alert(alert))
        }
        DeskAsk::Reviewed { principal, session, kept } => {
            for Reviewed { path, text } in kept {
                let key = (principal.clone(), session.clone(), path.clone());
                desk.reviewed.insert(key, text.clone());
            }
            Ok(Desked::Noted)
        }
        DeskAsk::Turn => Ok(Desked::Noted),
        DeskAsk::Answer { alert, text } => {
            let found = desk.alerts.iter_mut().find(|one| one.id == *alert).ok_or_else(gone)?;
            found.answer = Some(Response { by: principal, text: text.clone(), time_ms: now_ms });
            Ok(Desked::Alert(found.clone()))
        }
    }
}
