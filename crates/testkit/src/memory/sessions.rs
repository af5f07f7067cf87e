//! Sessions and alerts of the memory workspace.

use stead_engine::{
    AgentSentAlertAndResponse, Caller, CommitReceipt, Error, ErrorKind, FilesystemTrashAndHistorySizes,
    HumanResponseToAlert, JournalCallRecord, Principal, PrincipalUsage, RequiredUsageFreshness, ReviewAcceptedFileText,
    SessionRecord, SessionStore, SessionStoreReply, SessionStoreWriteRequest, SessionTotals, SessionTotalsQuery,
    WorkspaceUsage, limits,
};
use stead_journal::JournalEntryRelation;

use super::{MemoryWorkspace, MemoryWorkspaceState};

#[derive(Default)]
pub(super) struct MemorySessionStore {
    sessions: Vec<SessionRecord>,
    alerts: Vec<AgentSentAlertAndResponse>,
    reviewed_bytes: std::collections::BTreeMap<(String, String, stead_path::RelPath), Option<Vec<u8>>>,
}

const TOTAL_BYTES: u64 = 1 << 30;

impl SessionStore for MemoryWorkspace {
    fn execute_session_request(
        &self,
        ask: &SessionStoreWriteRequest,
        record: &JournalCallRecord<'_>,
    ) -> Result<(SessionStoreReply, CommitReceipt), Error> {
        let mut state = self.lock_state();
        delete_expired(&mut state);
        check_command(&state, ask, record)?;
        let head = self.record(&mut state, record, Vec::new(), JournalEntryRelation::None);
        let kept = apply_command(&mut state, ask, record, head.number)?;
        let committed =
            CommitReceipt { entry: head.number, hash: head.hash, trash_ids: Vec::new(), notices: Vec::new() };
        Ok((kept, committed))
    }

    fn session(&self, id: &str) -> Result<Option<SessionRecord>, Error> {
        Ok(self.lock_state().sessions.sessions.iter().find(|session| session.id == id).cloned())
    }

    fn session_totals(&self, of: &SessionTotalsQuery<'_>) -> Result<SessionTotals, Error> {
        let mut tally = SessionTotals::default();
        let principal = of.principal.to_string();
        for stored in self.lock_state().journal.all_entries() {
            let entry = &stored.entry;
            let counts = entry.number >= of.from_entry;
            if counts && entry.caller.principal == principal && entry.caller.session == of.session {
                tally.add_entry(entry);
            }
        }
        Ok(tally)
    }

    fn review_baselines(&self, principal: &str, session: &str) -> Result<Vec<ReviewAcceptedFileText>, Error> {
        let state = self.lock_state();
        let own = state
            .sessions
            .reviewed_bytes
            .iter()
            .filter(|((whose, which, _), _)| whose == principal && which == session);
        Ok(own.map(|((_, _, path), text)| ReviewAcceptedFileText { path: path.clone(), text: text.clone() }).collect())
    }

    fn alert(&self, id: &str) -> Result<Option<AgentSentAlertAndResponse>, Error> {
        Ok(self.lock_state().sessions.alerts.iter().find(|alert| alert.id == id).cloned())
    }

    fn alerts(&self, from: Option<&Principal>, limit: usize) -> Result<Vec<AgentSentAlertAndResponse>, Error> {
        let from = from.map(ToString::to_string);
        let state = self.lock_state();
        let mine = |alert: &&AgentSentAlertAndResponse| from.as_ref().is_none_or(|from| alert.sender == *from);
        Ok(state.sessions.alerts.iter().rev().filter(mine).take(limit).cloned().collect())
    }

    fn storage_usage(&self) -> Result<FilesystemTrashAndHistorySizes, Error> {
        let state = self.lock_state();
        let kept_bytes = state.retained_versions.values().map(|retained| retained.bytes.len() as u64).sum();
        Ok(FilesystemTrashAndHistorySizes {
            total_bytes: TOTAL_BYTES,
            free_bytes: TOTAL_BYTES,
            trash_items: state.trash.len() as u64,
            trash_bytes: state.trash.values().map(|item| item.item.summary.bytes).sum(),
            history_bytes: kept_bytes,
            history_bytes_max: TOTAL_BYTES,
        })
    }

    fn principal_usage(
        &self,
        principal: &Principal,
        freshness: RequiredUsageFreshness,
    ) -> Result<Option<PrincipalUsage>, Error> {
        match freshness {
            RequiredUsageFreshness::Cached | RequiredUsageFreshness::RecountIfStale => {}
            RequiredUsageFreshness::Recount => self.purge_expired_trash(),
        }
        Ok(Some(count_usage(&self.lock_state(), principal)))
    }

    fn usage_before_entry(&self, number: u64) -> Result<Option<WorkspaceUsage>, Error> {
        Ok(self.lock_state().usage_before.get(&number).copied())
    }

    fn history_bytes(&self, principal: &Principal) -> Result<u64, Error> {
        Ok(self.lock_state().history_bytes_of(principal))
    }
}

impl MemoryWorkspace {
    fn purge_expired_trash(&self) {
        let mut state = self.lock_state();
        let (before, now_ms) = (state.trash.len(), state.now_ms);
        state.trash.retain(|_, item| item.item.retain_until_ms >= now_ms);
        let purged = before - state.trash.len();
        if purged > 0 {
            let server = Caller::new(Principal::System, "memory", "server");
            let record = JournalCallRecord::new(&server, "empty_trash", format!("{{\"items\":{purged}}}"));
            self.record(&mut state, &record, Vec::new(), JournalEntryRelation::None);
        }
    }
}

