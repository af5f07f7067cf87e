//! The roots of sessions, opened: one engine for each directory, shared by every session that names it. Owns how a path
//! that an editor names becomes a workspace.
//!
//! Never opens more than what is named: a root that is one file opens the directory above it and shows that file alone. A
//! root outside the directory that the operator named is refused.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use disk::{ErrorKind, Root, RootOptions};
use engine::{Asking, Engine, Failure, Kind, Last, Principal, Top};
use faces::{
    acp::{Ground, Only, Opened, Server, Ticket},
    dialect::Reach,
};
use local::{LocalWorkspace, Wall};
use path::RelPath;

use crate::{
    approvals,
    cli::{AcpFlags, Approve, CallerFlags, Durability, Given, Names, WorkspaceFlags},
    mcp,
    show::Problem,
    wire,
};

/// What sessions stand on.
pub(super) struct Land {
    flags: WorkspaceFlags,
    caller: CallerFlags,
    /// Who the agent is.
    principal: Principal,
    approve: Approve,
    asking: Asking,
    /// The directory that every root must lie in, if the operator named one.
    bound: Option<PathBuf>,
    /// This program, for agents to start; nothing where they get no server.
    program: Option<String>,
    opened: Mutex<HashMap<PathBuf, wire::Opened>>,
}

/// A directory that holds a root.
struct Directory {
    spellings: Vec<String>,
    /// Its own spelling, without links.
    real: PathBuf,
    /// The name in it that is the root, where the root is a file.
    file: Option<RelPath>,
}

impl Land {
    pub(super) fn new(
        flags: &WorkspaceFlags,
        workspace: Given,
        acp: &AcpFlags,
        principal: Principal,
        asking: Asking,
    ) -> Result<Self, Problem> {
        let bound = match workspace {
            Given::Yes => Some(directory(&flags.workspace)?.real),
            Given::No => None,
        };
        let program = std::env::current_exe().ok().and_then(|program| program.to_str().map(str::to_owned));
        Ok(Self {
            flags: flags.clone(),
            caller: acp.caller.clone(),
            principal,
            approve: acp.approve,
            asking,
            bound,
            program: program.filter(|_| !acp.no_mcp),
            opened: Mutex::default(),
        })
    }

    /// The directory of a root that may be opened.
    fn found(&self, root: &str) -> Result<Directory, Failure> {
        let found = match directory(Path::new(root)) {
            Err(failure) if failure.kind == Kind::NotDirectory => around_file(Path::new(root))?,
            other => other?,
        };
        match &self.bound {
            Some(bound) if !found.real.starts_with(bound) => {
                Err(Failure::new(Kind::OutOfScope, "it is outside the directory that --workspace names"))
            }
            Some(_) | None => Ok(found),
        }
    }

    /// The flags that open a directory.
    fn flags_for(&self, real: &Path) -> WorkspaceFlags {
        let mut flags = self.flags.clone();
        flags.workspace = real.to_owned();
        // One state directory cannot hold several workspaces.
        flags.state =
            self.flags.state.as_ref().map(|state| state.join(wire::place_name(real, &Reach::Workspace)));
        flags
    }

    fn engine(&self, real: &Path) -> Result<Engine, Failure> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = opened.get(real) {
            return Ok(known.engine.clone());
        }
        let mut new = wire::open(&self.flags_for(real), Wall::Leave).map_err(failure)?;
        new.engine = new.engine.clone().asking(self.asking);
        let engine = new.engine.clone();
        opened.insert(real.to_owned(), new);
        Ok(engine)
    }
}

impl Land {
    /// Brings everything to rest, whoever still has a part of it.
    pub(super) fn close(&self) {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// A directory that is open.
    fn local(&self, real: &Path) -> Option<Arc<LocalWorkspace>> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.get(real).map(|opened| opened.local.clone())
    }
}

impl Ground for Land {
    fn open(&self, root: &str) -> Result<Opened, Failure> {
        let found = self.found(root)?;
        let engine = self.engine(&found.real)?;
        let only = match found.file {
            None => None,
            Some(spelled) => {
                let leads_to = engine.workspace().locate(&spelled, Last::Follow)?;
                let node = engine.workspace().stat(&leads_to)?;
                if node.is_none_or(|node| node.top != Top::File) {
                    return Err(Failure::new(Kind::NotRegular, "a root is a directory or a file"));
                }
                Some(Only { spelled, found: leads_to })
            }
        };
        Ok(Opened { engine, spellings: found.spellings, only })
    }

