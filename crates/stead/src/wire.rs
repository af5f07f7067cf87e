//! From flags to an open workspace and a caller. Everything that knows how a local workspace is opened is here.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use disk::{Root, RootOptions};
use engine::{Access, Caller, Engine, Failure, Grants, Kind, NameProfile, Principal, Version};
use faces::dialect::{Dialects, Place};
use local::{LocalWorkspace, Options, Wall};
use path::RelPath;

use crate::{
    cli::{CallerFlags, DialectFlags, Durability, Names, Resolver, WorkspaceFlags},
    outside,
    show::{self, Problem},
};

/// Longest part of a directory's name in the name of its state directory.
const SLUG_CHARS_MAX: usize = 40;
/// Hex digits that tell directories of the same name apart.
const PLACE_DIGITS: usize = 16;

/// An open workspace with its engine.
pub(crate) struct Opened {
    /// What only a local workspace can do: log, trash.
    pub(crate) local: Arc<LocalWorkspace>,
    /// The one way to call it.
    pub(crate) engine: Engine,
}

/// Opens the workspace that the flags mean.
pub(crate) fn open(flags: &WorkspaceFlags, wall: Wall) -> Result<Opened, Problem> {
    let workspace = absolute(&flags.workspace)?;
    let state = match &flags.state {
        Some(state) => std::path::absolute(state).map_err(|error| Problem::Outside(error.to_string()))?,
        None => state_home()?.join("stead").join(place_name(&workspace)),
    };
    let mut options = Options::new(workspace, state);
    options.durability = match flags.durability {
        Durability::Full => local::Durability::Full,
        Durability::Fast => local::Durability::Fast,
    };
    options.names = match flags.names {
        Names::Portable => NameProfile::Portable,
        Names::Posix => NameProfile::Posix,
    };
    options.resolver = match flags.resolver {
        Resolver::Auto => disk::Resolver::Auto,
        Resolver::Kernel => disk::Resolver::Kernel,
        Resolver::Walker => disk::Resolver::Walker,
    };
    options.mounts = paths(&flags.mount)?;
    options.wall = wall;
    let local = LocalWorkspace::open(options)?;
    let engine = Engine::new(local.clone());
    Ok(Opened { local, engine })
}

/// The dialects that the flags mean.
pub(crate) fn dialects(flags: &WorkspaceFlags, chosen: &DialectFlags) -> Result<Dialects, Problem> {
    let workspace = absolute(&flags.workspace)?.to_string_lossy().into_owned();
    Dialects::choose(&chosen.dialect, &chosen.dialect_option, &Place { workspace })
        .map_err(|error| Problem::Usage(error.to_string()))
}

/// The directory's own spelling, without links, so that one directory has one state directory.
fn absolute(directory: &Path) -> Result<PathBuf, Problem> {
    let root = Root::open(directory, RootOptions::default()).map_err(|error| {
        Failure::new(Kind::NotFound, format!("the workspace directory cannot be opened: {error}"))
            .hint("name an existing directory with --workspace")
    })?;
    Ok(PathBuf::from(root.absolute()))
}

fn state_home() -> Result<PathBuf, Problem> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    named("XDG_STATE_HOME").or_else(|| named("HOME").map(|home| home.join(".local/state"))).ok_or_else(|| {
        show::usage("neither XDG_STATE_HOME nor HOME says where state belongs; name a directory with --state")
    })
}

/// A name that a person recognises and no other directory has.
fn place_name(workspace: &Path) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let name = workspace.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let slug: String = name.chars().take(SLUG_CHARS_MAX).map(plain).collect();
    let place = Version::of(workspace.as_os_str().as_encoded_bytes()).to_string();
    format!("{slug}-{}", &place[..PLACE_DIGITS])
}

/// Who asks when nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The person at the command line.
    Person,
    /// An agent behind MCP.
    Agent,
}

/// The caller that the flags mean.
pub(crate) fn caller(flags: &CallerFlags, asker: Asker) -> Result<Caller, Problem> {
    let principal = match &flags.principal {
        Some(text) => Principal::parse(text)?,
        None => default_principal(asker),
    };
    let (session, face) = match asker {
        Asker::Person => (format!("cli-{}", std::process::id()), "cli"),
        Asker::Agent => (format!("mcp-{}", std::process::id()), "mcp"),
    };
    let mut caller = Caller::new(principal, session, face);
    caller.grants = grants(flags)?;
    Ok(caller)
}

fn default_principal(asker: Asker) -> Principal {
    match asker {
        Asker::Agent => Principal::Agent("mcp".to_owned()),
        Asker::Person => {
            let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
            let number =
                || outside::user().map_or_else(|| "unknown".to_owned(), |user| format!("uid-{user}"));
            Principal::parse(&format!("user:{name}")).unwrap_or_else(|_| Principal::User(number()))
        }
    }
}

fn grants(flags: &CallerFlags) -> Result<Grants, Problem> {
    let mut grants = Grants::default();
    if flags.read_only {
        grants.access = Access::ReadOnly;
    }
    if !flags.readable.is_empty() {
        grants.readable = paths(&flags.readable)?;
    }
    if !flags.writable.is_empty() {
        grants.writable = paths(&flags.writable)?;
    }
    Ok(grants)
}

fn paths(wires: &[String]) -> Result<Vec<RelPath>, Problem> {
    let path = |wire: &String| {
        RelPath::from_wire(wire)
            .map_err(|error| Problem::Usage(format!("{wire}: {error}; paths are relative to the workspace")))
    };
    wires.iter().map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_directories_are_told_apart_and_recognised() {
        let (one, two) = (place_name(Path::new("/a/my project")), place_name(Path::new("/b/my project")));
        assert!(one.starts_with("my-project-") && two.starts_with("my-project-"), "{one} {two}");
        assert_ne!(one, two);
    }
}
