//! The digests that bind an approval to a call and its plan. Every hashed field is prefixed with its length, so that
//! two different plans never hash the same bytes. The digest omits the expiry time of trash items, which would differ
//! whenever the call is repeated.

use stead_journal::{Digest, JournalEntryRelation};
use stead_path::RelPath;

use crate::{
    call_context::{CallContext, TooDeepEntryPolicy},
    errors::Error,
    operation::ResolvedTarget,
    plan::{
        CommitExpectation, FileKind, FileModeSource, Plan, PlanTimeFileVersion, PlannedChange, PlannedContent,
        TreeSummary,
    },
    recorded_arguments::UnredactedCallArguments,
    tree::FileIdentity,
    version::Version,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ApprovalBindingDigests {
    pub(crate) call_digest: Digest,
    pub(crate) plan_digest: Digest,
}

pub(crate) fn digest_call(context: &CallContext<'_>, arguments: &UnredactedCallArguments) -> Digest {
    let mut out = ApprovalDigestWriter::new("call");
    let tool = context.options.tool.as_deref();
    out.write_text(context.operation);
    out.write_number(u64::from(tool.is_some()));
    out.write_text(tool.unwrap_or_default());
    arguments.write_digest(&mut out);
    out.digest()
}

pub(crate) fn digest_targets(context: &CallContext<'_>, call: &Digest, targets: &[ResolvedTarget]) -> Digest {
    let mut out = ApprovalDigestWriter::new("look");
    out.write_bytes(call.as_bytes());
    out.write_number(context.policy.policy.version());
    for target in targets {
        out.write_path(&target.path);
    }
    out.digest()
}

pub(crate) fn digest_plan(context: &CallContext<'_>, call: &Digest, plan: &Plan) -> Result<Digest, Error> {
    let mut out = ApprovalDigestWriter::new("plan");
    out.write_bytes(call.as_bytes());
    out.write_number(context.policy.policy.version());
    out.write_text(&relation_words(&plan.link));
    out.write_number(plan.changes.len() as u64);
    for change in &plan.changes {
        write_change(&mut out, context, change)?;
    }
    Ok(out.digest())
}

/// Words such as `Undoes(12)` must never change, because the digests of pending approvals contain them.
fn relation_words(link: &JournalEntryRelation) -> String {
    match link {
        JournalEntryRelation::None => "None".to_owned(),
        JournalEntryRelation::Undoes(number) => format!("Undoes({number})"),
        JournalEntryRelation::Redoes(number) => format!("Redoes({number})"),
        JournalEntryRelation::Restores(trash) => format!("Restores(\"{trash}\")"),
        JournalEntryRelation::Amends(number) => format!("Amends({number})"),
    }
}

fn write_change(
    out: &mut ApprovalDigestWriter,
    context: &CallContext<'_>,
    change: &PlannedChange,
) -> Result<(), Error> {
    match change {
        PlannedChange::Put { path, expectation, content, version, size, mode } => {
            out.write_text("put");
            out.write_path(path);
            out.write_expectation(expectation);
            out.write_content(content);
            out.write_version(version);
            out.write_number(*size);
            out.write_mode(mode);
        }
        PlannedChange::MakeDirectory { path, mode } => {
            out.write_text("make_directory");
            out.write_path(path);
            out.write_number(u64::from(*mode));
        }
        PlannedChange::MakeLink { path, target } => {
            out.write_text("make_link");
            out.write_path(path);
            out.write_bytes(target);
        }
        PlannedChange::Move { from, to, expectation, replaced, tree } => {
            out.write_text("move");
            out.write_path(from);
            out.write_path(to);
            out.write_expectation(expectation);
            out.write_expectation(replaced);
            out.write_tree(context, from, expectation, tree)?;
        }
        PlannedChange::Remove { path, expectation, retain_until_ms: _, tree } => {
            out.write_text("remove");
            out.write_path(path);
            out.write_expectation(expectation);
            out.write_tree(context, path, expectation, tree)?;
        }
        PlannedChange::RemoveDirectory { path } => {
            out.write_text("remove_directory");
            out.write_path(path);
        }
        PlannedChange::Restore { trash, path, tree } => {
            out.write_text("restore");
            out.write_text(trash);
            out.write_path(path);
            out.write_tree_size(tree);
        }
    }
    Ok(())
}

pub(crate) struct ApprovalDigestWriter(Vec<u8>);

impl ApprovalDigestWriter {
    fn new(subject: &str) -> Self {
        let mut writer = Self(Vec::with_capacity(512));
        writer.write_text("stead approval 1");
        writer.write_text(subject);
        writer
    }

    fn digest(&self) -> Digest {
        Version::hash_bytes(&self.0).0
    }

    pub(crate) fn write_number(&mut self, number: u64) {
        self.0.extend(number.to_be_bytes());
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        self.write_number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    pub(crate) fn write_text(&mut self, text: &str) {
        self.write_bytes(text.as_bytes());
    }

    fn write_path(&mut self, path: &RelPath) {
        self.write_bytes(path.as_bytes());
    }

    fn write_version(&mut self, version: &Version) {
        self.write_bytes(version.0.as_bytes());
    }

    fn write_expectation(&mut self, expectation: &CommitExpectation) {
        match expectation {
            CommitExpectation::Absent => self.write_text("absent"),
            CommitExpectation::File(PlanTimeFileVersion { version, .. }) => {
                self.write_text("file");
                self.write_version(version);
            }
            CommitExpectation::SameEntry(identity) => {
                self.write_text("node");
                self.write_identity(identity);
            }
        }
    }

    fn write_identity(&mut self, identity: &FileIdentity) {
        self.0.extend(identity.0);
    }

    fn write_content(&mut self, content: &PlannedContent) {
        match content {
            // The bytes themselves are not written here, because the version that follows identifies them.
            PlannedContent::Bytes(_) => self.write_text("bytes"),
            PlannedContent::Retained(version) => {
                self.write_text("kept");
                self.write_version(version);
            }
            PlannedContent::CopyOf(path, seen) => {
                self.write_text("copy");
                self.write_path(path);
                self.write_version(&seen.version);
            }
        }
    }

    fn write_mode(&mut self, mode: &FileModeSource) {
        match mode {
            FileModeSource::KeepExisting => self.write_text("keep"),
            FileModeSource::Set(bits) => {
                self.write_text("set");
                self.write_number(u64::from(*bits));
            }
            FileModeSource::CopyFrom(path, seen) => {
                self.write_text("like");
                self.write_path(path);
                self.write_version(&seen.version);
            }
        }
    }

    fn write_tree_size(&mut self, tree: &TreeSummary) {
        self.write_text(match tree.kind {
            FileKind::File => "file",
            FileKind::Directory => "directory",
            FileKind::Link => "link",
            FileKind::Special => "special",
        });
        self.write_number(tree.files);
        self.write_number(tree.directories);
        self.write_number(tree.bytes);
    }

    /// Hashes the stamp of every entry of a tree, so that the digest changes if an entry is replaced or written. A directory
    /// counts as itself, because the entries in it are hashed anyway.
    fn write_tree(
        &mut self,
        context: &CallContext<'_>,
        top: &RelPath,
        expectation: &CommitExpectation,
        tree: &TreeSummary,
    ) -> Result<(), Error> {
        self.write_tree_size(tree);
        if tree.kind != FileKind::Directory || *expectation == CommitExpectation::Absent {
            return Ok(());
        }
        let Some(stat) = context.workspace().stat(top)? else { return Ok(()) };
        let mut inner = ApprovalDigestWriter::new("tree");
        context.walk(top, stat, TooDeepEntryPolicy::Skip, &mut |entry| {
            inner.write_path(entry.path);
            match entry.stat.kind {
                FileKind::Directory => inner.write_identity(&entry.stat.identity),
                FileKind::File | FileKind::Link | FileKind::Special => inner.0.extend(entry.stat.stamp.0),
            }
            Ok(())
        })?;
        let digest = inner.digest();
        self.write_bytes(digest.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_written_in_the_words_of_version_1() {
        for (link, words) in [
            (JournalEntryRelation::None, "None"),
            (JournalEntryRelation::Undoes(7), "Undoes(7)"),
            (JournalEntryRelation::Redoes(8), "Redoes(8)"),
            (JournalEntryRelation::Restores("t-0a1b".to_owned()), "Restores(\"t-0a1b\")"),
            (JournalEntryRelation::Amends(9), "Amends(9)"),
        ] {
            assert_eq!(relation_words(&link), words);
        }
    }
}
