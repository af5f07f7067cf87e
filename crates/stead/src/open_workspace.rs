//! Opens the workspace and builds the caller that the command-line flags describe.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use stead_disk::{RootDirectory, RootDirectoryOptions};
use stead_engine::{
    ApprovalMode, Caller, CallerAccessMode, CallerAuthority, Engine, Error, ErrorKind, Grants, Principal, Version,
};
use stead_local::{
    Durability, ExternalChangeRecordingStartPolicy, IndexBuildAndUseMode, LandlockMode, LocalWorkspace,
    LocalWorkspaceOptions,
};
use stead_path::RelPath;
use stead_protocols::dialect::{DialectFilesystemReach, DialectSet, DialectWorkspaceRootPath};

use crate::{
    cli::{ApprovalCliFlags, CallerAccessCliFlags, DialectFlags, WorkspaceFlags},
    host_files,
    output::{self, CommandError},
};

const STATE_DIRECTORY: &str = "stead";
const SLUG_CHARS_MAX: usize = 40;
/// The number of hash digits in a state directory's name, which distinguish workspaces of the same name.
const PATH_HASH_DIGITS: usize = 16;
const ROOT_USER: u32 = 0;

pub(crate) struct CommandLineWorkspace {
    /// The directory to which relative paths on the command line refer, given relative to the workspace root.
    pub(crate) home: RelPath,
    pub(crate) local: Arc<LocalWorkspace>,
    pub(crate) engine: Engine,
}

impl Drop for CommandLineWorkspace {
    /// Closes the workspace even if other `Arc`s refer to it, so that buffered journal entries are written before the
    /// process exits.
    fn drop(&mut self) {
        self.local.close();
        let unrecorded = self.local.unrecorded_count();
        if unrecorded > 0 {
            output::print_note(&format!(
                "cannot write the journal: {unrecorded} calls that changed no file are not recorded; check the disk of the state directory"
            ));
        }
    }
}

pub(crate) fn open_workspace(
    flags: &WorkspaceFlags,
    landlock: LandlockMode,
) -> Result<CommandLineWorkspace, CommandError> {
    open_with_reach(flags, landlock, &flags.reach)
}

pub(crate) fn open_with_reach(
    flags: &WorkspaceFlags,
    landlock: LandlockMode,
    reach: &DialectFilesystemReach,
) -> Result<CommandLineWorkspace, CommandError> {
    open_with_options(open_options(flags, landlock, reach)?)
}

pub(crate) fn open_options(
    flags: &WorkspaceFlags,
    landlock: LandlockMode,
    reach: &DialectFilesystemReach,
) -> Result<LocalWorkspaceOptions, CommandError> {
    let root = open_root(&flags.workspace)?;
    let workspace = PathBuf::from(root.absolute_path());
    // The canonical path is used, so that a directory has the same state directory however its path is spelled.
    let state = state_directory(flags, &root.canonical_path(), reach)?;
    let mut options = match reach {
        DialectFilesystemReach::Workspace => LocalWorkspaceOptions::new(workspace, state),
        DialectFilesystemReach::WholeMachine => whole_machine_options(&workspace, state)?,
    };
    options.policy_path = flags
        .policy
        .as_deref()
        .map(std::path::absolute)
        .transpose()
        .map_err(|error| CommandError::System(error.to_string()))?;
    options.durability = flags.durability;
    options.name_profile = flags.names;
    options.resolver = flags.resolver;
    options.allowed_mounts.extend(parse_relative_paths(&options.default_directory, &flags.mount)?);
    options.index_mode = match (flags.index, reach, landlock) {
        // With the reach `WholeMachine`, the index would walk and watch the whole machine.
        (_, DialectFilesystemReach::WholeMachine, _) => IndexBuildAndUseMode::Off,
        // Only a server runs long enough to build an index.
        (IndexBuildAndUseMode::Maintain, DialectFilesystemReach::Workspace, LandlockMode::Off) => {
            IndexBuildAndUseMode::UseExisting
        }
        (mode, DialectFilesystemReach::Workspace, LandlockMode::Restrict | LandlockMode::Off) => mode,
    };
    options.watch_start = match landlock {
        // Only servers use the sandbox, so `Restrict` means that a server opens the workspace.
        LandlockMode::Restrict => ExternalChangeRecordingStartPolicy::AtOpen,
        LandlockMode::Off => ExternalChangeRecordingStartPolicy::OnFirstWatch,
    };
    options.landlock = match reach {
        DialectFilesystemReach::Workspace => landlock,
        DialectFilesystemReach::WholeMachine => LandlockMode::Off,
    };
    Ok(options)
}

