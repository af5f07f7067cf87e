//! `turn`: a mark in the journal where a session begins something new, so that what it does from there on can be seen and
//! taken back as one.

use serde::Deserialize;

use crate::{
    desk::{DeskAsk, Desked},
    failure::Failure,
    operation::{Ask, Operation, Planned, Target},
    ops::answer::Facts,
    view::View,
    workspace::Committed,
};

/// The arguments of `turn`: it has none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Turn {}

impl Operation for Turn {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(Vec::new())
    }

    fn plan(&self, view: &View<'_>, _targets: &[Target]) -> Result<Planned, Failure> {
        let session = view.caller.session.clone();
        let finish = move |_: &Desked, committed: &Committed| {
            let text = format!("a turn of session {session} begins at r{}", committed.number);
            Facts::new().with("session", session).committed(committed).line(text)
        };
        Ok(Planned::Keep { ask: DeskAsk::Turn, finish: Box::new(finish) })
    }
}
