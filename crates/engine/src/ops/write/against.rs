//! A write that is merged: what the caller changed since the text it knows, brought together with what others changed
//! since. Owns which text that is, and how it is told.

use std::borrow::Cow;

use path::RelPath;
use serde_json::json;
use text::merge::{ConflictRange, Merged, merge};

use super::{Now, Write, base_required, formed};
use crate::{
    failure::{Failure, Kind},
    limits,
    operation::Target,
    ops::{
        answer::span,
        diff::{self, Side},
        encode_like, encoded, text_of,
    },
    terms::{Form, Making, Terms, Unseen},
    version::Version,
    view::View,
};

/// Places of a conflict that its text names; the rest is in its facts.
const LINES_SHOWN: usize = 5;

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
        now: &Now<'_>,
        content: Cow<'c, str>,
    ) -> Result<(Cow<'c, str>, Standing), Failure> {
        view.gave(None);
        if self.encoding.as_deref().is_some_and(encoded::carries_bytes) {
            return Err(Failure::new(Kind::BadRequest, "what is merged is text, not base64")
                .hint("write with mode exact and a base"));
        }
        let path = &target.path;
        let Some(known) = self.known(view, target, now)? else {
            return match view.terms.unseen {
                Unseen::Yields => Ok((content, Standing::AsGiven)),
                Unseen::Stays => Err(base_required(view, target, &now.version)),
            };
        };
        if known.version == now.version {
            return Ok((content, Standing::AsGiven));
        }
        let theirs = now.bytes.ok_or_else(|| {
            Failure::new(Kind::TooLarge, format!("{path} cannot be merged; nothing was written"))
                .hint("write with mode exact and a base")
        })?;
        let (Some(base), Some(text)) = (text_of(&known.bytes), text_of(theirs)) else {
            return Err(Failure::new(Kind::NotText, format!("{path} is not text; nothing was written"))
                .hint("read it again, then write with its version as base"));
        };
        let (base, ours) = alike(view.terms, &base, &content, theirs);
        if base == text {
            return Ok((content, Standing::AsGiven));
        }
        match merge(&base, &ours, &text) {
            // The caller knew all of it, wherever it knew it from.
            Merged::Clean(text) if text == ours => Ok((Cow::Owned(text), Standing::AsGiven)),
            Merged::Clean(text) => {
                view.gave(Some((path.clone(), encode_like(&ours, theirs)?)));
                Ok((Cow::Owned(text), Standing::Merged(view.rev(path, &known.version))))
            }
            Merged::Conflict(ranges) => Err(conflict(view, path, now, &ranges)),
        }
    }

    /// The text that the caller named, or that its face remembers, or that its session last saw.
    fn known(&self, view: &View<'_>, target: &Target, now: &Now<'_>) -> Result<Option<Known>, Failure> {
        let version = Some(now.version);
        let held = || now.bytes.unwrap_or_default().to_vec();
        if let Some(written) = &self.base {
            let side = Side { label: "now".to_owned(), version, bytes: held() };
            let named = diff::named(view, &target.path, written, &side)?;
            return Ok(named.version.map(|version| Known { version, bytes: named.bytes }));
        }
        if let Some(text) = &view.terms.knows {
            let bytes = text.as_bytes().to_vec();
            return Ok(Some(Known { version: Version::of(&bytes), bytes }));
        }
        let Some(seen) = view.last_seen(&target.path) else { return Ok(None) };
        if Some(seen.version) == version {
            return Ok(Some(Known { version: seen.version, bytes: held() }));
        }
        let bytes = match seen.bytes {
            Some(bytes) => Some(bytes.to_vec()),
            None => view.workspace().kept(&seen.version)?,
        };
        Ok(bytes.map(|bytes| Known { version: seen.version, bytes }))
    }
}

/// What is known and what is given, in one form, so that line endings alone are no change.
fn alike(terms: &Terms, base: &str, content: &str, theirs: &[u8]) -> (String, String) {
    let plain = |text: &str| text.strip_prefix('\u{feff}').unwrap_or(text).to_owned();
    let (base, content) = (plain(base), plain(content));
    match terms.form {
        // A face remembers what the agent gave, whose endings may have been made others since.
        Form::AsGiven if terms.knows.is_some() => {
            (formed(Form::LinesOfReplaced, &base, Some(theirs)).into_owned(), content)
        }
        Form::AsGiven => (base, content),
        form @ (Form::OfReplaced | Form::LinesOfReplaced) => {
            // What is given takes on the endings of what was known first: what is there may have both by now.
            let ours = text::endings::alike(&content, &base).into_owned();
            (formed(form, &base, Some(theirs)).into_owned(), formed(form, &ours, Some(theirs)).into_owned())
        }
    }
}

/// Says where two changes meet. Lines are those of the file as it is now, counted from 1.
fn conflict(view: &View<'_>, path: &RelPath, now: &Now<'_>, ranges: &[ConflictRange]) -> Failure {
    let lines: Vec<(usize, usize)> = ranges
        .iter()
        .take(limits::FAILURE_PLACES_MAX)
        .map(|range| (range.theirs.start + 1, range.theirs.end.max(range.theirs.start + 1)))
        .collect();
    let shown: Vec<String> =
        lines.iter().take(LINES_SHOWN).map(|(first, last)| span(*first, *last)).collect();
    let more = if ranges.len() > LINES_SHOWN { " and more" } else { "" };
    let failure = Failure::new(
        Kind::Conflict,
        format!(
            "{path} was changed by others since you saw it, in lines {}{more}, where this write changes it too; \
             nothing was written",
            shown.join(", ")
        ),
    );
    let failure = match &view.terms.making {
        Making::Here => crate::resolve::with_current(view, failure, path, now.version),
        Making::Elsewhere(_) => failure,
    };
    failure
        .hint(format!("read {path} again, and change the current text"))
        .fact("lines", lines.iter().map(|(first, last)| json!([first, last])).collect::<Vec<_>>())
}