pub(crate) fn state_directory(
    flags: &WorkspaceFlags,
    workspace: &Path,
    reach: &DialectFilesystemReach,
) -> Result<PathBuf, CommandError> {
    match &flags.state {
        Some(state) => std::path::absolute(state).map_err(|error| CommandError::System(error.to_string())),
        None => Ok(state_home()?.join(STATE_DIRECTORY).join(state_directory_name(workspace, reach))),
    }
}

pub(crate) fn open_with_options(options: LocalWorkspaceOptions) -> Result<CommandLineWorkspace, CommandError> {
    let home = options.default_directory.clone();
    let state = options.state_path.display().to_string();
    let local = LocalWorkspace::open(options).map_err(|error| {
        if error.kind == ErrorKind::AuditUnavailable && error.next_step.is_none() {
            return error
                .with_next_step(format!("check the state directory {state}, or choose another one with --state DIR"));
        }
        error
    })?;
    let engine = Engine::new(local.clone()).with_administration(local.clone());
    Ok(CommandLineWorkspace { home, local, engine })
}

/// Opens the workspace in the Landlock sandbox, in which `readable_paths` stay readable.
pub(crate) fn open_sandboxed(
    flags: &WorkspaceFlags,
    approval: &ApprovalCliFlags,
    readable_paths: Vec<PathBuf>,
) -> Result<CommandLineWorkspace, CommandError> {
    print_warnings(flags, LandlockMode::Restrict);
    let mut options = open_options(flags, LandlockMode::Restrict, &DialectFilesystemReach::Workspace)?;
    options.readable_paths = readable_paths;
    let mut opened = open_with_options(options)?;
    print_approval_warning(approval.approve);
    opened.engine = opened.engine.clone().with_approval_mode(approval.approve);
    Ok(opened)
}

/// Prints a note for an approval mode in which calls need no decision of a person.
pub(crate) fn print_approval_warning(mode: ApprovalMode) {
    match mode {
        ApprovalMode::AskPerson | ApprovalMode::DenyAll => {}
        ApprovalMode::AllowAll => output::print_note(
            "--approve allow: calls that need a person's approval run without it; the journal records this",
        ),
        ApprovalMode::TrustClient => output::print_note(
            "--approve client: the client answers approval requests; if the client is the agent itself, it approves its own calls",
        ),
    }
}

pub(crate) fn print_warnings(flags: &WorkspaceFlags, landlock: LandlockMode) {
    if host_files::effective_user() == Some(ROOT_USER) {
        let confinement = match landlock {
            LandlockMode::Restrict => "stead's own path checks and, if the kernel supports it, the Landlock sandbox",
            LandlockMode::Off => "stead's own path checks (the Landlock sandbox is off)",
        };
        output::print_note(&format!(
            "running as root: new files belong to root, and file permissions do not limit callers; only {confinement} keep \
             callers in the workspace. Run stead as a dedicated user if possible"
        ));
    }
    if flags.durability == Durability::Fast {
        output::print_note(
            "--durability fast: completed changes survive a crash of stead, but a power cut can lose the latest ones",
        );
    }
}

/// Returns options that let callers access the whole machine. Callers with access to the whole machine cannot see the
/// state directory of any workspace.
pub(crate) fn whole_machine_options(workspace: &Path, state: PathBuf) -> Result<LocalWorkspaceOptions, CommandError> {
    let resolve = |path: &Path| {
        stead_disk::resolve_with_mount_points(path)
            .map_err(|error| CommandError::System(format!("{}: {error}", path.display())))
    };
    let mut options = LocalWorkspaceOptions::new(PathBuf::from("/"), state);
    options.index_mode = IndexBuildAndUseMode::Off;
    (options.default_directory, options.allowed_mounts) = resolve(workspace)?;
    if let Ok(states) = state_home() {
        options.reserved_paths.push(resolve(&states.join(STATE_DIRECTORY))?.0);
    }
    Ok(options)
}

pub(crate) fn workspace_path(flags: &WorkspaceFlags) -> Result<String, CommandError> {
    Ok(open_root(&flags.workspace)?.absolute_path().to_owned())
}

pub(crate) fn build_dialects(flags: &WorkspaceFlags, chosen: &DialectFlags) -> Result<DialectSet, CommandError> {
    let workspace = workspace_path(flags)?;
    DialectSet::from_names(&chosen.dialect, &chosen.dialect_option, &DialectWorkspaceRootPath { root: workspace })
        .map_err(|error| CommandError::Usage(error.to_string()))
}

fn open_root(directory: &Path) -> Result<RootDirectory, CommandError> {
    RootDirectory::open(directory, RootDirectoryOptions::default()).map_err(|error| {
        Error::new(ErrorKind::NotFound, format!("cannot open the workspace directory {}: {error}", directory.display()))
            .with_next_step("pass an existing directory with --workspace DIR")
            .into()
    })
}