pub(super) fn count_usage(state: &MemoryWorkspaceState, principal: &Principal) -> PrincipalUsage {
    let owner = principal.to_string();
    let owned = state.trash.values().filter(|item| item.item.owner == owner);
    let sizes = state.tree.paths().filter_map(|path| state.tree.get(path)).map(|placed| placed.node().size);
    let stock = sizes.fold(WorkspaceUsage::default(), |stock, size| WorkspaceUsage {
        bytes: stock.bytes + size,
        files: stock.files + 1,
    });
    PrincipalUsage { workspace: stock, trash_bytes: owned.map(|item| item.item.summary.bytes).sum() }
}

fn delete_expired(state: &mut MemoryWorkspaceState) {
    let before_ms = state.now_ms - limits::SESSION_RETENTION_MS;
    let is_old = |ended_ms: Option<i64>| ended_ms.is_some_and(|ended_ms| ended_ms < before_ms);
    state.sessions.sessions.retain(|session| !is_old(session.ended_ms));
    state.sessions.alerts.retain(|alert| !is_old(alert.response.as_ref().map(|response| response.time_ms)));
}

fn check_command(
    state: &MemoryWorkspaceState,
    ask: &SessionStoreWriteRequest,
    record: &JournalCallRecord<'_>,
) -> Result<(), Error> {
    let principal = record.caller.principal.to_string();
    let desk = &state.sessions;
    match ask {
        SessionStoreWriteRequest::Begin => {
            let open = desk.sessions.iter().filter(|one| one.principal == principal && one.ended_ms.is_none());
            check_limit(open.count(), limits::SESSIONS_OPEN_MAX, "you have too many open sessions")
        }
        SessionStoreWriteRequest::SendAlert { .. } => {
            let open = desk.alerts.iter().filter(|alert| alert.sender == principal && alert.response.is_none());
            check_limit(open.count(), limits::ALERTS_OPEN_MAX, "too many of your alerts wait for an answer")
        }
        SessionStoreWriteRequest::AcceptChanges { .. } | SessionStoreWriteRequest::BeginTurn => Ok(()),
        SessionStoreWriteRequest::End { session_id: session } => {
            match desk.sessions.iter().find(|one| one.id == *session) {
                Some(open) if open.ended_ms.is_none() => Ok(()),
                Some(_) | None => Err(Error::new(ErrorKind::NothingToDo, "the session has ended already")),
            }
        }
        SessionStoreWriteRequest::AnswerAlert { alert_id: alert, .. } => {
            match desk.alerts.iter().find(|one| one.id == *alert) {
                Some(open) if open.response.is_none() => Ok(()),
                Some(_) | None => Err(Error::new(ErrorKind::Exists, "the alert was answered already")),
            }
        }
    }
}

fn check_limit(count: usize, most: usize, detail: &str) -> Result<(), Error> {
    if count >= most { Err(Error::new(ErrorKind::TooMany, detail)) } else { Ok(()) }
}

fn apply_command(
    state: &mut MemoryWorkspaceState,
    ask: &SessionStoreWriteRequest,
    record: &JournalCallRecord<'_>,
    number: u64,
) -> Result<SessionStoreReply, Error> {
    let (principal, now_ms) = (record.caller.principal.to_string(), state.now_ms);
    let gone = || Error::new(ErrorKind::NotFound, "it is gone");
    let desk = &mut state.sessions;
    match ask {
        SessionStoreWriteRequest::Begin => {
            let session = SessionRecord {
                id: format!("s{number}"),
                principal,
                protocol: record.caller.protocol.to_owned(),
                created_ms: now_ms,
                ended_ms: None,
                first_entry: number,
            };
            desk.sessions.push(session.clone());
            Ok(SessionStoreReply::Session(session))
        }
        SessionStoreWriteRequest::End { session_id: session } => {
            let found = desk.sessions.iter_mut().find(|one| one.id == *session).ok_or_else(gone)?;
            found.ended_ms = Some(now_ms);
            Ok(SessionStoreReply::Session(found.clone()))
        }
        SessionStoreWriteRequest::SendAlert { severity, message } => {
            let alert = AgentSentAlertAndResponse {
                id: format!("a{number}"),
                sender: principal,
                session: record.caller.session.clone(),
                severity: *severity,
                message: message.clone(),
                time_ms: now_ms,
                response: None,
            };
            desk.alerts.push(alert.clone());
            Ok(SessionStoreReply::Alert(alert))
        }
        SessionStoreWriteRequest::AcceptChanges { principal, session, baselines: kept } => {
            for ReviewAcceptedFileText { path, text } in kept {
                let key = (principal.clone(), session.clone(), path.clone());
                desk.reviewed_bytes.insert(key, text.clone());
            }
            Ok(SessionStoreReply::RecordedOnly)
        }
        SessionStoreWriteRequest::BeginTurn => Ok(SessionStoreReply::RecordedOnly),
        SessionStoreWriteRequest::AnswerAlert { alert_id: alert, text } => {
            let found = desk.alerts.iter_mut().find(|one| one.id == *alert).ok_or_else(gone)?;
            found.response = Some(HumanResponseToAlert { responder: principal, text: text.clone(), time_ms: now_ms });
            Ok(SessionStoreReply::Alert(found.clone()))
        }
    }
}
