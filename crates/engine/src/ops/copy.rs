//! `copy`: a file or a whole tree is made again at another place. Links are made again when they stay inside from
//! where they then are; pipes, sockets and devices are never copied; what is left out is reported.

use path::RelPath;
use serde::Deserialize;
use serde_json::{Value, json};
use text::visible::visible_line;

use super::{
    answer::Facts,
    r#move::{Overwrite, replaceable},
    parents,
    standing::{self, MODE_BITS},
};
use crate::{
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Need, Operation, Planned, Target},
    plan::{Change, Content, Expect, Mode, Plan, Seen, Top, Tree},
    view::View,
    workspace::{Last, Node},
};

/// The arguments of `copy`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Copy {
    from: String,
    to: String,
    base: Option<String>,
    #[serde(default)]
    overwrite: bool,
}

impl Operation for Copy {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        let from = Ask::read(&self.from);
        let to = Ask::spelled(&self.to, Need::Write, Last::Keep);
        Ok(vec![from.with_base(self.base.as_deref())?, to])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let (source, place) = (&targets[0], &targets[1]);
        let node = standing::present(source)?;
        standing::movable(view, source, node)?;
        if !view.may_read(&source.path) {
            return Err(Failure::new(Kind::OutOfScope, "that place is outside what you may read"));
        }
        match node.top {
            Top::File => self.file(view, source, node, place),
            Top::Directory => tree(view, source, node, place),
            // A link was followed, so one that is still here is dangling or changed under us.
            Top::Link | Top::Special => Err(Failure::new(
                Kind::NotRegular,
                format!("{} is neither a file nor a directory", source.path),
            )
            .hint("only files and directories are copied")),
        }
    }
}

impl Copy {
    fn file(&self, view: &View<'_>, source: &Target, node: Node, place: &Target) -> Result<Planned, Failure> {
        let (from, to) = (source.path.clone(), place.path.clone());
        let seen = match source.seen {
            Some(seen) => seen,
            None => view.observe(&from)?,
        };
        let (expect, mode) = match place.node {
            None => (Expect::Absent, Mode::Set(node.mode & MODE_BITS)),
            Some(there) => {
                replaceable(&to, node.top, there.top, self.overwrite.into())?;
                (Expect::File(view.observe(&to)?), Mode::Keep)
            }
        };
        if standing::expected_file(&expect).is_some_and(|there| there.version == seen.version) {
            return Ok(same(view, &from, &to, &seen));
        }
        let created = expect == Expect::Absent;
        let size = seen.stamp.size;
        within_limit(size)?;
        let mut changes = parents::missing(view, &to)?;
        let (path, content) = (to.clone(), Content::CopyOf(from.clone(), seen));
        changes.push(Change::Put { path, expect, content, version: seen.version, size, mode });
        Ok(Planned::Change {
            plan: Plan::of(changes),
            finish: Box::new(move |committed| {
                let rev = format!("r{}", committed.number);
                let text = format!("copied {from} to {to} ({rev}, {size} bytes)");
                Facts::new()
                    .with("from", from.to_string())
                    .with("path", to.to_string())
                    .file(&seen.version, rev)
                    .with("size", size)
                    .with("created", created)
                    .with("changed", true)
                    .committed(committed)
                    .line(text)
            }),
        })
    }
}

fn same(view: &View<'_>, from: &RelPath, to: &RelPath, seen: &Seen) -> Planned {
    let answer = Facts::new()
        .with("from", from.to_string())
        .with("path", to.to_string())
        .file(&seen.version, view.rev(to, &seen.version))
        .with("size", seen.stamp.size)
        .with("created", false)
        .with("changed", false)
        .line(format!("{to} already has this content; nothing was changed"));
    Planned::Read { answer, bytes: 0 }
}

/// Something of a tree that is not copied.
struct Skipped {
    path: RelPath,
    reason: &'static str,
}

/// A tree being copied: what to make, and what is left out.
struct Copied {
    changes: Vec<Change>,
    skipped: Vec<Skipped>,
    tree: Tree,
}

