//! The policy file: found, loaded, and reloaded when it changes. Promises: with a policy that cannot be read or parsed
//! every call is refused; the loaded policy is used as long as the file is unchanged.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use stead_disk::{DirectoryHandle, DiskErrorKind, InodeFingerprint, RootDirectory, RootOptions};
use stead_engine::{ActivePolicy, Error, ErrorKind, Policy, PolicyFileLocation};
use stead_path::{FileName, RelPath};

use crate::store::lock_ignoring_poison;

/// Default policy file in the state directory.
pub(crate) const POLICY_FILE: &str = "policy.toml";
const POLICY_BYTES_MAX: u64 = 1 << 20;
/// A file modified this recently is reread at every call: a second change might have the same timestamps.
const FINGERPRINT_SAFE_AGE_NS: i128 = 2_000_000_000;

/// The location of the policy and its last loaded state.
pub(crate) struct PolicyFile {
    directory: DirectoryHandle,
    name: FileName,
    /// The path as written by the operator.
    display_path: PathBuf,
    presence: PolicyFilePresence,
    /// The path below the root, if the file is in the workspace.
    path_in_workspace: Option<RelPath>,
    cached: Mutex<CachedPolicy>,
}

/// Whether the file must exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PolicyFilePresence {
    /// The operator named it.
    Required,
    Optional,
}

struct CachedPolicy {
    /// The file that was loaded, if there was one.
    fingerprint: Option<InodeFingerprint>,
    reuse: PolicyCacheReuse,
    result: Result<ActivePolicy, Error>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PolicyCacheReuse {
    Allowed,
    Reread,
}

impl PolicyFile {
    /// Finds and loads the policy. A malformed one fails here, before anything is served.
    pub(crate) fn open(named: Option<&Path>, state: &Path, workspace: &str, now_ns: i128) -> Result<Self, Error> {
        let (file, presence) = match named {
            Some(file) => (file.to_owned(), PolicyFilePresence::Required),
            None => (state.join(POLICY_FILE), PolicyFilePresence::Optional),
        };
        let unusable = |what: &str| {
            Error::new(ErrorKind::PolicyDenied, format!("cannot load the policy {}: {what}", file.display()))
        };
        let file_name = file.file_name().and_then(|name| FileName::new(name.as_encoded_bytes()).ok());
        let name = file_name.ok_or_else(|| unusable("not a file name"))?;
        let parent = match file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            Some(_) | None => PathBuf::from("."),
        };
        let root =
            RootDirectory::open(&parent, RootOptions::default()).map_err(|error| unusable(&error.to_string()))?;
        let directory = root.open_directory(&RelPath::root()).map_err(|error| unusable(&error.to_string()))?;
        let inside = path_inside_workspace(workspace, root.absolute_path(), &name);
        let nothing =
            CachedPolicy { fingerprint: None, reuse: PolicyCacheReuse::Reread, result: Ok(ActivePolicy::built_in()) };
        let rules = Self {
            directory,
            name,
            display_path: file,
            presence,
            path_in_workspace: inside,
            cached: Mutex::new(nothing),
        };
        rules.current_policy(now_ns)?;
        Ok(rules)
    }

    /// The policy in force. One stat per call; the file is reread only if it changed.
    pub(crate) fn current_policy(&self, now_ns: i128) -> Result<ActivePolicy, Error> {
        let seen = match self.directory.stat(&self.name) {
            Ok(stat) => stat.map(|stat| stat.fingerprint),
            Err(error) => return Err(self.unusable_policy_error(error.to_string())),
        };
        let mut last = lock_ignoring_poison(&self.cached);
        let is_same = last.fingerprint == seen && last.reuse == PolicyCacheReuse::Allowed;
        if !is_same {
            let settled = match seen {
                Some(stamp) if now_ns - stamp.changed_ns < FINGERPRINT_SAFE_AGE_NS => PolicyCacheReuse::Reread,
                Some(_) => PolicyCacheReuse::Allowed,
                None => PolicyCacheReuse::Allowed,
            };
            *last = CachedPolicy { fingerprint: seen, reuse: settled, result: self.read_policy(seen) };
        }
        last.result.clone()
    }

