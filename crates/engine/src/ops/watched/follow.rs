//! Hearing without asking: what a face uses to push events to whoever began the watches. Makes no entries of its own,
//! because nobody called; sees exactly what `watched` would tell the same caller.

use std::time::Instant;

use serde_json::{Map, Value};

use super::{Own, Watcher, gather};
use crate::{
    caller::Caller,
    control::{Cancel, Control},
    engine::{Call, Engine},
    failure::Failure,
    ops::changes::cursor::{Position, Since},
    view::View,
};

/// Hears what some watches of one caller tell, in order and each event once.
pub struct Follower {
    engine: Engine,
    caller: Caller,
    position: Option<Position>,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// The watch that heard it.
    pub watch: String,
    /// The event as `watched` tells it.
    pub event: Map<String, Value>,
}

impl Follower {
    /// Begins where the first of the watches begins.
    pub fn new(engine: Engine, caller: Caller) -> Self {
        Self { engine, caller, position: None }
    }

    /// What these watches heard, waiting for something until then. Which they are is asked again whenever the journal has
    /// grown, so one that is begun meanwhile is heard as well.
    pub fn wait(
        &mut self,
        ids: &dyn Fn() -> Vec<String>,
        until: Instant,
        cancel: &Cancel,
    ) -> Result<Vec<Heard>, Failure> {
        let workspace = self.engine.workspace();
        let mut call = Call::new(&self.caller, "watched", Map::new());
        call.control = Control::new(until + crate::limits::CALL_DEADLINE, cancel.clone(), None);
        let in_force = workspace.in_force()?;
        let view = View::new(workspace, &call, &in_force);
        loop {
            // Taken before looking, so that an entry made meanwhile ends the wait below.
            let head = workspace.head()?.number;
            let wanted = ids();
            let mut watches = workspace.watches(&self.caller.principal)?;
            watches.retain(|watch| wanted.contains(&watch.id));
            let position = match (self.position, watches.iter().map(|watch| watch.started).min()) {
                (Some(position), _) => Some(position),
                (None, Some(number)) => Some(Position::start(workspace, &Since::Number(number))?),
                (None, None) => None,
            };
            if let Some(position) = position {
                let watchers: Vec<Watcher<'_>> = watches.iter().map(Watcher::new).collect();
                let page = gather(&view, &watchers, Own::Left, position)?;
                self.position = Some(page.position);
                if !page.events.is_empty() {
                    let heard = page
                        .events
                        .into_iter()
                        .map(|told| Heard { watch: told.watch.clone(), event: told.object() });
                    return Ok(heard.collect());
                }
                if page.full {
                    continue;
                }
            }
            if Instant::now() >= until {
                return Ok(Vec::new());
            }
            view.control.check()?;
            workspace.wait_after(head, until)?;
        }
    }
}