fn tree(view: &View<'_>, source: &Target, node: Node, place: &Target) -> Result<Planned, Failure> {
    let (from, to) = (source.path.clone(), place.path.clone());
    // Only the root may be copied into itself: everything else has a place outside to go to.
    if to.is_within(&from) && !from.is_root() {
        return Err(Failure::new(Kind::InvalidPath, format!("{from} cannot be copied into itself"))
            .hint("choose a place outside of it"));
    }
    if let Some(there) = place.node {
        replaceable(&to, node.top, there.top, Overwrite::No)?;
    }
    let Copied { changes, skipped, tree } = gather(view, &from, node, &to)?;
    let mut all = parents::missing(view, &to)?;
    all.extend(changes);
    Ok(Planned::Change {
        plan: Plan::of(all),
        finish: Box::new(move |committed| {
            let mut text =
                format!("copied {from} to {to} ({}, r{})", standing::amount(&tree), committed.number);
            if !skipped.is_empty() {
                text.push_str(&format!("; {} not copied:", skipped.len()));
            }
            for left_out in skipped.iter().take(limits::REPORTED_PATHS_MAX) {
                let place = left_out.path.to_wire();
                text.push_str(&format!("\n  {}: {}", visible_line(&place), left_out.reason));
            }
            let shown: Vec<Value> = skipped
                .iter()
                .take(limits::REPORTED_PATHS_MAX)
                .map(|left_out| json!({ "path": left_out.path.to_string(), "reason": left_out.reason }))
                .collect();
            let omitted = skipped.len() - shown.len();
            Facts::new()
                .with("from", from.to_string())
                .with("path", to.to_string())
                .with("rev", format!("r{}", committed.number))
                .with("created", true)
                .with("changed", true)
                .with("files", tree.files)
                .with("directories", tree.directories)
                .with("bytes", tree.bytes)
                .with("skipped", shown)
                .maybe("skipped_omitted", (omitted > 0).then_some(omitted))
                .committed(committed)
                .answer(text)
        }),
    })
}

/// Walks the source and lists what to make, parents before children. The new place is not part of the source.
fn gather(view: &View<'_>, from: &RelPath, node: Node, to: &RelPath) -> Result<Copied, Failure> {
    let nothing = Tree { top: Top::Directory, files: 0, directories: 0, bytes: 0 };
    let mut copied = Copied { changes: Vec::new(), skipped: Vec::new(), tree: nothing };
    view.walk(from, node, &mut |met| {
        let Some(rest) = met.path.below(from) else { return Ok(()) };
        if met.path.is_within(to) {
            return Ok(());
        }
        let path = to.append(&rest)?;
        let tree = &mut copied.tree;
        match met.node.top {
            Top::Directory => {
                tree.directories += 1;
                // The owner must be able to put things into it, whatever the source said.
                let mode = met.node.mode & MODE_BITS | OWNER_BITS;
                copied.changes.push(Change::MakeDirectory { path, mode });
            }
            Top::File => {
                let seen = view.observe(met.path)?;
                let size = seen.stamp.size;
                tree.files += 1;
                tree.bytes = tree.bytes.saturating_add(size);
                within_limit(tree.bytes)?;
                copied.changes.push(Change::Put {
                    path,
                    expect: Expect::Absent,
                    content: Content::CopyOf(met.path.clone(), seen),
                    version: seen.version,
                    size,
                    mode: Mode::Set(met.node.mode & MODE_BITS),
                });
            }
            Top::Link => {
                let target = view.workspace().read_link(met.path)?;
                if stays_inside(&path, &target) {
                    tree.files += 1;
                    copied.changes.push(Change::MakeLink { path, target });
                } else {
                    copied
                        .skipped
                        .push(Skipped { path: met.path.clone(), reason: "the link would lead outside" });
                }
            }
            Top::Special => {
                copied
                    .skipped
                    .push(Skipped { path: met.path.clone(), reason: "it is a pipe, socket or device" });
            }
        }
        Ok(())
    })?;
    Ok(copied)
}

/// What an owner needs to make things in a directory.
const OWNER_BITS: u32 = 0o700;

fn within_limit(bytes: u64) -> Result<(), Failure> {
    if bytes <= limits::COPY_BYTES_MAX {
        return Ok(());
    }
    Err(Failure::new(Kind::TooLarge, format!("more than {} bytes in one copy", limits::COPY_BYTES_MAX))
        .hint("copy a smaller subtree")
        .fact("limit_bytes", limits::COPY_BYTES_MAX))
}

/// Whether a link at `place` that says `target` is relative and, read by its letters, never climbs above the root.
fn stays_inside(place: &RelPath, target: &[u8]) -> bool {
    if target.starts_with(b"/") {
        return false;
    }
    let mut depth = place.depth().saturating_sub(1);
    for component in target.split(|byte| *byte == b'/') {
        match component {
            b"" | b"." => {}
            b".." => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return false,
            },
            _ => depth += 1,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_inside_or_are_left_out() {
        let inside =
            |place: &str, target: &str| stays_inside(&RelPath::from_wire(place).unwrap(), target.as_bytes());
        assert!(inside("cp/link", "pipe"));
        assert!(inside("cp/link", "../f"));
        assert!(inside("a/b/link", "../../f"));
        assert!(!inside("cp/link", "../../f"));
        assert!(!inside("link", "../out/secret"));
        assert!(!inside("link", "a/../../out"));
        assert!(!inside("link", "/etc/passwd"));
    }
}
