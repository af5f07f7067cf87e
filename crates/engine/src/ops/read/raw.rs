//! The bytes themselves, for a dialect that shows them in its own form. The answer has the facts, its evidence the bytes.

use super::{super::answer::iso_utc, Part, facts};
use crate::{
    failure::{Failure, Kind},
    limits,
    operation::{Planned, Target},
    view::View,
    workspace::Want,
};

/// Reads the whole file or a range of its bytes.
pub(super) fn bytes(view: &View<'_>, target: &Target, part: Part) -> Result<Planned, Failure> {
    let want = match part {
        Part::Start => Want::Whole { limit_bytes: limits::READ_WHOLE_BYTES_MAX },
        Part::Bytes(range) => {
            Want::Range { offset: range.first, length: range.length().min(limits::READ_BYTES_MAX) }
        }
        Part::Lines(_) => {
            return Err(Failure::new(Kind::BadRequest, "bytes themselves have no lines").hint("give bytes"));
        }
    };
    let file = view.read(&target.path, want)?;
    view.remember(&target.path, file.version, matches!(part, Part::Start).then_some(&file.bytes));
    let rev = view.rev(&target.path, &file.version);
    let bytes = file.bytes.len() as u64;
    let answer = facts(target, &file.version, rev, &file.node, String::new())
        .with("modified", iso_utc(file.node.modified_ms))
        .line(format!("{bytes} bytes of {}", target.path))
        .with_evidence(view.evidence(&target.path, Some(&file.bytes), None));
    Ok(Planned::Read { answer, bytes })
}
