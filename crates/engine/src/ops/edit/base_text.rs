//! The version that a caller read before it wrote its edits. Compares a base with the current file and finds the
//! stored bytes of an older version.

use super::EditedFile;
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    operation::ResolvedTarget,
    ops::diff::{self, DiffSide},
    version::{BaseVersion, Version},
};

pub(super) enum EditBase {
    /// The caller gave no base.
    Unspecified,
    /// The base is the current version.
    Current,
    /// An older version whose text is stored.
    Older(OlderFileText),
    /// Another version, as the caller wrote it; its bytes are not stored.
    Unavailable(String),
}

pub(super) struct OlderFileText {
    pub(super) version: Version,
    /// Short name, for example `r17`.
    pub(super) rev: String,
    pub(super) text: String,
}

pub(super) fn resolve_edit_base(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    current: &EditedFile,
    written: Option<&str>,
) -> Result<EditBase, Error> {
    let Some(written) = written else { return Ok(EditBase::Unspecified) };
    if BaseVersion::parse(written)? == BaseVersion::Absent {
        // The pipeline already checked that the file is absent.
        return Ok(EditBase::Current);
    }
    let now = DiffSide { label: "now".to_owned(), version: Some(current.version), bytes: current.bytes.clone() };
    let side = match diff::side_at_version(context, &target.path, written, &now) {
        Ok(side) => side,
        Err(error) if matches!(error.kind, ErrorKind::Expired | ErrorKind::TooLarge) => {
            return Ok(EditBase::Unavailable(written.to_owned()));
        }
        Err(error) => return Err(error),
    };
    match side.version {
        Some(version) if version == current.version => Ok(EditBase::Current),
        Some(version) => Ok(match diff::decode_diff_text(&side.bytes) {
            Some(text) => {
                let (rev, text) = (context.revision_name(&target.path, &version), text.into_owned());
                EditBase::Older(OlderFileText { version, rev, text })
            }
            None => EditBase::Unavailable(written.to_owned()),
        }),
        None => Ok(EditBase::Unavailable(written.to_owned())),
    }
}
