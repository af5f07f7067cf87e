//! `lock`: a lease that other callers can see, with a fencing number and an end. The place need not exist yet.

use path::RelPath;
use serde::Deserialize;
use text::visible::visible_line;

use super::answer::{Facts, iso_utc};
use crate::{
    engine::Answer,
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Operation, Planned, Target},
    view::View,
    workspace::{Committed, Lease, LeaseAsk},
};

/// The arguments of `lock`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lock {
    path: String,
    seconds: Option<u64>,
}

impl Lock {
    fn seconds(&self) -> Result<u64, Failure> {
        let seconds = self.seconds.unwrap_or(limits::LEASE_SECONDS_DEFAULT);
        if (1..=limits::LEASE_SECONDS_MAX).contains(&seconds) {
            return Ok(seconds);
        }
        Err(Failure::new(Kind::BadRequest, format!("a lease cannot last {seconds} seconds"))
            .hint(format!("seconds is 1 to {}", limits::LEASE_SECONDS_MAX)))
    }
}

impl Operation for Lock {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        self.seconds()?;
        Ok(vec![Ask::write(held(&self.path))])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let path = targets[0].path.clone();
        let lasting_ms = i64::try_from(self.seconds()?.saturating_mul(1000)).unwrap_or(i64::MAX);
        let ends_ms = view.workspace().now_ms().saturating_add(lasting_ms);
        let finish = Box::new(|lease: &Lease, committed: &Committed| {
            let ends = iso_utc(lease.ends_ms);
            let text = format!("{} is yours until {ends}, fence {}", shown(&lease.path), lease.fence);
            answered(lease, committed, text)
        });
        Ok(Planned::Lease { ask: LeaseAsk::Take { path, ends_ms }, finish })
    }
}

/// The spelling without trailing slashes: a lease on `src/` is one on `src`.
pub(super) fn held(spelling: &str) -> &str {
    let trimmed = spelling.trim_end_matches('/');
    if trimmed.is_empty() { spelling } else { trimmed }
}

/// A path in a sentence.
pub(super) fn shown(path: &RelPath) -> String {
    visible_line(&path.to_wire()).into_owned()
}

/// The answer of `lock` and `unlock`.
pub(super) fn answered(lease: &Lease, committed: &Committed, text: String) -> Answer {
    Facts::new()
        .with("path", lease.path.to_string())
        .with("holder", lease.holder.clone())
        .with("fence", lease.fence)
        .with("ends", iso_utc(lease.ends_ms))
        .committed(committed)
        .line(text)
}
