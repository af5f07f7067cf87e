//! Follows watches for a protocol that pushes events. Records no journal entries, and returns exactly what `watched`
//! would return to the same caller.

use std::{collections::HashMap, time::Instant};

use serde_json::{Map, Value};

use super::{OwnChangeFilter, WatchMatcher, collect_events};
use crate::{
    call_context::CallContext,
    caller::Caller,
    control::{CallControl, CancelToken},
    engine::{Call, Engine},
    errors::Error,
    ops::journal_cursor::{JournalCursor, JournalCursorArgument},
    watches::Watch,
};

/// Reads the events of some watches of one caller, in order and each once.
pub struct WatchFollower {
    engine: Engine,
    caller: Caller,
    position: Option<JournalCursor>,
    /// How far each watch was delivered, for rewinding: events up to there are not repeated.
    delivered_up_to: HashMap<String, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FollowedWatches {
    All,
    /// Some watches join only after the current entry is delivered completely.
    Selected,
}

/// One event of a watch.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchNotification {
    /// The watch of the event.
    pub watch_id: String,
    /// The event, as in the outcome of `watched`.
    pub event: Map<String, Value>,
}

impl WatchFollower {
    /// Starts at the earliest of the watches.
    pub fn new(engine: Engine, caller: Caller) -> Self {
        Self { engine, caller, position: None, delivered_up_to: HashMap::new() }
    }

    /// Chooses the cursor to continue from. A new watch may start before the current cursor; then the follower
    /// rewinds and skips events that the older watches already received.
    fn choose_start(&mut self, watches: &mut Vec<Watch>) -> Result<FollowedWatches, Error> {
        self.delivered_up_to.retain(|id, _| watches.iter().any(|watch| watch.id == *id));
        let all = watches.len();
        if self.position.is_some_and(JournalCursor::is_within_entry) {
            watches.retain(|watch| self.delivered_up_to.contains_key(&watch.id));
        }
        let new = watches.iter().filter(|watch| !self.delivered_up_to.contains_key(&watch.id));
        let first = new.map(|watch| watch.started_at_entry).min();
        if let Some(first) =
            first.filter(|first| self.position.is_none_or(|heard| *first < heard.last_complete_entry()))
        {
            let start = JournalCursor::resolve(self.engine.workspace(), &JournalCursorArgument::Number(first))?;
            if let Some(heard) = self.position.replace(start) {
                self.delivered_up_to.values_mut().for_each(|floor| *floor = (*floor).max(heard.last_complete_entry()));
            }
        }
        for watch in watches.iter_mut() {
            let floor = *self.delivered_up_to.entry(watch.id.clone()).or_insert(watch.started_at_entry);
            watch.started_at_entry = watch.started_at_entry.max(floor);
        }
        Ok(if watches.len() == all { FollowedWatches::All } else { FollowedWatches::Selected })
    }

    /// Waits until the deadline for events of these watches. The list of watches is read again whenever the journal
    /// has grown, so new watches are included.
    pub fn wait_for_events(
        &mut self,
        ids: &dyn Fn() -> Vec<String>,
        until: Instant,
        cancel: &CancelToken,
    ) -> Result<Vec<WatchNotification>, Error> {
        let (engine, caller) = (self.engine.clone(), self.caller.clone());
        let workspace = engine.workspace();
        let mut call = Call::new(&caller, "watched", Map::new());
        call.control = CallControl::new(until + crate::limits::DEFAULT_CALL_DEADLINE, cancel.clone(), None);
        let policy = workspace.active_policy()?;
        let context = CallContext::new(workspace, &call, &policy);
        loop {
            // Read before the scan, so that an entry added meanwhile ends the wait below.
            let head = workspace.head()?.number;
            let wanted = ids();
            let mut watches = workspace.watches(&caller.principal)?;
            watches.retain(|watch| wanted.contains(&watch.id));
            let followed = self.choose_start(&mut watches)?;
            if let Some(position) = self.position {
                let watchers: Vec<WatchMatcher<'_>> = watches.iter().map(WatchMatcher::new).collect();
                let page = collect_events(&context, &watchers, OwnChangeFilter::Exclude, position)?;
                self.position = Some(page.position);
                if !page.events.is_empty() {
                    let notifications = page
                        .events
                        .into_iter()
                        .map(|event| WatchNotification { watch_id: event.watch_id.clone(), event: event.into_json() });
                    return Ok(notifications.collect());
                }
                if page.has_more || followed == FollowedWatches::Selected {
                    continue;
                }
            }
            if Instant::now() >= until {
                return Ok(Vec::new());
            }
            context.control.check()?;
            workspace.wait_for_entry_after(head, until)?;
        }
    }
}
