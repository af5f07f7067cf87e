//! Raw bytes for a dialect with its own format. The outcome has the metadata; its `before_after` has the bytes.

use super::{super::outcome_builder::format_iso_utc, ReadPart, read_outcome_fields};
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    operation::{PlannedEffect, ResolvedTarget},
    workspace::BytesToRead,
};

/// Reads the whole file or a byte range.
pub(super) fn read_raw_bytes(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    part: ReadPart,
) -> Result<PlannedEffect, Error> {
    let want = match part {
        ReadPart::FirstPage => BytesToRead::Whole { limit_bytes: limits::READ_WHOLE_BYTES_MAX },
        ReadPart::Bytes(range) => {
            BytesToRead::Range { offset: range.first, length: range.length().min(limits::READ_BYTES_MAX) }
        }
        ReadPart::Lines(_) => {
            return Err(Error::new(ErrorKind::BadRequest, "raw bytes have no lines").with_next_step("give bytes"));
        }
    };
    let file = context.read(&target.path, want)?;
    context.remember(&target.path, file.version, matches!(part, ReadPart::FirstPage).then_some(&file.bytes));
    let rev = context.revision_name(&target.path, &file.version);
    let bytes = file.bytes.len() as u64;
    let answer = read_outcome_fields(target, &file.version, rev, &file.stat, String::new())
        .with_field("modified", format_iso_utc(file.stat.modified_ms))
        .build_one_line(format!("{bytes} bytes of {}", target.path))
        .with_before_after(context.before_after(&target.path, Some(&file.bytes), None));
    Ok(PlannedEffect::Read { outcome: answer, bytes })
}
