//! Opens the roots of ACP sessions with one engine per directory. If a session root is a file, only that file of its
//! directory is accessible. A session root outside of `--workspace` is refused.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use stead_disk::{DiskErrorKind, RootDirectory, RootDirectoryOptions};
use stead_engine::{
    ApprovalMode, Engine, Error, ErrorKind, FileKind, FileNamePolicy, FinalSymlink, LocateRequest, Principal,
};
use stead_local::{Durability, LandlockMode, LocalWorkspace};
use stead_path::RelPath;
use stead_protocols::{
    acp::{AcpSingleFileRoot, McpServerCommand, McpServerTicketEnvVar, OpenedAcpSessionRoot, SessionRootOpener},
    dialect::DialectFilesystemReach,
};

use crate::{
    approvals,
    cli::{AcpFlags, CallerAccessCliFlags, FlagSource, WorkspaceFlags},
    open_workspace,
    output::CommandError,
    stdio_server::TICKET_VARIABLE,
};

pub(super) struct LocalSessionRootOpener {
    flags: WorkspaceFlags,
    caller: CallerAccessCliFlags,
    agent_principal: Principal,
    approval_mode: ApprovalMode,
    /// The directory that must contain every session root if `--workspace` is given.
    enclosing_directory: Option<PathBuf>,
    server_program: Option<String>,
    open_workspaces: Mutex<HashMap<PathBuf, open_workspace::CommandLineWorkspace>>,
}

struct ResolvedSessionRootPath {
    spellings: Vec<String>,
    canonical_path: PathBuf,
    /// The path of a session root that is a file, relative to the file's directory `canonical_path`.
    file: Option<RelPath>,
}

impl LocalSessionRootOpener {
    pub(super) fn new(
        flags: &WorkspaceFlags,
        workspace: FlagSource,
        acp: &AcpFlags,
        agent_principal: Principal,
    ) -> Result<Self, CommandError> {
        let enclosing_directory = match workspace {
            FlagSource::CommandLine => Some(open_root_directory(&flags.workspace)?.canonical_path),
            FlagSource::Default => None,
        };
        let program = std::env::current_exe().ok().and_then(|program| program.to_str().map(str::to_owned));
        Ok(Self {
            flags: flags.clone(),
            caller: acp.caller.clone(),
            agent_principal,
            approval_mode: acp.approve,
            enclosing_directory,
            server_program: program.filter(|_| !acp.no_mcp),
            open_workspaces: Mutex::default(),
        })
    }

    fn find_root(&self, root: &str) -> Result<ResolvedSessionRootPath, Error> {
        let found = match open_root_directory(Path::new(root)) {
            Err(error) if error.kind == ErrorKind::NotDirectory => directory_of_file(Path::new(root))?,
            other => other?,
        };
        match &self.enclosing_directory {
            Some(bound) if !found.canonical_path.starts_with(bound) => Err(Error::new(
                ErrorKind::OutOfScope,
                "the root of the session is outside the directory that was passed with --workspace",
            )),
            Some(_) | None => Ok(found),
        }
    }

    fn flags_for(&self, directory: &Path) -> WorkspaceFlags {
        let mut flags = self.flags.clone();
        flags.workspace = directory.to_owned();
        // Each root gets its own subdirectory, because one state directory cannot hold several workspaces.
        flags.state = self.flags.state.as_ref().map(|state| {
            state.join(open_workspace::state_directory_name(directory, &DialectFilesystemReach::Workspace))
        });
        flags
    }

    fn engine_for(&self, directory: &Path) -> Result<Engine, Error> {
        let mut opened = self.open_workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = opened.get(directory) {
            return Ok(known.engine.clone());
        }
        let mut new = open_workspace::open_workspace(&self.flags_for(directory), LandlockMode::Off)
            .map_err(error_from_command)?;
        new.engine = new.engine.clone().with_approval_mode(self.approval_mode);
        let engine = new.engine.clone();
        opened.insert(directory.to_owned(), new);
        Ok(engine)
    }

    /// Closes all workspaces, including the workspaces that sessions still use.
    pub(super) fn close_workspaces(&self) {
        self.open_workspaces.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn open_local_workspace(&self, directory: &Path) -> Option<Arc<LocalWorkspace>> {
        let opened = self.open_workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        opened.get(directory).map(|opened| opened.local.clone())
    }
}

impl SessionRootOpener for LocalSessionRootOpener {
    fn open_root(&self, root: &str) -> Result<OpenedAcpSessionRoot, Error> {
        let found = self.find_root(root)?;
        let engine = self.engine_for(&found.canonical_path)?;
        let single_file = match found.file {
            None => None,
            Some(requested) => {
                let located = engine.workspace().locate(&LocateRequest::Resolve(&requested, FinalSymlink::Follow))?;
                if located.stat().is_none_or(|stat| stat.kind != FileKind::File) {
                    return Err(Error::new(ErrorKind::NotRegular, "a root must be a directory or a regular file"));
                }
                Some(AcpSingleFileRoot { resolved: located.path, requested })
            }
        };
        Ok(OpenedAcpSessionRoot { engine, root_paths: found.spellings, single_file })
    }

