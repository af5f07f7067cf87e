//! Finds and loads the policy file of a workspace, and reloads it when it changes. If the policy file cannot be read or
//! parsed, every call is refused.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use stead_disk::{DirectoryHandle, DiskErrorKind, InodeFingerprint, OpenFile, RootDirectory, RootDirectoryOptions};
use stead_engine::{
    ActivePolicy, Error, ErrorKind, InWorkspacePolicyFileLocation, NextStep, Policy, limits::POLICY_BYTES_MAX,
};
use stead_path::{FileName, RelPath};

use crate::{store::lock_ignoring_poison, tree::to_engine_identity};

pub(crate) const POLICY_FILE: &str = "policy.toml";
const POLICY_MODE: u32 = 0o600;
/// A recently modified policy file is read again at every call, because a further change might not alter its timestamp.
const FINGERPRINT_SAFE_AGE_NS: i128 = 2_000_000_000;

pub(crate) struct PolicyFileLoader {
    directory: DirectoryHandle,
    name: FileName,
    /// The path of the policy file as written by the operator.
    display_path: PathBuf,
    /// Whether the policy file must exist, because the operator named the file.
    is_required: bool,
    /// The path of the policy file below the workspace root; `None` if the file is outside the workspace.
    path_in_workspace: Option<RelPath>,
    cached: Mutex<CachedPolicy>,
}

struct CachedPolicy {
    /// The fingerprint of the loaded policy file; `None` if there was no file.
    fingerprint: Option<InodeFingerprint>,
    is_reusable: bool,
    result: Result<ActivePolicy, Error>,
}

impl PolicyFileLoader {
    /// The server does not start with a malformed policy file.
    pub(crate) fn open(named: Option<&Path>, state: &Path, workspace: &str, now_ns: i128) -> Result<Self, Error> {
        let file = named.map_or_else(|| state.join(POLICY_FILE), Path::to_owned);
        let unusable = |reason: &str| {
            Error::new(ErrorKind::PolicyDenied, format!("cannot load the policy file {}: {reason}", file.display()))
                .with_next_step("correct the file, or name another one with --policy")
        };
        let file_name = file.file_name().and_then(|name| FileName::new(name.as_encoded_bytes()).ok());
        let name = file_name.ok_or_else(|| unusable("the path has no file name"))?;
        let opened = RootDirectory::open(&parent_or_current(&file), RootDirectoryOptions::default())
            .and_then(|root| Ok((root.open_directory(&RelPath::root())?, root)));
        let (directory, root) = opened.map_err(|error| unusable(&error.to_string()))?;
        let path_in_workspace = path_inside_workspace(workspace, root.absolute_path(), &name);
        let unread = CachedPolicy { fingerprint: None, is_reusable: false, result: Ok(ActivePolicy::built_in()) };
        let (is_required, cached) = (named.is_some(), Mutex::new(unread));
        let policy = Self { directory, name, display_path: file, is_required, path_in_workspace, cached };
        policy.current_policy(now_ns)?;
        Ok(policy)
    }

    /// Each call costs one stat of the policy file; the policy file is read again only if it has changed.
    pub(crate) fn current_policy(&self, now_ns: i128) -> Result<ActivePolicy, Error> {
        let stat = self.directory.stat(&self.name).map_err(|error| self.unusable_policy_error(error))?;
        let fingerprint = stat.map(|stat| stat.fingerprint);
        let mut cached = lock_ignoring_poison(&self.cached);
        if cached.fingerprint != fingerprint || !cached.is_reusable {
            let is_recent = fingerprint.is_some_and(|file| now_ns - file.changed_ns < FINGERPRINT_SAFE_AGE_NS);
            *cached = CachedPolicy { fingerprint, is_reusable: !is_recent, result: self.read_policy(fingerprint) };
        }
        cached.result.clone()
    }

    fn read_policy(&self, fingerprint: Option<InodeFingerprint>) -> Result<ActivePolicy, Error> {
        let Some(fingerprint) = fingerprint else {
            let missing = self.is_required.then(|| self.unusable_policy_error("there is no such file"));
            return missing.map_or_else(|| Ok(ActivePolicy::built_in()), Err);
        };
        let file =
            self.directory.open_file(&self.name).map_err(|error| match error.kind == DiskErrorKind::IsSymlink {
                true => self.unusable_policy_error("it is a symlink; name the file itself"),
                false => self.unusable_policy_error(error),
            })?;
        let policy = Policy::parse(&self.read_text(&file)?)
            .map_err(|error| self.unusable_policy_error(&error).with_line(error.line).with_reason(error.reason))?;
        let identity = to_engine_identity(fingerprint.id);
        let file_location = self.path_in_workspace.clone().map(|path| InWorkspacePolicyFileLocation { path, identity });
        Ok(ActivePolicy { policy: Arc::new(policy), file_location })
    }

    fn unusable_policy_error(&self, reason: impl std::fmt::Display) -> Error {
        let file = self.display_path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Error::new(
            ErrorKind::PolicyDenied,
            format!("all calls are refused: cannot load the policy file {file}: {reason}"),
        )
        .with_next_step(NextStep::ask_person("correct the policy file").then(NextStep::repeat()))
    }

    pub(crate) fn display_path(&self) -> &Path {
        &self.display_path
    }

    /// The directory of the policy file must stay readable in the Landlock sandbox.
    pub(crate) fn parent_directory(&self) -> PathBuf {
        parent_or_current(&self.display_path)
    }

    pub(crate) fn text(&self) -> Result<Option<String>, Error> {
        match self.directory.open_file(&self.name) {
            Err(error) if error.kind == DiskErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.unusable_policy_error(error)),
            Ok(file) => self.read_text(&file).map(Some),
        }
    }

    fn read_text(&self, file: &OpenFile) -> Result<String, Error> {
        let bytes = file.read_all(POLICY_BYTES_MAX).map_err(|error| self.unusable_policy_error(error))?;
        String::from_utf8(bytes).map_err(|_| self.unusable_policy_error("it is not UTF-8"))
    }

    pub(crate) fn write_policy(&self, text: &str) -> Result<(), Error> {
        Policy::parse(text).map_err(|error| self.unusable_policy_error(error))?;
        self.directory.write_file(&self.name, text.as_bytes(), POLICY_MODE).map_err(|error| {
            let file = self.display_path.file_name().unwrap_or_default().to_string_lossy();
            Error::new(ErrorKind::Io, format!("cannot write the policy file {file}: {error}"))
                .with_next_step("check the permissions of the file and its directory")
        })
    }
}

fn parent_or_current(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

fn path_inside_workspace(workspace: &str, parent: &str, name: &FileName) -> Option<RelPath> {
    let rest = Path::new(parent).strip_prefix(workspace).ok()?;
    let above = RelPath::from_components(rest.components().map(|part| part.as_os_str().as_encoded_bytes())).ok()?;
    above.join(name).ok()
}