    fn read_policy(&self, seen: Option<InodeFingerprint>) -> Result<ActivePolicy, Error> {
        let Some(stamp) = seen else {
            return match self.presence {
                PolicyFilePresence::Required => Err(self.unusable_policy_error("there is no such file")),
                PolicyFilePresence::Optional => Ok(ActivePolicy::built_in()),
            };
        };
        let file = self.directory.open_file(&self.name).map_err(|error| {
            let linked = error.kind == DiskErrorKind::IsSymlink;
            self.unusable_policy_error(if linked {
                "it is a symlink; name the file itself".to_owned()
            } else {
                error.to_string()
            })
        })?;
        let bytes = file.read_all(POLICY_BYTES_MAX).map_err(|error| self.unusable_policy_error(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| self.unusable_policy_error("it is not UTF-8"))?;
        let policy = Policy::parse(&text).map_err(|error| {
            self.unusable_policy_error(error.to_string())
                .with_detail("line", error.line)
                .with_detail("reason", error.reason)
        })?;
        let identity = (stamp.id.dev, stamp.id.ino);
        let file_location =
            self.path_in_workspace.clone().map(|path| PolicyFileLocation { path, device_and_inode: identity });
        Ok(ActivePolicy { policy: Arc::new(policy), file_location })
    }

    fn unusable_policy_error(&self, what: impl std::fmt::Display) -> Error {
        let file = self.display_path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Error::new(ErrorKind::PolicyDenied, format!("all calls are refused: cannot load the policy {file}: {what}"))
            .with_next_step("ask the operator to fix the policy")
    }

    /// The policy may be anywhere, also in the workspace, so this is no state directory error.
    fn unwritable(&self, error: stead_disk::DiskError) -> Error {
        let file = self.display_path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Error::new(ErrorKind::Io, format!("cannot write the policy {file}: {error}"))
    }

    /// The path as written by the operator.
    pub(crate) fn display_path(&self) -> &Path {
        &self.display_path
    }

    /// The directory that must stay readable in the Landlock sandbox.
    pub(crate) fn parent_directory(&self) -> PathBuf {
        match self.display_path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            Some(_) | None => PathBuf::from("."),
        }
    }

    /// The current text, or `None` if there is no file.
    pub(crate) fn text(&self) -> Result<Option<String>, Error> {
        match self.directory.open_file(&self.name) {
            Err(error) if error.kind == DiskErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.unusable_policy_error(error)),
            Ok(file) => {
                let bytes = file.read_all(POLICY_BYTES_MAX).map_err(|error| self.unusable_policy_error(error))?;
                String::from_utf8(bytes).map(Some).map_err(|_| self.unusable_policy_error("it is not UTF-8"))
            }
        }
    }

    /// Replaces the text atomically. Rejects a malformed one.
    pub(crate) fn write_policy(&self, text: &str) -> Result<(), Error> {
        Policy::parse(text).map_err(|error| self.unusable_policy_error(error.to_string()))?;
        let attributes = stead_disk::AttributeSource::New { mode: POLICY_MODE };
        let staged = self
            .directory
            .stage_file(stead_disk::ContentSource::Bytes(text.as_bytes()), attributes)
            .map_err(|error| self.unwritable(error))?;
        let placed = staged.sync().and_then(|()| self.directory.replace_with_staged(&staged, &self.name));
        if let Err(error) = placed {
            staged.discard(&self.directory).unwrap_or_default();
            return Err(self.unwritable(error));
        }
        self.directory.sync().map_err(|error| self.unwritable(error))
    }
}

const POLICY_MODE: u32 = 0o600;

/// The path of a file below the workspace root, if it is there.
fn path_inside_workspace(workspace: &str, parent: &str, name: &FileName) -> Option<RelPath> {
    let rest = Path::new(parent).strip_prefix(workspace).ok()?;
    let above = RelPath::from_components(rest.components().map(|part| part.as_os_str().as_encoded_bytes())).ok()?;
    above.join(name).ok()
}