    fn mcp_server_command(&self, root: &str) -> Option<McpServerCommand> {
        let command = self.server_program.clone()?;
        let found = self.find_root(root).ok().filter(|found| found.file.is_none())?;
        let flags = self.flags_for(&found.canonical_path);
        let mut arguments = vec!["mcp".to_owned(), "--workspace".to_owned(), found.canonical_path.to_str()?.to_owned()];
        let mut add = |name: &str, value: &str| arguments.extend([name.to_owned(), value.to_owned()]);
        add(
            "--state",
            open_workspace::state_directory(&flags, &found.canonical_path, &DialectFilesystemReach::Workspace)
                .ok()?
                .to_str()?,
        );
        add("--principal", &self.agent_principal.to_string());
        if let Some(policy) = &flags.policy {
            add("--policy", std::path::absolute(policy).ok()?.to_str()?);
        }
        match flags.durability {
            Durability::Full => {}
            Durability::Fast => add("--durability", "fast"),
        }
        match flags.names {
            FileNamePolicy::Portable => {}
            FileNamePolicy::Posix => add("--names", "posix"),
        }
        match self.approval_mode {
            // The client of the MCP server is the agent, which must not approve its own calls.
            ApprovalMode::AskPerson | ApprovalMode::TrustClient => {}
            ApprovalMode::DenyAll => add("--approve", "deny"),
            ApprovalMode::AllowAll => add("--approve", "allow"),
        }
        for (name, paths) in
            [("--readable", &self.caller.readable), ("--writable", &self.caller.writable), ("--mount", &flags.mount)]
        {
            paths.iter().for_each(|path| add(name, path));
        }
        if self.caller.read_only {
            arguments.push("--read-only".to_owned());
        }
        // Without a ticket, the MCP server uses a separate session.
        let secret = self
            .open_local_workspace(&found.canonical_path)
            .and_then(|local| local.create_session_ticket(&self.agent_principal).ok());
        let ticket = secret.map(|secret| McpServerTicketEnvVar { variable: TICKET_VARIABLE, secret });
        Some(McpServerCommand { command, arguments, ticket })
    }

    fn bind_server_to_session(&self, root: &str, ticket: &McpServerTicketEnvVar, session: &str) -> Result<(), Error> {
        let found = self.find_root(root)?;
        match self.open_local_workspace(&found.canonical_path) {
            Some(local) => local.bind_session_ticket(&ticket.secret, session),
            None => Err(Error::new(ErrorKind::NotFound, "the workspace is no longer open")),
        }
    }

    fn add_allow_rule(&self, engine: &Engine, approval: &str) -> Result<(), Error> {
        let id = &engine.workspace().profile().id;
        let opened = self.open_workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        let mut roots = opened.values();
        let Some(root) = roots.find(|root| root.engine.workspace().profile().id == *id) else {
            return Err(Error::new(ErrorKind::NotFound, "the workspace is no longer open"));
        };
        approvals::write_allow_rule(root, approval).map_err(error_from_command)
    }
}

fn open_root_directory(path: &Path) -> Result<ResolvedSessionRootPath, Error> {
    let root = RootDirectory::open(path, RootDirectoryOptions::default()).map_err(|error| {
        let is_file = error.kind == DiskErrorKind::NotDirectory;
        let kind = if is_file { ErrorKind::NotDirectory } else { ErrorKind::NotFound };
        Error::new(kind, format!("the root cannot be opened: {error}"))
    })?;
    let spellings = root.equivalent_paths().to_vec();
    // The last spelling is the canonical path.
    let real = spellings.last().map(PathBuf::from);
    let real = real.ok_or_else(|| Error::new(ErrorKind::InvalidName, "the path is not UTF-8"))?;
    Ok(ResolvedSessionRootPath { spellings, canonical_path: real, file: None })
}

fn directory_of_file(path: &Path) -> Result<ResolvedSessionRootPath, Error> {
    let missing = || Error::new(ErrorKind::NotFound, "the path has no parent directory");
    let (parent, name) = path.parent().zip(path.file_name()).ok_or_else(missing)?;
    let name = RelPath::from_components([name.as_encoded_bytes()]).map_err(Error::from)?;
    Ok(ResolvedSessionRootPath { file: Some(name), ..open_root_directory(parent)? })
}

fn error_from_command(error: CommandError) -> Error {
    match error {
        CommandError::Engine(error) => *error,
        CommandError::Usage(text) | CommandError::System(text) => Error::new(ErrorKind::Io, text),
        CommandError::OutputClosed => Error::new(ErrorKind::Io, "the output is closed"),
    }
}
