//! From flags to an open workspace and a caller. Everything that knows how a local workspace is opened is here.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use disk::{Root, RootOptions};
use engine::{Access, Caller, Engine, Failure, Grants, Kind, NameProfile, Principal, Version};
use faces::dialect::{Dialects, Place, Reach};
use local::{Listening, LocalWorkspace, Options, Wall};
use path::RelPath;

use crate::{
    cli::{self, CallerFlags, DialectFlags, Durability, Indexing, Names, Resolver, WorkspaceFlags},
    outside,
    show::{self, Problem},
};

/// Where state directories are, below the place for state.
const STATES: &str = "stead";
/// Longest part of a directory's name in the name of its state directory.
const SLUG_CHARS_MAX: usize = 40;
/// Hex digits that tell directories of the same name apart.
const PLACE_DIGITS: usize = 16;

/// An open workspace with its engine.
pub(crate) struct Opened {
    /// Where relative paths start beneath the root.
    pub(crate) home: RelPath,
    /// What only a local workspace can do: log, trash.
    pub(crate) local: Arc<LocalWorkspace>,
    /// The one way to call it.
    pub(crate) engine: Engine,
}

impl Drop for Opened {
    /// Whoever else still has the workspace is ended with the process, and would not write what was noted last.
    fn drop(&mut self) {
        self.local.close();
        let unrecorded = self.local.unrecorded();
        if unrecorded > 0 {
            show::remark(&format!(
                "the journal could not be written: {unrecorded} calls that changed nothing are not recorded"
            ));
        }
    }
}

/// Opens the workspace that the flags mean.
pub(crate) fn open(flags: &WorkspaceFlags, wall: Wall) -> Result<Opened, Problem> {
    let reach = match flags.reach {
        cli::Reach::Workspace => Reach::Workspace,
        cli::Reach::Machine => Reach::Machine,
    };
    open_reaching(flags, wall, &reach)
}

/// The same with the reach that dialects are set to, whatever the flags say.
pub(crate) fn open_reaching(flags: &WorkspaceFlags, wall: Wall, reach: &Reach) -> Result<Opened, Problem> {
    opened(options(flags, wall, reach)?)
}

/// How it would be opened.
pub(crate) fn options(flags: &WorkspaceFlags, wall: Wall, reach: &Reach) -> Result<Options, Problem> {
    let root = root(&flags.workspace)?;
    let workspace = PathBuf::from(root.absolute());
    // Without links, so that one directory has one state directory however it is called.
    let state = state_directory(flags, &root.real(), reach)?;
    let mut options = match reach {
        Reach::Workspace => Options::new(workspace, state),
        Reach::Machine => whole_machine(&workspace, state)?,
    };
    options.policy = flags
        .policy
        .as_deref()
        .map(std::path::absolute)
        .transpose()
        .map_err(|error| Problem::Outside(error.to_string()))?;
    options.durability = flags.durability.into();
    options.names = flags.names.into();
    options.resolver = flags.resolver.into();
    options.mounts.extend(beneath(&options.home, &flags.mount)?);
    options.indexing = match (flags.index, reach, wall) {
        // What is walked and watched would be the whole machine.
        (Indexing::Off, _, _) | (_, Reach::Machine, _) => local::Indexing::Off,
        // Only a server lives long enough to build one.
        (Indexing::On, Reach::Workspace, Wall::Raise) => local::Indexing::Keep,
        (Indexing::On | Indexing::Use, Reach::Workspace, _) => local::Indexing::Use,
    };
    options.listening = match wall {
        // Who walls itself in stays, and serves.
        Wall::Raise => Listening::AtOnce,
        Wall::Leave => Listening::WhenAsked,
    };
    options.wall = match reach {
        Reach::Workspace => wall,
        Reach::Machine => Wall::Leave,
    };
    Ok(options)
}

impl From<Durability> for local::Durability {
    fn from(flag: Durability) -> Self {
        match flag {
            Durability::Full => Self::Full,
            Durability::Fast => Self::Fast,
        }
    }
}

impl From<Names> for NameProfile {
    fn from(flag: Names) -> Self {
        match flag {
            Names::Portable => Self::Portable,
            Names::Posix => Self::Posix,
        }
    }
}

impl From<Resolver> for disk::Resolver {
    fn from(flag: Resolver) -> Self {
        match flag {
            Resolver::Auto => Self::Auto,
            Resolver::Kernel => Self::Kernel,
            Resolver::Walker => Self::Walker,
        }
    }
}

/// Where the journal and kept bytes of a workspace live.
pub(crate) fn state_directory(
    flags: &WorkspaceFlags,
    workspace: &Path,
    reach: &Reach,
) -> Result<PathBuf, Problem> {
    match &flags.state {
        Some(state) => std::path::absolute(state).map_err(|error| Problem::Outside(error.to_string())),
        None => Ok(state_home()?.join(STATES).join(place_name(workspace, reach))),
    }
}

/// Opens what the options say.
pub(crate) fn opened(options: Options) -> Result<Opened, Problem> {
    let home = options.home.clone();
    let state = options.state.display().to_string();
    let local = LocalWorkspace::open(options).map_err(|failure| {
        if failure.kind == Kind::AuditUnavailable && failure.hint.is_none() {
            return failure.hint(format!("the state directory is {state}; name another with --state"));
        }
        failure
    })?;
    let engine = Engine::new(local.clone());
    Ok(Opened { home, local, engine })
}

