//! A write that is merged: what the caller changed since the text it knows, brought together with what others changed
//! since. Owns which text that is, and how it is told.

use std::borrow::Cow;

use text::merge::{Merged, merge};

use super::{Current, Write, base_required};
use crate::{
    failure::{Failure, Kind},
    limits,
    operation::Target,
    ops::{
        diff::{self, Side},
        text_of,
    },
    terms::Unseen,
    version::Version,
    view::View,
};

/// How the content of a write came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// As it was given.
    AsGiven,
    /// Merged with what others changed since this version, by its short name.
    Merged(String),
}

/// The text that a caller knows.
struct Known {
    version: Version,
    bytes: Vec<u8>,
}

impl Write {
    /// The content to write, merged where others changed the file.
    pub(super) fn merged<'c>(
        &self,
        view: &View<'_>,
        target: &Target,
        current: &Current,
        content: Cow<'c, str>,
    ) -> Result<(Cow<'c, str>, Standing), Failure> {
        if self.encoding.is_some() {
            return Err(Failure::new(Kind::BadRequest, "what is merged is text in the encoding of the file")
                .hint("leave encoding out, or write with mode exact"));
        }
        let path = &target.path;
        let now = current.bytes.as_deref().ok_or_else(|| {
            Failure::new(Kind::TooLarge, format!("{path} cannot be merged; nothing was written"))
                .hint("write with mode exact and a base")
        })?;
        let Some(known) = self.known(view, target, current, now)? else {
            return match view.terms.unseen {
                Unseen::Yields => Ok((content, Standing::AsGiven)),
                Unseen::Stays => Err(base_required(view, target, &current.seen.version)),
            };
        };
        if known.version == current.seen.version {
            return Ok((content, Standing::AsGiven));
        }
        let (Some(base), Some(theirs)) = (text_of(&known.bytes), text_of(now)) else {
            return Err(Failure::new(Kind::NotText, format!("{path} is not text; nothing was written"))
                .hint("read it again, then write with its version as base"));
        };
        match merge(&base, &content, &theirs) {
            Merged::Clean(text) => Ok((Cow::Owned(text), Standing::Merged(view.rev(path, &known.version)))),
            Merged::Conflict(ranges) => {
                let lines: Vec<Vec<usize>> = ranges
                    .iter()
                    .take(limits::FAILURE_PLACES_MAX)
                    .map(|range| vec![range.theirs.start + 1, range.theirs.end.max(range.theirs.start + 1)])
                    .collect();
                let failure = Failure::new(
                    Kind::Conflict,
                    format!("{path} was changed in the same lines since you saw it; nothing was written"),
                );
                Err(crate::resolve::with_current(view, failure, path, current.seen.version)
                    .hint(format!("read {path} again, and change the current text"))
                    .fact("lines", lines))
            }
        }
    }

    /// The text that the caller named, or that its session last saw.
    fn known(
        &self,
        view: &View<'_>,
        target: &Target,
        current: &Current,
        now: &[u8],
    ) -> Result<Option<Known>, Failure> {
        let version = Some(current.seen.version);
        if let Some(written) = &self.base {
            let side = Side { label: "now".to_owned(), version, bytes: now.to_vec() };
            let named = diff::named(view, &target.path, written, &side)?;
            return Ok(named.version.map(|version| Known { version, bytes: named.bytes }));
        }
        let Some(seen) = view.last_seen(&target.path) else { return Ok(None) };
        if Some(seen.version) == version {
            return Ok(Some(Known { version: seen.version, bytes: now.to_vec() }));
        }
        let bytes = match seen.bytes {
            Some(bytes) => Some(bytes.to_vec()),
            None => view.workspace().kept(&seen.version)?,
        };
        Ok(bytes.map(|bytes| Known { version: seen.version, bytes }))
    }
}
