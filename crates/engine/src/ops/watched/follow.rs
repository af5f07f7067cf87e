//! Hearing without asking: what a face uses to push events to whoever began the watches. Makes no entries of its own,
//! because nobody called; sees exactly what `watched` would tell the same caller.

use std::{collections::HashMap, time::Instant};

use serde_json::{Map, Value};

use super::{Own, Watcher, gather};
use crate::{
    caller::Caller,
    control::{Cancel, Control},
    engine::{Call, Engine},
    failure::Failure,
    ops::changes::cursor::{Position, Since},
    view::View,
    watching::Watch,
};

/// Hears what some watches of one caller tell, in order and each event once.
pub struct Follower {
    engine: Engine,
    caller: Caller,
    position: Option<Position>,
    /// What each watch has heard already when others make it necessary to go back: it hears nothing up to there again.
    floors: HashMap<String, u64>,
}

/// Whether every watch that is wanted is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attending {
    All,
    /// Some come in only when the entry that is just being told has been told to its end.
    Some,
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
        Self { engine, caller, position: None, floors: HashMap::new() }
    }

    /// Chooses where to go on for these watches. Whoever begins a watch says so only after it began, so one that is new here
    /// may begin before what the others have heard: then it is gone back to there, and the others are not told again.
    fn place(&mut self, watches: &mut Vec<Watch>) -> Result<Attending, Failure> {
        self.floors.retain(|id, _| watches.iter().any(|watch| watch.id == *id));
        let all = watches.len();
        if self.position.is_some_and(Position::is_inside) {
            watches.retain(|watch| self.floors.contains_key(&watch.id));
        }
        let new = watches.iter().filter(|watch| !self.floors.contains_key(&watch.id));
        let first = new.map(|watch| watch.started).min();
        if let Some(first) = first.filter(|first| self.position.is_none_or(|heard| *first < heard.after())) {
            let start = Position::start(self.engine.workspace(), &Since::Number(first))?;
            if let Some(heard) = self.position.replace(start) {
                self.floors.values_mut().for_each(|floor| *floor = (*floor).max(heard.after()));
            }
        }
        for watch in watches.iter_mut() {
            let floor = *self.floors.entry(watch.id.clone()).or_insert(watch.started);
            watch.started = watch.started.max(floor);
        }
        Ok(if watches.len() == all { Attending::All } else { Attending::Some })
    }

    /// What these watches heard, waiting for something until then. Which they are is asked again whenever the journal has
    /// grown, so one that is begun meanwhile is heard as well.
    pub fn wait(
        &mut self,
        ids: &dyn Fn() -> Vec<String>,
        until: Instant,
        cancel: &Cancel,
    ) -> Result<Vec<Heard>, Failure> {
        let (engine, caller) = (self.engine.clone(), self.caller.clone());
        let workspace = engine.workspace();
        let mut call = Call::new(&caller, "watched", Map::new());
        call.control = Control::new(until + crate::limits::CALL_DEADLINE, cancel.clone(), None);
        let in_force = workspace.in_force()?;
        let view = View::new(workspace, &call, &in_force);
        loop {
            // Taken before looking, so that an entry made meanwhile ends the wait below.
            let head = workspace.head()?.number;
            let wanted = ids();
            let mut watches = workspace.watches(&caller.principal)?;
            watches.retain(|watch| wanted.contains(&watch.id));
            let attending = self.place(&mut watches)?;
            if let Some(position) = self.position {
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
                if page.full || attending == Attending::Some {
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
