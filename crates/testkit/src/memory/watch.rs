//! Watches on the memory workspace. Nobody changes it but through here, so the journal tells everything by itself.

use engine::{Failure, Kind, Record, Watch, WatchAsk, limits};

use super::State;

/// Finds or makes the watch that is asked about.
pub(super) fn judge(state: &State, ask: &WatchAsk, record: &Record<'_>) -> Result<Watch, Failure> {
    let owner = record.caller.principal.to_string();
    match ask {
        WatchAsk::Begin { path, depth, happenings, glob, lasting: _ } => {
            let count = state.watches.iter().filter(|watch| watch.owner == owner).count();
            if count >= limits::WATCHES_PER_PRINCIPAL_MAX {
                let oldest = state.watches.iter().find(|watch| watch.owner == owner);
                let oldest = oldest.map(|watch| watch.id.clone());
                return Err(Failure::new(
                    Kind::TooMany,
                    format!("you have {count} watches, which is all you may have"),
                )
                .hint("call unwatch on one of them, or watch a directory above several")
                .fact("oldest", oldest));
            }
            let started = state.ledger.head().number + 1;
            Ok(Watch {
                id: format!("w-{started:016x}"),
                owner,
                session: record.caller.session.clone(),
                path: path.clone(),
                depth: *depth,
                happenings: happenings.clone(),
                glob: glob.clone(),
                started,
            })
        }
        WatchAsk::End { id } => {
            let found = state.watches.iter().find(|watch| watch.id == *id && watch.owner == owner);
            found.cloned().ok_or_else(|| {
                Failure::new(Kind::NotFound, "you have no watch of that name")
                    .hint("call watched to hear of those you have")
            })
        }
    }
}

/// Keeps or forgets it.
pub(super) fn write(state: &mut State, ask: &WatchAsk, watch: &Watch) {
    match ask {
        WatchAsk::Begin { .. } => state.watches.push(watch.clone()),
        WatchAsk::End { id } => state.watches.retain(|watch| watch.id != *id),
    }
}