/// How the whole machine is opened from a workspace: its root is the root, and the way to the workspace may be gone.
/// Every state directory in the usual place is hidden, not only its own.
pub(crate) fn whole_machine(workspace: &Path, state: PathBuf) -> Result<Options, Problem> {
    let way = |place: &Path| {
        disk::way_to(place).map_err(|error| Problem::Outside(format!("{}: {error}", place.display())))
    };
    let mut options = Options::new(PathBuf::from("/"), state);
    options.indexing = local::Indexing::Off;
    (options.home, options.mounts) = way(workspace)?;
    if let Ok(states) = state_home() {
        options.own.push(way(&states.join(STATES))?.0);
    }
    Ok(options)
}

/// The absolute spelling of the workspace.
pub(crate) fn place(flags: &WorkspaceFlags) -> Result<String, Problem> {
    Ok(root(&flags.workspace)?.absolute().to_owned())
}

/// The dialects that the flags mean.
pub(crate) fn dialects(flags: &WorkspaceFlags, chosen: &DialectFlags) -> Result<Dialects, Problem> {
    let workspace = place(flags)?;
    Dialects::choose(&chosen.dialect, &chosen.dialect_option, &Place { workspace })
        .map_err(|error| Problem::Usage(error.to_string()))
}

/// The directory that is served.
fn root(directory: &Path) -> Result<Root, Problem> {
    Root::open(directory, RootOptions::default()).map_err(|error| {
        let shown = directory.display();
        Failure::new(Kind::NotFound, format!("the workspace directory {shown} cannot be opened: {error}"))
            .hint("name an existing directory with --workspace")
            .into()
    })
}

fn state_home() -> Result<PathBuf, Problem> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    named("XDG_STATE_HOME").or_else(|| named("HOME").map(|home| home.join(".local/state"))).ok_or_else(|| {
        show::usage("neither XDG_STATE_HOME nor HOME says where state belongs; name a directory with --state")
    })
}

/// A name that a person recognises and no other directory has.
pub(crate) fn place_name(workspace: &Path, reach: &Reach) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let name = workspace.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let slug: String = name.chars().take(SLUG_CHARS_MAX).map(plain).collect();
    let place = Version::of(workspace.as_os_str().as_encoded_bytes()).to_string();
    let wide = match reach {
        Reach::Workspace => "",
        Reach::Machine => "-machine",
    };
    format!("{slug}-{}{wide}", &place[..PLACE_DIGITS])
}

/// Who asks when nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The person at the command line.
    Person,
    /// An agent behind MCP.
    Mcp,
    /// An agent behind JSON-RPC.
    Rpc,
    /// An agent behind the proxy.
    Acp,
    /// An agent behind HTTP.
    Http,
}

/// The caller that the flags mean.
pub(crate) fn caller(flags: &CallerFlags, asker: Asker) -> Result<Caller, Problem> {
    caller_at(flags, asker, &RelPath::root())
}

/// The same where the workspace is not the root.
pub(crate) fn caller_at(flags: &CallerFlags, asker: Asker, home: &RelPath) -> Result<Caller, Problem> {
    let principal = match &flags.principal {
        Some(text) => Principal::parse(text)?,
        None => default_principal(asker),
    };
    let (session, face) = match asker {
        Asker::Person => (format!("cli-{}", std::process::id()), "cli"),
        Asker::Mcp => (format!("mcp-{}", std::process::id()), "mcp"),
        Asker::Rpc => (format!("rpc-{}", std::process::id()), "rpc"),
        Asker::Acp => (format!("acp-{}", std::process::id()), "acp"),
        Asker::Http => (format!("http-{}", std::process::id()), "http"),
    };
    let mut caller = Caller::new(principal, session, face);
    caller.grants = grants(flags, home)?;
    Ok(caller)
}

fn default_principal(asker: Asker) -> Principal {
    match asker {
        Asker::Mcp => Principal::Agent("mcp".to_owned()),
        Asker::Rpc => Principal::Agent("rpc".to_owned()),
        Asker::Acp => Principal::Agent("acp".to_owned()),
        Asker::Http => Principal::Agent("http".to_owned()),
        Asker::Person => {
            let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
            let number =
                || outside::user().map_or_else(|| "unknown".to_owned(), |user| format!("uid-{user}"));
            Principal::parse(&format!("user:{name}")).unwrap_or_else(|_| Principal::User(number()))
        }
    }
}

/// What the flags let a caller reach.
pub(crate) fn grants(flags: &CallerFlags, home: &RelPath) -> Result<Grants, Problem> {
    let mut grants = Grants::default();
    if flags.read_only {
        grants.access = Access::ReadOnly;
    }
    if !flags.readable.is_empty() {
        grants.readable = beneath(home, &flags.readable)?;
    }
    if !flags.writable.is_empty() {
        grants.writable = beneath(home, &flags.writable)?;
    }
    Ok(grants)
}

/// Paths that are given relative to the workspace.
fn beneath(home: &RelPath, wires: &[String]) -> Result<Vec<RelPath>, Problem> {
    let path = |wire: &String| {
        if wire.starts_with('/') {
            return Err(Problem::Usage(format!(
                "{wire}: it is absolute; paths are relative to the workspace"
            )));
        }
        // A shell that completes the name of a directory leaves a slash behind it.
        RelPath::from_wire(wire.strip_suffix('/').unwrap_or(wire))
            .and_then(|path| RelPath::from_components(home.components().chain(path.components())))
            .map_err(|error| Problem::Usage(format!("{wire}: {error}; paths are relative to the workspace")))
    };
    wires.iter().map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_directories_are_told_apart_and_recognised() {
        let name = |path: &str, reach| place_name(Path::new(path), &reach);
        let (one, two) = (name("/a/my project", Reach::Workspace), name("/b/my project", Reach::Workspace));
        assert!(one.starts_with("my-project-") && two.starts_with("my-project-"), "{one} {two}");
        assert_ne!(one, two);
        assert_ne!(one, name("/a/my project", Reach::Machine));
    }
}
