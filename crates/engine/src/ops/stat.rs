//! `stat`: what is at a place, without its content. A link is described itself, not what it points at.

use serde::Deserialize;
use text::visible::visible_line;

use super::answer::{Facts, iso_utc};
use crate::{
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Need, Operation, Planned, Target},
    plan::Top,
    terms::Evidence,
    view::View,
    workspace::{Last, Node, Want},
};

/// The arguments of `stat`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stat {
    path: String,
}

/// What stands for the target of a link that leads out of the workspace: nothing outside is ever named.
const OUTSIDE: &str = "(outside)";
/// Permission bits that are shown.
const MODE_MASK: u32 = 0o7777;

impl Operation for Stat {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(vec![Ask::spelled(&self.path, Need::Read, Last::Keep)])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let target = &targets[0];
        let path = &target.path;
        let Some(node) = target.node else {
            let parent = path.parent().unwrap_or_default();
            return Err(Failure::new(Kind::NotFound, format!("{path} does not exist"))
                .hint(format!("call list with path {parent} to see what is there")));
        };
        let size = view.unsaved_readable(path).map_or(node.size, |unsaved| unsaved.text.len() as u64);
        let node = Node { size, ..node };
        let kind = type_name(node.top);
        let mode = format!("{:04o}", node.mode & MODE_MASK);
        let modified = iso_utc(node.modified_ms);
        let mut text = format!("{}: {kind}", visible_line(&path.to_wire()));
        if node.top == Top::File {
            text.push_str(&format!(", {} bytes", node.size));
        }
        text.push_str(&format!(", mode {mode}, modified {modified}"));
        let mut facts = Facts::new()
            .with("path", path.to_string())
            .with("type", kind)
            .with("size", node.size)
            .with("modified", modified)
            .with("mode", mode);
        if view.terms.evidence == Evidence::Bytes {
            let more = view.workspace().particulars(path)?;
            facts = facts.maybe("created", more.created_ms.map(iso_utc)).maybe("owner", more.owner);
        }
        match node.top {
            Top::File => facts = with_version(view, target, &node, facts, &mut text)?,
            Top::Link => {
                let meant = link_target(view, target)?;
                text.push_str(&format!(", points at {}", visible_line(&meant)));
                facts = facts.with("target", meant);
            }
            Top::Directory | Top::Special => {}
        }
        Ok(Planned::Read { answer: facts.answer(text), bytes: 0 })
    }
}

/// The word for what something is.
pub(crate) fn type_name(top: Top) -> &'static str {
    match top {
        Top::File => "file",
        Top::Directory => "directory",
        Top::Link => "link",
        Top::Special => "other",
    }
}

/// Adds version, rev and the number of names. A file too large to be hashed in passing says so.
fn with_version(
    view: &View<'_>,
    target: &Target,
    node: &Node,
    facts: Facts,
    text: &mut String,
) -> Result<Facts, Failure> {
    let facts = if node.size > limits::STAT_VERSION_BYTES_MAX {
        text.push_str(", too large to hash in passing: read it for its version");
        facts
    } else {
        let file = view.read(&target.path, Want::Nothing)?;
        let rev = view.rev(&target.path, &file.version);
        text.push_str(&format!(", {rev}"));
        facts.file(&file.version, rev)
    };
    if node.links <= 1 {
        return Ok(facts);
    }
    text.push_str(&format!(", {} names", node.links));
    Ok(facts.with("links", node.links))
}

/// What a link says, as far as that lies inside. An absolute one is given relative to the root.
fn link_target(view: &View<'_>, target: &Target) -> Result<String, Failure> {
    let workspace = view.workspace();
    let written = workspace.read_link(&target.path)?;
    match workspace.locate(&target.path, Last::Follow) {
        Ok(place) if written.starts_with(b"/") => Ok(place.to_string()),
        Ok(_) => Ok(String::from_utf8_lossy(&written).into_owned()),
        Err(failure) if matches!(failure.kind, Kind::LinkLoop | Kind::NotFound | Kind::NotDirectory) => {
            let inside =
                !written.starts_with(b"/") && !written.split(|byte| *byte == b'/').any(|part| part == b"..");
            Ok(if inside { String::from_utf8_lossy(&written).into_owned() } else { OUTSIDE.to_owned() })
        }
        Err(_) => Ok(OUTSIDE.to_owned()),
    }
}
