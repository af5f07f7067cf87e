//! `diff`: what lies between two versions of one file, as a unified diff. A version is named by the entry that left
//! it, by its sha256, or by the start of that; it must be one that this file had, so that nobody reads kept bytes of
//! another place by guessing their hash.

use path::RelPath;
use serde::Deserialize;
use text::{
    diff::summary,
    encoding::{Detected, decode, detect},
    unified::{Labels, unified},
    visible::visible,
};

use super::answer::{Cut, Facts, page};
use crate::{
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Operation, Planned, Target},
    plan::Top,
    resolve,
    version::{Base, Version},
    view::View,
    workspace::{EntryFilter, FileBytes, Order, Want, Which},
};

/// The arguments of `diff`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Diff {
    path: String,
    from: String,
    to: Option<String>,
}

/// One side of a comparison.
pub(crate) struct Side {
    /// How it is called in the diff.
    pub(crate) label: String,
    /// The version; nothing when no file was there.
    pub(crate) version: Option<Version>,
    pub(crate) bytes: Vec<u8>,
}

impl Operation for Diff {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Base::parse(&self.from)?;
        self.to.as_deref().map(Base::parse).transpose()?;
        Ok(vec![Ask::read(&self.path)])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let target = &targets[0];
        let current = current(view, target)?;
        let old = named(view, &target.path, &self.from, &current)?;
        let new = match &self.to {
            Some(to) => named(view, &target.path, to, &current)?,
            None => current,
        };
        compare(&target.path, &old, &new)
    }
}

/// The file as it is now.
fn current(view: &View<'_>, target: &Target) -> Result<Side, Failure> {
    match target.node.map(|node| node.top) {
        None => Ok(absent("now")),
        Some(Top::File) => {
            let want = Want::Whole { limit_bytes: limits::DIFF_BYTES_MAX };
            let file = view.read(&target.path, want).map_err(|failure| {
                if failure.kind == Kind::TooLarge { too_large(&target.path) } else { failure }
            })?;
            Ok(Side { label: "now".to_owned(), version: Some(file.version), bytes: file.bytes })
        }
        Some(Top::Directory | Top::Link | Top::Special) => {
            super::read::file_at(target).map(|_| absent("now"))
        }
    }
}

fn absent(label: &str) -> Side {
    Side { label: label.to_owned(), version: None, bytes: Vec::new() }
}

/// The file as a caller names it.
pub(crate) fn named(view: &View<'_>, path: &RelPath, written: &str, current: &Side) -> Result<Side, Failure> {
    let version = match Base::parse(written)? {
        Base::Absent => return Ok(absent("nothing")),
        Base::Rev(number) => match resolve::version_at(view, number, path) {
            Ok(version) => version,
            Err(_) if took_away(view, number, path)? => return Ok(absent(written)),
            Err(failure) => return Err(failure),
        },
        Base::Version(version) => had(view, path, written, current, &|known| *known == version)?,
        Base::Prefix(digits) => {
            had(view, path, written, current, &|known| known.to_string().starts_with(&digits))?
        }
    };
    let label = match Base::parse(written)? {
        Base::Rev(_) => written.to_owned(),
        Base::Absent | Base::Version(_) | Base::Prefix(_) => version.short(),
    };
    if current.version == Some(version) {
        return Ok(Side { label, version: Some(version), bytes: current.bytes.clone() });
    }
    let recalled = view.last_seen(path).filter(|seen| seen.unsaved && seen.version == version);
    if let Some(bytes) = recalled.and_then(|seen| seen.bytes) {
        return Ok(Side { label, version: Some(version), bytes: bytes.to_vec() });
    }
    if let Some(saved) = saved(view, path)?.filter(|saved| saved.version == version) {
        return Ok(Side { label, version: Some(version), bytes: saved.bytes });
    }
    let bytes = view.workspace().kept(&version)?.ok_or_else(|| expired(path, written))?;
    if bytes.len() as u64 > limits::DIFF_BYTES_MAX {
        return Err(too_large(path));
    }
    Ok(Side { label, version: Some(version), bytes })
}

