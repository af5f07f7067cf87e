//! The context of one call: the caller, its options, and read access to the workspace. A call context checks every read
//! against the caller's scope, even if the path is not an argument of the call. A call context never changes files.

use std::sync::{PoisonError, RwLock};

use stead_path::{FileName, RelPath};

use crate::{
    byte_sources::{ByteRelease, ByteSource, judge_sources},
    call_options::{BeforeAfterContentInclusion, CallOptions},
    caller::Caller,
    control::CallControl,
    engine::{BeforeAfterBytes, CallMetadata},
    errors::{Error, ErrorKind},
    limits,
    operation::ResolvedTarget,
    plan::{FileKind, PlanTimeFileVersion, TreeSummary},
    policy::{ActivePolicy, PathAccessRight, PolicyCallAttributes, RequiredPathAccess, SupervisionTier},
    seen_files::{LastSeenFile, SeenFileCache, ShownFile},
    tree::{BytesToRead, DirectoryEntry, FileBytesWithVersion, FileStat, FileStatLookupResult},
    unsaved::LazyWorkspaceBufferSnapshot,
    version::Version,
    workspace_reader::WorkspaceReader,
};

pub(crate) struct CallContext<'a> {
    workspace: WorkspaceReader<'a>,
    pub(crate) caller: &'a Caller,
    pub(crate) control: &'a CallControl<'a>,
    pub(crate) options: &'a CallOptions,
    pub(crate) policy: &'a ActivePolicy,
    pub(crate) operation: &'a str,
    /// The paths that the pipeline authorized this call to read; empty if the policy does not restrict reading.
    allowed_targets: RwLock<Vec<RelPath>>,
    pub(crate) buffers: LazyWorkspaceBufferSnapshot,
    pub(crate) seen_files: Option<&'a SeenFileCache>,
    /// The path and the content of a merged write, as the caller sent them before the merge.
    submitted: RwLock<Option<(RelPath, Vec<u8>)>>,
}

pub(crate) struct VisitedEntry<'a> {
    pub(crate) path: &'a RelPath,
    pub(crate) stat: FileStat,
}

impl<'a> CallContext<'a> {
    pub(crate) fn new(
        workspace: WorkspaceReader<'a>,
        call: &CallMetadata<'a>,
        operation: &'a str,
        policy: &'a ActivePolicy,
    ) -> Self {
        Self {
            workspace,
            caller: call.caller,
            control: call.control,
            options: call.options,
            policy,
            operation,
            allowed_targets: RwLock::default(),
            buffers: LazyWorkspaceBufferSnapshot::default(),
            seen_files: None,
            submitted: RwLock::default(),
        }
    }

    /// The argument `bytes` is the whole file content; `None` if the session saw only a part of the file.
    pub(crate) fn remember(&self, path: &RelPath, version: Version, bytes: Option<&[u8]>) {
        if let Some(seen_files) = self.seen_files {
            let unsaved_file = self.unsaved_file(path).ok().flatten();
            let unsaved = unsaved_file.is_some_and(|file| file.saved_version.version != version);
            seen_files.remember(self.caller, path, ShownFile { version, bytes, unsaved });
        }
    }

    pub(crate) fn set_submitted_content(&self, submitted: Option<(RelPath, Vec<u8>)>) {
        *self.submitted.write().unwrap_or_else(PoisonError::into_inner) = submitted;
    }

    /// After a merge, the caller knows the submitted content, not the merged content.
    pub(crate) fn content_known_to_caller(&self, path: &RelPath, version: Version, bytes: &[u8]) -> (Version, Vec<u8>) {
        let submitted = self.submitted.read().unwrap_or_else(PoisonError::into_inner);
        match submitted.as_ref().filter(|(submitted_path, _)| submitted_path == path) {
            Some((_, submitted)) => (Version::hash_bytes(submitted), submitted.clone()),
            None => (version, bytes.to_vec()),
        }
    }

    pub(crate) fn last_seen(&self, path: &RelPath) -> Option<LastSeenFile> {
        self.reveal(path, self.seen_files?.last_seen(self.caller, path)).flatten()
    }

    pub(crate) fn for_other_caller(&self, caller: &'a Caller, operation: &'a str, options: &'a CallOptions) -> Self {
        let call = CallMetadata { caller, idempotency_key: None, options, control: self.control };
        Self {
            seen_files: self.seen_files,
            ..Self::new(self.workspace.with_empty_log(), &call, operation, self.policy)
        }
    }

