//! Follows changes for a stream that a protocol opened with a call of `changes`. Records no journal entries, and
//! returns exactly what `changes` would return to the same caller.

use serde_json::Map;

use super::{JournalCursor, collect_changes};
use crate::ops::journal_cursor::JournalCursorArgument;
use crate::{
    call_context::CallContext,
    caller::Caller,
    engine::{Call, CallOutcome, Engine},
    errors::Error,
};

/// Reads changes from a cursor, in order and each once.
pub struct ChangesFollower {
    engine: Engine,
    caller: Caller,
    position: JournalCursor,
}

impl ChangesFollower {
    /// Continues after a cursor of an earlier outcome.
    pub fn from_cursor(engine: Engine, caller: Caller, cursor: &str) -> Result<Self, Error> {
        let position = JournalCursor::resolve(engine.workspace(), &JournalCursorArgument::Text(cursor.to_owned()))?;
        Ok(Self { engine, caller, position })
    }

    /// The next page, as `changes` would return it; without events if nothing changed.
    pub fn next_page(&mut self) -> Result<CallOutcome, Error> {
        let workspace = self.engine.workspace();
        let call = Call::new(&self.caller, "changes", Map::new());
        let policy = workspace.active_policy()?;
        let page = collect_changes(&CallContext::new(workspace, &call, &policy), self.position)?;
        self.position = page.position;
        Ok(page.into_outcome("no changes", "changes"))
    }
}
