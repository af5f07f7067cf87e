//! `unwatch`: ends one of the caller's own watches. What it has heard stays in the journal.

use serde::Deserialize;

use super::{lock::shown, watch::answered};
use crate::{
    failure::Failure,
    operation::{Ask, Operation, Planned, Target},
    view::View,
    watching::{Watch, WatchAsk},
    workspace::Committed,
};

/// The arguments of `unwatch`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unwatch {
    watch: String,
}

impl Operation for Unwatch {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(Vec::new())
    }

    fn plan(&self, _view: &View<'_>, _targets: &[Target]) -> Result<Planned, Failure> {
        let finish = Box::new(|watch: &Watch, committed: &Committed| {
            let text = format!("{} is no longer watched as {}", shown(&watch.path), watch.id);
            answered(watch, committed, text)
        });
        Ok(Planned::Watch { ask: WatchAsk::End { id: self.watch.clone() }, finish })
    }
}
