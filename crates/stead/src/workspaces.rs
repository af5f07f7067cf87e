//! The registry of hosted workspaces, for the commands that administer it and for the server.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{ArgMatches, Args};
use stead_engine::{Error, ErrorKind, NextStep};
use stead_local::{LandlockMode, WorkspaceRegistry, WorkspaceRegistryOptions};
use stead_path::RelPath;

use crate::{
    cli::WorkspaceFlags,
    host_files,
    open_workspace::{self, CommandLineWorkspace},
    output::{self, CommandError},
};

/// The flags of all commands of `stead workspace`.
#[derive(Debug, Args)]
pub(crate) struct WorkspaceCliArgs {
    /// Directory of the hosted workspaces; create and import create it if it is missing
    #[arg(long, value_name = "DIR", global = true)]
    workspaces: Option<PathBuf>,
    /// Identity of the caller: user:NAME
    #[arg(long, value_name = "PRINCIPAL", global = true)]
    principal: Option<String>,
    /// Print the answer as one JSON object
    #[arg(long, global = true)]
    json: bool,
}

/// The flags of all commands of `stead token`.
#[derive(Debug, Args)]
pub(crate) struct TokenCliArgs {
    /// Directory of hosted workspaces whose tokens to manage
    #[arg(long, value_name = "DIR", global = true)]
    workspaces: Option<PathBuf>,
    /// With --workspaces: workspace that the token opens
    #[arg(long, value_name = "NAME", global = true, requires = "workspaces")]
    workspace_name: Option<String>,
    /// With --workspaces: administrator tokens, which manage workspaces but cannot open them
    #[arg(long, global = true, requires = "workspaces", conflicts_with = "workspace_name")]
    estate: bool,
}

pub(crate) fn registry_options(flags: &WorkspaceFlags, directory: &Path) -> WorkspaceRegistryOptions {
    let mut options = WorkspaceRegistryOptions::new(directory.to_owned());
    options.durability = flags.durability;
    options.name_profile = flags.names;
    options.resolver = flags.resolver;
    options.index_mode = flags.index;
    options
}

/// Opens the workspace or the registry in which the command of an operation runs.
pub(crate) fn open_target(
    operation: &str,
    flags: &WorkspaceFlags,
    matches: &ArgMatches,
) -> Result<CommandLineWorkspace, CommandError> {
    let directory = matches.try_get_one::<PathBuf>("workspaces").ok().flatten();
    if directory.is_none() && !operation.starts_with("workspace.") {
        return open_workspace::open_workspace(flags, LandlockMode::Off);
    }
    let directory = directory.ok_or_else(|| {
        output::usage_error("--workspaces DIR is required: the directory that stead serve --workspaces DIR serves")
    })?;
    let is_set = |flag: &str| matches.try_get_one::<bool>(flag).ok().flatten() == Some(&true);
    let creates = match operation {
        "workspace.create" | "workspace.import" => true,
        "token.create" => is_set("estate") || is_set("administer"),
        _ => false,
    };
    // A missing directory is an error otherwise, because its path is probably mistyped.
    if !creates && !host_files::exists(&WorkspaceRegistry::registry_directory(directory)) {
        let detail = format!("there are no workspaces in {}", directory.display());
        return Err(Error::new(ErrorKind::NotFound, detail)
            .with_next_step(
                NextStep::from("pass the directory that `stead serve --workspaces` serves")
                    .or(NextStep::person_command("workspace create NAME", "create one")),
            )
            .into());
    }
    let registry: Arc<WorkspaceRegistry> = WorkspaceRegistry::open(registry_options(flags, directory))?;
    let (local, engine) = (registry.registry_workspace().clone(), registry.administration_engine());
    Ok(CommandLineWorkspace { home: RelPath::root(), local, engine })
}
