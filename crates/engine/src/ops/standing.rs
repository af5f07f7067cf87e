//! What stands at a place now, in the forms that a plan needs: what a commit shall expect there and how much it is.
//! Shared by everything that moves, removes or replaces. Never writes.

use path::RelPath;

use crate::{
    failure::{Failure, Kind},
    limits,
    operation::Target,
    plan::{Expect, Seen, Top, Tree},
    terms::Extent,
    view::View,
    workspace::Node,
};

/// Permission bits that a plan may set: no set-id, no sticky.
pub(crate) const MODE_BITS: u32 = 0o777;

/// What a commit shall find at a place where `node` was seen.
pub(crate) fn expected(
    view: &View<'_>,
    path: &RelPath,
    node: Node,
    seen: Option<Seen>,
) -> Result<Expect, Failure> {
    match (node.top, seen) {
        (Top::File, Some(seen)) => Ok(Expect::File(seen)),
        (Top::File, None) => Ok(Expect::File(view.observe(path)?)),
        (Top::Directory | Top::Link | Top::Special, _) => Ok(Expect::Node(node.stamp)),
    }
}

/// How much is at a place, with everything below it that a path can name.
pub(crate) fn counted(view: &View<'_>, path: &RelPath, node: Node) -> Result<Tree, Failure> {
    view.walk_whole(path, node, &mut |_| Ok(()))
}

/// Refuses what the terms do not let be copied or moved.
pub(crate) fn movable(view: &View<'_>, target: &Target, node: Node) -> Result<(), Failure> {
    let path = &target.path;
    match (view.terms.extent, node.top) {
        (Extent::Trees, _) | (Extent::Files, Top::File) => Ok(()),
        (Extent::Files, Top::Directory) => {
            Err(Failure::new(Kind::IsDirectory, format!("{path} is a directory"))
                .hint("take the files in it one by one"))
        }
        (Extent::Files, Top::Link | Top::Special) => {
            Err(Failure::new(Kind::NotRegular, format!("{path} is not a regular file"))
                .hint("only files can be taken"))
        }
    }
}

/// What is there, or the failure that tells where to look.
pub(crate) fn present(target: &Target) -> Result<Node, Failure> {
    target.node.ok_or_else(|| {
        let parent = target.path.parent().unwrap_or_default();
        Failure::new(Kind::NotFound, format!("{} does not exist", target.path))
            .hint(format!("call list with path {parent} to see what is there"))
    })
}

/// A file that is too large to be changed: where reading failed for its size, no range of it would help.
pub(crate) fn too_large_to_change(path: &RelPath, failure: Failure) -> Failure {
    if failure.kind != Kind::TooLarge {
        return failure;
    }
    let most = limits::WRITE_BYTES_MAX;
    Failure::new(Kind::TooLarge, format!("{path} has more than {most} bytes, the most that a change takes"))
        .hint("write to another file, or ask the person you work for to change it with another program")
        .fact("limit_bytes", most)
}

/// The version that a commit expects, when it expects a file.
pub(crate) fn expected_file(expect: &Expect) -> Option<Seen> {
    match expect {
        Expect::File(seen) => Some(*seen),
        Expect::Absent | Expect::Node(_) => None,
    }
}

/// Words for an amount: `3 files, 1200 bytes`.
pub(crate) fn amount(tree: &Tree) -> String {
    let files = if tree.files == 1 { "file" } else { "files" };
    format!("{} {files}, {} bytes", tree.files, tree.bytes)
}