    pub(crate) fn allow_targets(&self, targets: &[ResolvedTarget]) {
        if self.policy.policy.restricts_reading() {
            let mut allowed = self.allowed_targets.write().unwrap_or_else(PoisonError::into_inner);
            *allowed = targets.iter().map(|target| target.path.clone()).collect();
        }
    }

    /// The supervision tier that a tool declares applies only to agents, because a person's call implies consent.
    pub(crate) fn policy_subject(&self) -> PolicyCallAttributes<'a> {
        let (principal, tool) = (&self.caller.principal, self.options.tool.as_deref());
        let declared_tier = self.options.declared_tier.filter(|_| principal.is_agent());
        PolicyCallAttributes { principal, operation: self.operation, tool, declared_tier }
    }

    /// A path whose reading needs approval is readable only for a call that names the path.
    fn policy_allows_read(&self, path: &RelPath) -> bool {
        let subject = self.policy_subject();
        let tier = |right| self.policy.policy.evaluate(&subject, &RequiredPathAccess::new(right, path)).tier;
        tier(PathAccessRight::Read).max(tier(PathAccessRight::List)) < SupervisionTier::ApprovalRequired
            || self.allowed_targets.read().unwrap_or_else(PoisonError::into_inner).contains(path)
    }

    /// The looks of this reader are not checked against the caller's scope, but their sources are logged.
    pub(crate) fn workspace(&self) -> &WorkspaceReader<'a> {
        &self.workspace
    }

    /// Asks the judge about everything that the call has looked at, before its reply leaves the engine.
    pub(crate) fn release_reply<T>(&self, reply: T) -> Result<T, Error> {
        judge_sources(self, &*self.workspace.logged_sources(), ByteRelease::Reply).map(|()| reply)
    }

    /// Withholds a value about a file, such as its version, if the caller may not read the file.
    pub(crate) fn reveal<T>(&self, path: &RelPath, value: T) -> Option<T> {
        self.require_readable(path).ok().map(|()| value)
    }

    pub(crate) fn before_after(
        &self,
        path: &RelPath,
        before: Option<&[u8]>,
        after: Option<&[u8]>,
    ) -> Option<BeforeAfterBytes> {
        match self.options.before_after {
            BeforeAfterContentInclusion::Omit => None,
            BeforeAfterContentInclusion::Include => Some(BeforeAfterBytes {
                path: path.clone(),
                before: before.map(<[u8]>::to_vec),
                after: after.map(<[u8]>::to_vec),
            }),
        }
    }

    /// Whether the caller's grants, without the policy, allow reading a path.
    pub(crate) fn has_read_grant(&self, path: &RelPath) -> bool {
        let grants = &self.caller.grants;
        grants.readable.iter().any(|granted| path.is_within(granted)) && !grants.hidden.covers(path)
    }

    pub(crate) fn may_read(&self, path: &RelPath) -> bool {
        self.has_read_grant(path) && (!self.policy.policy.restricts_reading() || self.policy_allows_read(path))
    }

    pub(crate) fn has_full_read_access(&self) -> bool {
        let grants = &self.caller.grants;
        let granted = grants.hidden.is_empty() && grants.readable.iter().any(RelPath::is_root);
        granted && !self.policy.policy.restricts_reading()
    }

    /// Whether the caller may list a path, because the path or something below it is readable.
    pub(crate) fn may_traverse(&self, path: &RelPath) -> bool {
        let grants = &self.caller.grants;
        let allowed = || grants.readable.iter().any(|granted| granted.is_within(path));
        self.may_read(path) || (allowed() && !grants.hidden.covers(path))
    }

    pub(crate) fn require_readable(&self, path: &RelPath) -> Result<(), Error> {
        judge_sources(self, [&ByteSource::File(path.clone())], ByteRelease::Shown)
    }

    fn must_filter_names(&self, directory: &RelPath) -> bool {
        self.policy.policy.restricts_reading() || !self.caller.grants.hidden.is_empty() || !self.may_read(directory)
    }

    pub(crate) fn stat_names(
        &self,
        directory: &RelPath,
        names: &[FileName],
    ) -> Result<Vec<FileStatLookupResult>, Error> {
        let reader = self.workspace.open_directory(directory)?;
        let mut stats: Vec<FileStatLookupResult> = names.iter().map(|name| reader.stat(name)).collect();
        if self.must_filter_names(directory) {
            for (name, stat) in names.iter().zip(&mut stats) {
                if let Err(error) = self.require_readable(&directory.join(name)?) {
                    *stat = Err(error);
                }
            }
        }
        Ok(stats)
    }

    /// Reads the unsaved text of a file if an editor has one, otherwise the content on disk.
    pub(crate) fn read(&self, path: &RelPath, want: BytesToRead) -> Result<FileBytesWithVersion, Error> {
        self.require_readable(path)?;
        self.read_for_change(path, want)
    }

    /// Reads a file that the caller wants to change, even if the caller lacks read permission. The outcome of the call
    /// must not show the bytes of a file that the caller may not read.
    pub(crate) fn read_for_change(&self, path: &RelPath, want: BytesToRead) -> Result<FileBytesWithVersion, Error> {
        match self.unsaved_file(path)? {
            Some(unsaved) => unsaved.read(want),
            None => self.read_saved(path, want),
        }
    }

    fn read_saved(&self, path: &RelPath, want: BytesToRead) -> Result<FileBytesWithVersion, Error> {
        self.workspace.read_while(path, want, &|| self.control.check())
    }

    pub(crate) fn observe_version(&self, path: &RelPath) -> Result<PlanTimeFileVersion, Error> {
        if let Some(unsaved) = self.unsaved_file(path)? {
            return Ok(unsaved.observed_version());
        }
        Ok(self.read_saved(path, BytesToRead::VersionOnly)?.observed())
    }

    pub(crate) fn list_visible(&self, path: &RelPath) -> Result<Vec<DirectoryEntry>, Error> {
        let mut names = self.workspace.list(path)?;
        self.retain_visible(path, &mut names);
        Ok(names)
    }

    pub(crate) fn retain_visible(&self, directory: &RelPath, names: &mut Vec<DirectoryEntry>) {
        if self.must_filter_names(directory) {
            names.retain(|listed| directory.join(&listed.name).is_ok_and(|child| self.may_traverse(&child)));
        }
    }

    /// The short name of a file version: `r17` if journal entry 17 produced the version, otherwise a part of its hash.
    pub(crate) fn revision_name(&self, path: &RelPath, version: &Version) -> String {
        match self.workspace.entry_of_version(path, version) {
            Ok(Some(number)) => format!("r{number}"),
            Ok(None) | Err(_) => version.short_form(),
        }
    }

    /// Returns the entries of a directory in reverse order, because a walk takes entries from the end of its stack.
    fn children(&self, path: &RelPath, deep_entries: TooDeepEntryPolicy) -> Result<Vec<(RelPath, FileStat)>, Error> {
        let (reader, listed) = self.workspace.open_and_list(path)?;
        let mut names: Vec<FileName> = listed.into_iter().map(|listed| listed.name).collect();
        names.reverse();
        if deep_entries == TooDeepEntryPolicy::Skip {
            names.retain(|name| path.join(name).is_ok());
        }
        let mut children = Vec::with_capacity(names.len());
        for name in &names {
            // `None` means that another program removed the entry after it was listed.
            if let Some(stat) = reader.stat(name)? {
                children.push((path.join(name)?, stat));
            }
        }
        Ok(children)
    }

    /// Calls `visit` for every entry of a tree, directories before their entries, without following symlinks.
    pub(crate) fn walk(
        &self,
        top: &RelPath,
        stat: FileStat,
        deep_entries: TooDeepEntryPolicy,
        visit: &mut dyn FnMut(VisitedEntry<'_>) -> Result<(), Error>,
    ) -> Result<TreeSummary, Error> {
        let mut tree = TreeSummary { kind: stat.kind, files: 0, directories: 0, bytes: 0 };
        let mut pending = vec![(top.clone(), stat)];
        while let Some((path, stat)) = pending.pop() {
            self.control.check()?;
            match stat.kind {
                FileKind::Directory => {
                    tree.directories += 1;
                    pending.extend(self.children(&path, deep_entries)?);
                }
                FileKind::File | FileKind::Link | FileKind::Special => {
                    tree.files += 1;
                    tree.bytes += stat.size;
                }
            }
            visit(VisitedEntry { path: &path, stat })?;
            let done = tree.files + tree.directories;
            if done.is_multiple_of(PROGRESS_INTERVAL_ENTRIES) {
                self.control.report_entries(PROGRESS_INTERVAL_ENTRIES);
            }
            if done + pending.len() as u64 > limits::TREE_ENTRIES_MAX {
                return Err(Error::new(
                    ErrorKind::TooLarge,
                    format!("{top} contains more than {} entries", limits::TREE_ENTRIES_MAX),
                )
                .with_next_step("divide the work into calls on smaller directories"));
            }
        }
        Ok(tree)
    }
}

/// What a walk does at an entry whose path exceeds the limits for paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooDeepEntryPolicy {
    Fail,
    Skip,
}

const PROGRESS_INTERVAL_ENTRIES: u64 = 512;
