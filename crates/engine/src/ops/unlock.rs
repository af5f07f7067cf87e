//! `unlock`: gives a lease back before its end.

use serde::Deserialize;

use super::lock::{answered, held, shown};
use crate::{
    failure::Failure,
    operation::{Ask, Operation, Planned, Target},
    view::View,
    workspace::{Committed, Lease, LeaseAsk},
};

/// The arguments of `unlock`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unlock {
    path: String,
}

impl Operation for Unlock {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(vec![Ask::write(held(&self.path))])
    }

    fn plan(&self, _view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let path = targets[0].path.clone();
        let finish = Box::new(|lease: &Lease, committed: &Committed| {
            answered(lease, committed, format!("{} is free again", shown(&lease.path)))
        });
        Ok(Planned::Lease { ask: LeaseAsk::Release { path }, finish })
    }
}
