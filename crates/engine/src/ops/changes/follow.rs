//! Hearing without asking: what a face uses to go on telling changes to a stream that began with a call of `changes`. Makes no
//! entries of its own, because nobody called; tells exactly what `changes` would tell the same caller.

use serde_json::Map;

use super::{Position, cursor::Since, gather};
use crate::{
    caller::Caller,
    engine::{Answer, Call, Engine},
    failure::Failure,
    view::View,
};

/// One who hears changes from a cursor on, in order and each once.
pub struct Listening {
    engine: Engine,
    caller: Caller,
    position: Position,
}

impl Listening {
    /// Goes on after this cursor of an answer.
    pub fn after(engine: Engine, caller: Caller, cursor: &str) -> Result<Self, Failure> {
        let position = Position::start(engine.workspace(), &Since::Text(cursor.to_owned()))?;
        Ok(Self { engine, caller, position })
    }

    /// The next page as `changes` answers it; without events when there is nothing new.
    pub fn next_page(&mut self) -> Result<Answer, Failure> {
        let workspace = self.engine.workspace();
        let call = Call::new(&self.caller, "changes", Map::new());
        let in_force = workspace.in_force()?;
        let page = gather(&View::new(workspace, &call, &in_force), self.position)?;
        self.position = page.position;
        Ok(page.answer("no changes", "changes"))
    }
}
