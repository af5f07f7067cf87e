//! A copy of a workspace at one position of its journal: nobody changes anything through stead while it is taken, blocks are
//! shared where the file system can, and the journal of the copy says where it comes from.

use std::time::{Duration, Instant};

use disk::{Attributes, Directory, FileType, Mode, Source};
use engine::{Caller, Failure, Kind, LockAsk, Workspace};
use journal::Link;
use path::{DEPTH_MAX, Name, RelPath};
use serde_json::{Value, json};

use super::{
    Description, Estate, FILES, WorkspaceAsk, WorkspaceName,
    make::{Begun, Filled, room_for},
};
use crate::{
    failure,
    group::{Outcome, Work},
    open::LocalWorkspace,
    store::{self, Sync},
};

/// Longest wait for a moment in which nobody changes anything.
const QUIET_WAIT: Duration = Duration::from_secs(10);
/// Files, links and directories of a workspace that can be copied.
const COPIED_MAX: u64 = 1_000_000;

/// What a copy holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Copied {
    /// Files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Links.
    pub links: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Pipes, sockets and devices, which are not copied.
    pub left_out: u64,
}

/// A copy and the position it was taken at.
pub(super) struct Taken {
    pub(super) copied: Copied,
    pub(super) origin: Value,
}

impl Estate {
    /// Makes a workspace that holds what another holds now. What is not asked for is as it is there.
    pub fn fork(
        &self,
        by: &Caller,
        from: &WorkspaceName,
        name: &WorkspaceName,
        ask: &WorkspaceAsk,
    ) -> Result<Description, Failure> {
        let id = self.ready(from.as_str())?.id;
        let source = self.enter_local(&id)?;
        let mut ask = ask.clone();
        if ask.policy.is_none() && ask.bytes_max.is_none() && ask.files_max.is_none() {
            ask.policy = source.policy_text()?;
        }
        self.make(by, "workspace_fork", name, &ask, &mut |begun| {
            let taken = self.take(&id, &source, begun)?;
            let fork = LocalWorkspace::open(self.options_of(&begun.row.id))?;
            fork.record_origin(by, &taken.origin)?;
            fork.close();
            Ok(Filled { origin: Some(taken.origin) })
        })
    }

    /// Copies a workspace into one that is being made.
    pub(super) fn take(&self, id: &str, source: &LocalWorkspace, begun: &Begun) -> Result<Taken, Failure> {
        let own = |error: disk::DiskError| failure::own(&error);
        // Nobody ends it while it is copied.
        let _shared = self.hold(id, Mode::Shared)?;
        let to = begun.directory.open_directory(&Name::new(FILES.as_bytes())?).map_err(own)?;
        let quiet = source.lock(&[LockAsk { path: RelPath::root() }], Instant::now() + QUIET_WAIT)?;
        let head = source.head()?;
        let from = source.root.open_directory(&RelPath::root()).map_err(own)?;
        let mut copied = Copied::default();
        copy_tree(&from, &to, 0, &mut copied)?;
        drop(quiet);
        let origin = json!({
            "workspace": id, "number": head.number, "hash": head.hash.to_string(), "files": copied.files,
            "directories": copied.directories, "links": copied.links, "bytes": copied.bytes, "left_out": copied.left_out,
        });
        Ok(Taken { copied, origin })
    }
}

/// Copies everything below a directory. Half-made files of calls, and the trash, are not part of a workspace.
fn copy_tree(from: &Directory, to: &Directory, depth: usize, copied: &mut Copied) -> Result<(), Failure> {
    let failed = |error: disk::DiskError| room_for(&error);
    for listed in from.list().map_err(failed)? {
        let name = &listed.name;
        if name.as_bytes().starts_with(path::TEMPORARY_PREFIX.as_bytes()) {
            continue;
        }
        if copied.files + copied.directories + copied.links >= COPIED_MAX || depth >= DEPTH_MAX {
            let limit =
                format!("the workspace has more than {COPIED_MAX} files, or is deeper than {DEPTH_MAX}");
            return Err(Failure::new(Kind::TooLarge, limit));
        }
        match listed.file_type {
            FileType::File => {
                let file = from.open_file(name).map_err(failed)?;
                let staged = to.stage(Source::File(&file), Attributes::Like(&file)).map_err(failed)?;
                to.place_new(&staged, name).map_err(failed)?;
                copied.files += 1;
                copied.bytes = copied.bytes.saturating_add(staged.size());
            }
            FileType::Directory => {
                let below = from.open_directory(name).map_err(failed)?;
                let mode = below.stat_self().map_err(failed)?.mode & 0o777;
                to.make_directory(name, mode | 0o700).map_err(failed)?;
                copied.directories += 1;
                copy_tree(&below, &to.open_directory(name).map_err(failed)?, depth + 1, copied)?;
                to.set_mode(name, mode).map_err(failed)?;
            }
            FileType::Link => {
                let target = from.read_link(name).map_err(failed)?;
                to.make_link(name, &target).map_err(failed)?;
                copied.links += 1;
            }
            FileType::Fifo
            | FileType::Socket
            | FileType::CharDevice
            | FileType::BlockDevice
            | FileType::Unknown => copied.left_out += 1,
        }
    }
    Ok(())
}

impl LocalWorkspace {
    /// The first entry of a fork: what it was taken from, and where that stood.
    fn record_origin(&self, by: &Caller, origin: &Value) -> Result<(), Failure> {
        let mut draft = self.system_draft("fork", origin.to_string(), Link::None);
        draft.entry.caller.principal = by.principal.to_string();
        let work: Work = Box::new(move |transaction, tip| {
            store::append(transaction, tip, &mut draft)?;
            Ok(Outcome::Recorded(draft.entry.number, tip.hash))
        });
        self.group.submit(&self.store, self.durability, Sync::Now, work).map(drop)
    }
}
