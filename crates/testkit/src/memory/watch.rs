//! The watches of the memory workspace. Every change that a watch reports is in the journal, so no file system events
//! are needed.

use stead_engine::{Error, ErrorKind, JournalCallRecord, Watch, WatchBeginOrEndRequest, WatchLifetimeKind, limits};

use super::MemoryWorkspaceState;

pub(super) fn find_or_make_watch(
    state: &MemoryWorkspaceState,
    ask: &WatchBeginOrEndRequest,
    record: &JournalCallRecord<'_>,
) -> Result<Watch, Error> {
    let owner = record.caller.principal.to_string();
    match ask {
        WatchBeginOrEndRequest::Begin { path, depth, event_kinds: happenings, glob, lifetime: _ } => {
            let count = state.watches.iter().filter(|watch| watch.owner == owner).count();
            if count >= limits::WATCHES_PER_PRINCIPAL_MAX {
                let oldest = state.watches.iter().find(|watch| watch.owner == owner);
                let oldest = oldest.map(|watch| watch.id.clone());
                return Err(Error::new(ErrorKind::TooMany, format!("you have {count} watches, which is the limit"))
                    .with_next_step("end one of them, or watch a directory above several")
                    .with_oldest(oldest.unwrap_or_default()));
            }
            let started = state.journal.head().number + 1;
            Ok(Watch {
                id: format!("w-{started:016x}"),
                owner,
                session: record.caller.session.clone(),
                path: path.clone(),
                depth: *depth,
                event_kinds: happenings.clone(),
                glob: glob.clone(),
                started_at_entry: started,
            })
        }
        WatchBeginOrEndRequest::End { id } => {
            let found = state.watches.iter().find(|watch| watch.id == *id && watch.owner == owner);
            found.cloned().ok_or_else(|| {
                Error::new(ErrorKind::NotFound, format!("you have no watch '{id}'"))
                    .with_next_step("continue if the watch has already ended")
            })
        }
    }
}

pub(super) fn apply_watch(state: &mut MemoryWorkspaceState, ask: &WatchBeginOrEndRequest, watch: &Watch) {
    match ask {
        WatchBeginOrEndRequest::Begin { lifetime, .. } => {
            state.watches.push(watch.clone());
            match lifetime {
                WatchLifetimeKind::Persistent => {}
                WatchLifetimeKind::Process => drop(state.process_watches.insert(watch.id.clone())),
            }
        }
        WatchBeginOrEndRequest::End { id } => state.watches.retain(|watch| watch.id != *id),
    }
}

pub(super) fn end_process_watches(state: &mut MemoryWorkspaceState) {
    let ended = std::mem::take(&mut state.process_watches);
    state.watches.retain(|watch| !ended.contains(&watch.id));
}