/// What is on disk of a file whose text is not saved, if it can be compared.
fn saved(view: &View<'_>, path: &RelPath) -> Result<Option<FileBytes>, Failure> {
    if view.unsaved_readable(path).is_none() {
        return Ok(None);
    }
    match view.workspace().read(path, Want::Whole { limit_bytes: limits::DIFF_BYTES_MAX }) {
        Ok(file) => Ok(Some(file)),
        Err(failure) if failure.kind == Kind::TooLarge => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// What changed in a file since the version that a caller names, at most `limit_lines` of it; nothing when that cannot
/// be told.
pub(crate) fn since(view: &View<'_>, target: &Target, written: &str, limit_lines: usize) -> Option<String> {
    let new = current(view, target).ok()?;
    let old = named(view, &target.path, written, &new).ok()?;
    let labels = Labels { old: &old.label, new: &new.label };
    let (before, after) = (text_of(&old.bytes)?, text_of(&new.bytes)?);
    let found = unified(&before, &after, labels, limits::DIFF_CONTEXT_LINES, limit_lines);
    let omitted = match found.omitted_lines {
        0 => String::new(),
        lines => format!("… and {lines} more lines\n"),
    };
    Some(page(&found.text, limits::PAGE_CHARS).text.to_owned() + &omitted)
}

/// Whether an entry left nothing at this path: it removed or moved it, or a directory above it.
fn took_away(view: &View<'_>, number: u64, path: &RelPath) -> Result<bool, Failure> {
    let Some(stored) = view.workspace().entry(number)? else { return Ok(false) };
    let taken = stored.entry.changes.iter().any(|change| {
        let above = RelPath::from_wire(&change.path).is_ok_and(|place| path.is_within(&place));
        above && matches!(change.kind, journal::ChangeKind::Remove | journal::ChangeKind::Rename)
    });
    Ok(taken)
}

/// The version of this file that fits, among those it has and those its history names.
fn had(
    view: &View<'_>,
    path: &RelPath,
    written: &str,
    current: &Side,
    fits: &dyn Fn(&Version) -> bool,
) -> Result<Version, Failure> {
    if let Some(version) = current.version.filter(|version| fits(version)) {
        return Ok(version);
    }
    if let Some(seen) = view.last_seen(path).filter(|seen| seen.unsaved && fits(&seen.version)) {
        return Ok(seen.version);
    }
    let on_disk = view.unsaved_readable(path).map(|unsaved| unsaved.saved.version);
    if let Some(version) = on_disk.filter(|version| fits(version)) {
        return Ok(version);
    }
    let filter = EntryFilter {
        path: Some(path.clone()),
        what: Which::Changes,
        order: Order::NewestFirst,
        limit: limits::ENTRIES_SCANNED_MAX,
        ..EntryFilter::default()
    };
    let wire = path.to_wire();
    let entries = view.workspace().entries(&filter)?;
    let known = entries.iter().flat_map(|stored| &stored.entry.changes).flat_map(|change| {
        let before = (change.path == wire).then_some(&change.before);
        let after = (change.to.as_deref().unwrap_or(&change.path) == wire).then_some(&change.after);
        [before, after]
    });
    known.flatten().filter_map(version_in).find(|version| fits(version)).ok_or_else(|| expired(path, written))
}

fn version_in(state: &journal::State) -> Option<Version> {
    match state {
        journal::State::File { version, .. } => Some(Version(*version)),
        journal::State::Absent
        | journal::State::Directory { .. }
        | journal::State::Link { .. }
        | journal::State::Tree { .. }
        | journal::State::Unknown { .. } => None,
    }
}

fn expired(path: &RelPath, written: &str) -> Failure {
    Failure::new(Kind::Expired, format!("the bytes of {written} of {path} are not kept"))
        .hint(format!("call history with path {path} for versions that are, or read {path} again"))
}

fn too_large(path: &RelPath) -> Failure {
    let limit = limits::DIFF_BYTES_MAX;
    Failure::new(
        Kind::TooLarge,
        format!("{path} has more than {limit} bytes, which is the most that diff compares"),
    )
    .hint(format!("call read with path {path} and a range of bytes"))
}

fn compare(path: &RelPath, old: &Side, new: &Side) -> Result<Planned, Failure> {
    let (Some(before), Some(after)) = (text_of(&old.bytes), text_of(&new.bytes)) else {
        let same = if old.bytes == new.bytes { "the same" } else { "different" };
        return Err(Failure::new(Kind::NotText, format!("{path} is not text; its bytes are {same}"))
            .hint("compare the versions, or read both as base64")
            .fact("from_size", old.bytes.len())
            .fact("to_size", new.bytes.len()));
    };
    let labels = Labels { old: &format!("{path} {}", old.label), new: &format!("{path} {}", new.label) };
    let found = unified(&before, &after, labels, limits::DIFF_CONTEXT_LINES, limits::DIFF_LINES_MAX);
    let size = summary(&before, &after);
    let shown = page(&found.text, limits::PAGE_CHARS);
    let truncated = found.truncated() || shown.cut != Cut::Whole;
    let seen = visible(shown.text);
    let mut text = page(&seen, limits::PAGE_CHARS).text.to_owned();
    if text.is_empty() {
        text.push_str(if old.bytes == new.bytes { "no differences" } else { "only the encoding differs" });
    } else {
        text.push_str(&format!("[+{} -{} lines]", size.added, size.removed));
    }
    if truncated {
        text.push_str(&format!("\n… truncated: read {path} for all of it"));
    }
    let version =
        |side: &Side| side.version.map_or_else(|| "absent".to_owned(), |version| version.to_string());
    let answer = Facts::new()
        .with("path", path.to_string())
        .with("from", version(old))
        .with("to", version(new))
        .with("diff", shown.text)
        .with("added", size.added)
        .with("removed", size.removed)
        .with("truncated", truncated)
        .answer(text);
    Ok(Planned::Read { answer, bytes: (old.bytes.len() + new.bytes.len()) as u64 })
}

/// Bytes as text, if they are text that comes back byte for byte.
pub(crate) fn text_of(bytes: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    match detect(bytes) {
        Detected::Text { encoding } => decode(bytes, encoding).ok(),
        Detected::Binary => None,
    }
}