fn state_home() -> Result<PathBuf, CommandError> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    named("XDG_STATE_HOME").or_else(|| named("HOME").map(|home| home.join(".local/state"))).ok_or_else(|| {
        output::usage_error("there is no default state directory, because neither XDG_STATE_HOME nor HOME is set; pass one with --state DIR")
    })
}

pub(crate) fn state_directory_name(workspace: &Path, reach: &DialectFilesystemReach) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let name = workspace.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let slug: String = name.chars().take(SLUG_CHARS_MAX).map(plain).collect();
    let hash = Version::hash_bytes(workspace.as_os_str().as_encoded_bytes()).to_string();
    let suffix = match reach {
        DialectFilesystemReach::Workspace => "",
        DialectFilesystemReach::WholeMachine => "-machine",
    };
    format!("{slug}-{}{suffix}", &hash[..PATH_HASH_DIGITS])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallerProtocol {
    Person,
    Mcp,
    Rpc,
    Acp,
    Http,
}

impl CallerProtocol {
    fn protocol_name(self) -> &'static str {
        match self {
            CallerProtocol::Person => "cli",
            CallerProtocol::Mcp => "mcp",
            CallerProtocol::Rpc => "rpc",
            CallerProtocol::Acp => "acp",
            CallerProtocol::Http => "http",
        }
    }
}

pub(crate) fn caller_from_flags(flags: &CallerAccessCliFlags, kind: CallerProtocol) -> Result<Caller, CommandError> {
    caller_with_home(flags, kind, &RelPath::root())
}

/// Builds the caller that the flags describe; the paths in the flags are relative to `home`.
pub(crate) fn caller_with_home(
    flags: &CallerAccessCliFlags,
    kind: CallerProtocol,
    home: &RelPath,
) -> Result<Caller, CommandError> {
    let principal = match &flags.principal {
        Some(text) => Principal::parse(text)?,
        None => default_principal(kind),
    };
    let protocol = kind.protocol_name();
    let mut caller = Caller::new(principal, format!("{protocol}-{}", std::process::id()), protocol);
    caller.grants = grants_from_flags(flags, home)?;
    if kind == CallerProtocol::Person {
        // Only the owner can open the state directory, which has the mode 0700.
        caller.grants.authority = CallerAuthority::OwnerCommandLine;
    }
    Ok(caller)
}

fn default_principal(kind: CallerProtocol) -> Principal {
    if kind != CallerProtocol::Person {
        return Principal::Agent(kind.protocol_name().to_owned());
    }
    let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
    let number = || host_files::effective_user().map_or_else(|| "unknown".to_owned(), |user| format!("uid-{user}"));
    Principal::parse(&format!("user:{name}")).unwrap_or_else(|_| Principal::User(number()))
}

pub(crate) fn grants_from_flags(flags: &CallerAccessCliFlags, home: &RelPath) -> Result<Grants, CommandError> {
    let mut grants = Grants::default();
    if flags.read_only {
        grants.access = CallerAccessMode::ReadOnly;
    }
    if !flags.readable.is_empty() {
        grants.readable = parse_relative_paths(home, &flags.readable)?;
    }
    if !flags.writable.is_empty() {
        grants.writable = parse_relative_paths(home, &flags.writable)?;
    }
    Ok(grants)
}

fn parse_relative_paths(home: &RelPath, paths: &[String]) -> Result<Vec<RelPath>, CommandError> {
    paths.iter().map(|path| parse_relative_path(home, path)).collect()
}

/// Converts a path relative to the workspace directory `home` to a path relative to the opened root.
pub(crate) fn parse_relative_path(home: &RelPath, path: &str) -> Result<RelPath, CommandError> {
    if path.starts_with('/') {
        return Err(CommandError::Usage(format!(
            "{path} is absolute; pass a path relative to the workspace, such as src/main.rs"
        )));
    }
    // Shell completion adds a slash to a directory.
    RelPath::from_wire(path.strip_suffix('/').unwrap_or(path))
        .and_then(|relative| RelPath::from_components(home.components().chain(relative.components())))
        .map_err(|error| CommandError::Usage(format!("{path}: {error}; paths are relative to the workspace")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_directory_names_are_unique_and_readable() {
        let name = |path: &str, reach| state_directory_name(Path::new(path), &reach);
        let (one, two) = (
            name("/a/my project", DialectFilesystemReach::Workspace),
            name("/b/my project", DialectFilesystemReach::Workspace),
        );
        assert!(one.starts_with("my-project-") && two.starts_with("my-project-"), "{one} {two}");
        assert_ne!(one, two);
        assert_ne!(one, name("/a/my project", DialectFilesystemReach::WholeMachine));
    }
}