    fn server(&self, root: &str) -> Option<Server> {
        let command = self.program.clone()?;
        let found = self.found(root).ok().filter(|found| found.file.is_none())?;
        let flags = self.flags_for(&found.real);
        let mut arguments = vec!["mcp".to_owned(), "--workspace".to_owned(), found.real.to_str()?.to_owned()];
        let mut add = |name: &str, value: &str| arguments.extend([name.to_owned(), value.to_owned()]);
        add("--state", wire::state_directory(&flags, &found.real, &Reach::Workspace).ok()?.to_str()?);
        add("--principal", &self.principal.to_string());
        if let Some(policy) = &flags.policy {
            add("--policy", std::path::absolute(policy).ok()?.to_str()?);
        }
        match flags.durability {
            Durability::Full => {}
            Durability::Fast => add("--durability", "fast"),
        }
        match flags.names {
            Names::Portable => {}
            Names::Posix => add("--names", "posix"),
        }
        match self.approve {
            // There the client is the agent, which must not approve itself.
            Approve::Ask | Approve::Client => {}
            Approve::Deny => add("--approve", "deny"),
            Approve::Allow => add("--approve", "allow"),
        }
        for (name, paths) in [
            ("--readable", &self.caller.readable),
            ("--writable", &self.caller.writable),
            ("--mount", &flags.mount),
        ] {
            paths.iter().for_each(|path| add(name, path));
        }
        if self.caller.read_only {
            arguments.push("--read-only".to_owned());
        }
        // Without a ticket the server works all the same, in a session of its own.
        let secret =
            self.local(&found.real).and_then(|local| local.create_session_ticket(&self.principal).ok());
        let ticket = secret.map(|secret| Ticket { variable: mcp::TICKET, secret });
        Some(Server { command, arguments, ticket })
    }

    fn belongs(&self, root: &str, ticket: &Ticket, session: &str) -> Result<(), Failure> {
        let found = self.found(root)?;
        match self.local(&found.real) {
            Some(local) => local.bind_session_ticket(&ticket.secret, session),
            None => Err(Failure::new(Kind::NotFound, "the workspace is not open any more")),
        }
    }

    fn always(&self, engine: &Engine, approval: &str) -> Result<(), Failure> {
        let id = &engine.workspace().profile().id;
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let mut roots = opened.values();
        let Some(root) = roots.find(|root| root.engine.workspace().profile().id == *id) else {
            return Err(Failure::new(Kind::NotFound, "the workspace is not open any more"));
        };
        approvals::keep(root, approval).map_err(failure)
    }
}

/// Opens a directory to see what it is.
fn directory(path: &Path) -> Result<Directory, Failure> {
    let root = Root::open(path, RootOptions::default()).map_err(|error| {
        let is_file = error.kind == ErrorKind::NotDirectory;
        let kind = if is_file { Kind::NotDirectory } else { Kind::NotFound };
        Failure::new(kind, format!("it cannot be opened: {error}"))
    })?;
    let spellings = root.spellings().to_vec();
    // The last spelling is the one without links.
    let real = spellings.last().map(PathBuf::from);
    let real = real.ok_or_else(|| Failure::new(Kind::InvalidName, "its path is not UTF-8"))?;
    Ok(Directory { spellings, real, file: None })
}

/// The directory above a file, and the file in it.
fn around_file(path: &Path) -> Result<Directory, Failure> {
    let missing = || Failure::new(Kind::NotFound, "it has no directory above it");
    let (parent, name) = path.parent().zip(path.file_name()).ok_or_else(missing)?;
    let name = RelPath::from_components([name.as_encoded_bytes()]).map_err(Failure::from)?;
    Ok(Directory { file: Some(name), ..directory(parent)? })
}

fn failure(problem: Problem) -> Failure {
    match problem {
        Problem::Failure(failure) => *failure,
        Problem::Usage(text) | Problem::Outside(text) => Failure::new(Kind::Io, text),
        Problem::Closed => Failure::new(Kind::Io, "the output is closed"),
    }
}
