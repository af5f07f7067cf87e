//! Taking back a change of a file's content: the earlier bytes come back if nobody wrote since; otherwise the earlier
//! text is merged with the later one, and only a clean merge is used.

use path::RelPath;
use text::{
    encoding::{self, Detected, Encoding},
    merge::{self, Merged},
};

use super::{Found, Maker, Outcome, Policy, Reason};
use crate::{
    limits,
    ops::standing::MODE_BITS,
    plan::{Change, Content, Expect, Mode, Seen, Top},
    version::Version,
    workspace::{Node, Want},
};

/// A file as the journal knows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recorded {
    pub(super) version: Version,
    pub(super) size: u64,
    pub(super) mode: u32,
}

impl Maker<'_> {
    /// A file was changed: its earlier content comes back.
    pub(super) fn modified(&mut self, path: &RelPath, before: Recorded, after: Recorded) -> Outcome {
        let node = match self.sketch.at(path)? {
            Found::Real(node) if node.top == Top::File => node,
            Found::Real(_) => return Ok(Some(Reason::OtherKind)),
            Found::Absent => return Ok(Some(Reason::AlreadyGone)),
            Found::Planned(_) => return Ok(Some(Reason::Twice)),
        };
        let seen = self.view.observe(path)?;
        let mode = earlier_mode(before, after, node);
        if seen.version == before.version && mode == Mode::Keep {
            return Ok(Some(Reason::AlreadySo));
        }
        if seen.version == before.version {
            self.put(path, seen, Content::CopyOf(path.clone(), seen), before.version, before.size, mode);
            return Ok(None);
        }
        if seen.version == after.version {
            if self.view.workspace().kept(&before.version)?.is_none() {
                return Ok(Some(Reason::NotKept));
            }
            self.put(path, seen, Content::Kept(before.version), before.version, before.size, mode);
            return Ok(None);
        }
        match self.policy {
            Policy::Exact => Ok(Some(Reason::Changed)),
            Policy::Merge => self.merged(path, node, before, after),
        }
    }

    fn merged(&mut self, path: &RelPath, node: Node, before: Recorded, after: Recorded) -> Outcome {
        if node.size.max(before.size).max(after.size) > limits::DIFF_BYTES_MAX {
            return Ok(Some(Reason::Changed));
        }
        let workspace = self.view.workspace();
        let current = self.view.read_for_change(path, Want::Whole { limit_bytes: limits::DIFF_BYTES_MAX })?;
        let (base, theirs) = (workspace.kept(&after.version)?, workspace.kept(&before.version)?);
        let (Some(base), Some(theirs)) = (base, theirs) else {
            return Ok(Some(Reason::NotKept));
        };
        let Some((ours, encoding)) = decoded(&current.bytes) else {
            return Ok(Some(Reason::Changed));
        };
        let (Some((base, _)), Some((theirs, _))) = (decoded(&base), decoded(&theirs)) else {
            return Ok(Some(Reason::Changed));
        };
        let Merged::Clean(text) = merge::merge(&base, &ours, &theirs) else {
            return Ok(Some(Reason::Touching));
        };
        let Ok(bytes) = encoding::encode(&text, encoding) else {
            return Ok(Some(Reason::Changed));
        };
        let version = Version::of(&bytes);
        if version == current.version {
            return Ok(Some(Reason::AlreadySo));
        }
        let seen = Seen { version: current.version, stamp: current.node.stamp };
        let size = bytes.len() as u64;
        self.put(path, seen, Content::Bytes(bytes), version, size, Mode::Keep);
        self.inverse.merged.push(path.clone());
        Ok(None)
    }

    fn put(&mut self, path: &RelPath, seen: Seen, content: Content, version: Version, size: u64, mode: Mode) {
        self.sketch.planned(path, Top::File);
        let (path, expect) = (path.clone(), Expect::File(seen));
        self.inverse.changes.push(Change::Put { path, expect, content, version, size, mode });
    }
}

/// The permission bits to go back to, when the entry changed them and nobody did since.
fn earlier_mode(before: Recorded, after: Recorded, node: Node) -> Mode {
    let (earlier, left) = (before.mode & MODE_BITS, after.mode & MODE_BITS);
    if earlier != left && node.mode & MODE_BITS == left { Mode::Set(earlier) } else { Mode::Keep }
}

fn decoded(bytes: &[u8]) -> Option<(String, Encoding)> {
    match encoding::detect(bytes) {
        Detected::Text { encoding } => Some((encoding::decode(bytes, encoding).ok()?.into_owned(), encoding)),
        Detected::Binary => None,
    }
}
