//! What a caller saw before it wrote its edits. Owns the comparison of a base with what is there, and the search for
//! the bytes of an older one among those that are kept.

use super::Current;
use crate::{
    failure::{Failure, Kind},
    operation::Target,
    ops::diff::{self, Side},
    version::{Base, Version},
    view::View,
};

/// What is known about the version a caller saw.
pub(super) enum Basis {
    /// The caller did not say.
    None,
    /// What is there now.
    Current,
    /// An older one, whose text is kept.
    Old(Old),
    /// Another one, as the caller wrote it; its bytes are not kept.
    Unknown(String),
}

/// An older text of the file.
pub(super) struct Old {
    pub(super) version: Version,
    /// As people call it: `r17`.
    pub(super) rev: String,
    pub(super) text: String,
}

pub(super) fn of(
    view: &View<'_>,
    target: &Target,
    current: &Current,
    written: Option<&str>,
) -> Result<Basis, Failure> {
    let Some(written) = written else { return Ok(Basis::None) };
    if Base::parse(written)? == Base::Absent {
        // The pipeline has seen that nothing is there.
        return Ok(Basis::Current);
    }
    let now = Side { label: "now".to_owned(), version: Some(current.version), bytes: current.bytes.clone() };
    let side = match diff::named(view, &target.path, written, &now) {
        Ok(side) => side,
        Err(failure) if matches!(failure.kind, Kind::Expired | Kind::TooLarge) => {
            return Ok(Basis::Unknown(written.to_owned()));
        }
        Err(failure) => return Err(failure),
    };
    match side.version {
        Some(version) if version == current.version => Ok(Basis::Current),
        Some(version) => Ok(match diff::text_of(&side.bytes) {
            Some(text) => {
                let (rev, text) = (view.rev(&target.path, &version), text.into_owned());
                Basis::Old(Old { version, rev, text })
            }
            None => Basis::Unknown(written.to_owned()),
        }),
        None => Ok(Basis::Unknown(written.to_owned())),
    }
}
