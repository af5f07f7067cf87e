//! How a recorded change is shown to a caller. Owns the words for kinds of change, and what of a change somebody may
//! see who may not read every place it touched.

use journal::{Change, ChangeKind, State};
use path::RelPath;
use serde_json::{Map, Value};
use text::visible::visible_line;

use super::answer::Facts;
use crate::{version::Version, view::View};

/// Changes of one entry that are shown at once.
pub(crate) const CHANGES_SHOWN_MAX: usize = 20;

/// One change as a caller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The place it is about.
    pub(crate) path: String,
    /// What happened there.
    pub(crate) kind: &'static str,
    /// Where it went.
    pub(crate) to: Option<String>,
    /// The file it left.
    pub(crate) left: Option<Left>,
}

/// A file that a change left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) version: Version,
    pub(crate) size: u64,
}

impl Shown {
    /// The whole change, for whoever made it.
    pub(crate) fn whole(change: &Change) -> Self {
        Self { path: change.path.clone(), kind: kind(change.kind), to: change.to.clone(), left: left(&change.after) }
    }

    /// The change as far as this caller may see it: to somebody who sees one end of a move, it is a removal or a
    /// creation.
    pub(crate) fn seen_by(view: &View<'_>, change: &Change) -> Option<Self> {
        let sees = |wire: &str| RelPath::from_wire(wire).is_ok_and(|path| view.may_read(&path));
        match (sees(&change.path), change.to.as_deref()) {
            (true, None) => Some(Self::whole(change)),
            (false, None) => None,
            (true, Some(to)) if sees(to) => Some(Self::whole(change)),
            (false, Some(to)) if sees(to) => {
                Some(Self { path: to.to_owned(), kind: kind(ChangeKind::Create), to: None, left: left(&change.after) })
            }
            (true, Some(_)) if change.kind == ChangeKind::Rename => {
                Some(Self { path: change.path.clone(), kind: kind(ChangeKind::Remove), to: None, left: None })
            }
            // A copy into a place that is out of sight leaves the source as it was.
            (true | false, Some(_)) => None,
        }
    }

    /// The object for machines.
    pub(crate) fn object(self) -> Map<String, Value> {
        Facts::new()
            .with("path", self.path)
            .with("kind", self.kind)
            .maybe("to", self.to)
            .maybe("size", self.left.map(|left| left.size))
            .maybe("version", self.left.map(|left| left.version.short()))
            .object()
    }

    /// One line for models.
    pub(crate) fn line(&self) -> String {
        let mut line = format!("{} {}", self.kind, visible_line(&self.path));
        if let Some(to) = &self.to {
            line.push_str(&format!(" -> {}", visible_line(to)));
        }
        if let Some(left) = self.left {
            line.push_str(&format!(" ({} bytes)", left.size));
        }
        line
    }
}

fn kind(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Create => "create",
        ChangeKind::Modify => "modify",
        ChangeKind::Remove => "remove",
        ChangeKind::Rename => "rename",
        ChangeKind::Copy => "copy",
        ChangeKind::MakeDir => "make_dir",
        ChangeKind::MakeLink => "make_link",
        ChangeKind::SetMode => "set_mode",
    }
}

fn left(state: &State) -> Option<Left> {
    match state {
        State::File { version, size, .. } => Some(Left { version: Version(*version), size: *size }),
        State::Absent | State::Directory { .. } | State::Link { .. } | State::Tree { .. } => None,
    }
}
