//! `stead workspace` administers hosted workspaces, even while a server uses the same directory.

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use stead_engine::{Caller, Error, ErrorKind, NextStep, UtcSecond};
use stead_local::WorkspaceRegistry;
use stead_protocols::http::{WorkspaceAdminRequest, WorkspaceExportStartInfo, WorkspaceRegistryAdmin};

use crate::{
    cli::{CallerAccessCliFlags, WorkspaceFlags},
    host_files,
    open_workspace::{self, CallerProtocol},
    output::{self, CliCommandResult, CommandError, CommandExit, OutputFormat},
    workspace_admin::{self, RegistryWorkspaceAdmin},
};

#[derive(Debug, Args)]
pub(crate) struct WorkspaceCliArgs {
    /// Directory of the hosted workspaces; create and import create it if it is missing
    #[arg(long, value_name = "DIR", global = true, required = false)]
    workspaces: Option<PathBuf>,
    /// Identity of the caller: user:NAME
    #[arg(long, value_name = "PRINCIPAL", global = true)]
    principal: Option<String>,
    /// Print the answer as one JSON object
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: WorkspaceSubcommand,
}

/// Options of a new workspace; its policy is the file of `--policy`.
#[derive(Debug, Args)]
struct NewWorkspaceFlags {
    /// Delete the workspace at once when it is destroyed, instead of moving it to the trash
    #[arg(long)]
    ephemeral: bool,
    /// Note to recognise the workspace by
    #[arg(long, value_name = "TEXT", default_value = "")]
    label: String,
    /// Maximum total size of the files in bytes
    #[arg(long, value_name = "BYTES")]
    bytes_max: Option<u64>,
    /// Maximum number of files, links and directories
    #[arg(long, value_name = "COUNT")]
    files_max: Option<u64>,
}

#[derive(Debug, Subcommand)]
enum WorkspaceSubcommand {
    /// Create an empty workspace
    Create {
        /// Name of the workspace: a-z, 0-9 and -
        name: String,
        #[command(flatten)]
        options: NewWorkspaceFlags,
    },
    /// List workspaces by name
    List {
        /// List the workspaces in the trash instead
        #[arg(long)]
        trash: bool,
        /// Continue from the cursor that the previous page printed
        #[arg(long, value_name = "CURSOR")]
        cursor: Option<String>,
        /// Number of workspaces per page
        #[arg(long, value_name = "COUNT")]
        limit: Option<usize>,
    },
    /// Show a workspace with its size and the head of its journal
    Show {
        /// Name of the workspace
        name: String,
    },
    /// Create a workspace with the current files of another one
    Fork {
        /// Workspace to copy
        from: String,
        /// Name of the copy
        name: String,
        #[command(flatten)]
        options: NewWorkspaceFlags,
    },
    /// Export a workspace as a tar archive
    Export {
        /// Name of the workspace
        name: String,
        /// File to create [default: standard output]
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Create a workspace from a tar archive, completely or not at all
    Import {
        /// Name of the workspace
        name: String,
        /// Archive to read [default: standard input]
        #[arg(long, value_name = "FILE")]
        input: Option<PathBuf>,
        #[command(flatten)]
        options: NewWorkspaceFlags,
    },
    /// Delete a workspace: an ephemeral one at once, others go to the trash
    Destroy {
        /// Name of the workspace
        name: String,
    },
    /// Restore a workspace from the trash
    Restore {
        /// Name of the workspace, or its id if several had that name
        name: String,
        /// New name
        #[arg(long = "as", value_name = "NAME")]
        rename: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingRegistryDirectoryPolicy {
    Create,
    /// A missing registry directory is an error, because the path is probably mistyped.
    Refuse,
}

pub(crate) fn open_registry(
    flags: &WorkspaceFlags,
    directory: Option<&PathBuf>,
    missing: MissingRegistryDirectoryPolicy,
) -> Result<Arc<WorkspaceRegistry>, CommandError> {
    let directory = directory.ok_or_else(|| {
        output::usage_error("--workspaces DIR is required: the directory that stead serve --workspaces DIR serves")
    })?;
    if missing == MissingRegistryDirectoryPolicy::Refuse
        && !host_files::exists(&WorkspaceRegistry::registry_directory(directory))
    {
        let detail = format!("there are no workspaces in {}", directory.display());
        return Err(Error::new(ErrorKind::NotFound, detail)
            .with_next_step(
                NextStep::from("pass the directory that `stead serve --workspaces` serves")
                    .or(NextStep::person_command("workspace create NAME", "create one")),
            )
            .into());
    }
    Ok(WorkspaceRegistry::open(workspace_admin::registry_options(flags, directory))?)
}

impl WorkspaceSubcommand {
    fn when_registry_missing(&self) -> MissingRegistryDirectoryPolicy {
        let creates = matches!(self, WorkspaceSubcommand::Create { .. } | WorkspaceSubcommand::Import { .. });
        if creates { MissingRegistryDirectoryPolicy::Create } else { MissingRegistryDirectoryPolicy::Refuse }
    }
}

impl NewWorkspaceFlags {
    fn to_named_arguments(&self, flags: &WorkspaceFlags, name: &str) -> Result<Map<String, Value>, CommandError> {
        let mut arguments = self.to_arguments(flags)?;
        arguments.insert("name".to_owned(), name.into());
        Ok(arguments)
    }

    fn to_arguments(&self, flags: &WorkspaceFlags) -> Result<Map<String, Value>, CommandError> {
        let lasting = if self.ephemeral { "ephemeral" } else { "kept" };
        let policy = flags.policy.as_deref().map(host_files::read_text).transpose()?;
        let object = json!({
            "lasting": lasting, "label": self.label, "bytes_max": self.bytes_max, "files_max": self.files_max,
            "policy": policy,
        });
        Ok(object.as_object().cloned().unwrap_or_default())
    }
}

pub(crate) fn run(flags: &WorkspaceFlags, arguments: &WorkspaceCliArgs) -> CliCommandResult {
    let registry = open_registry(flags, arguments.workspaces.as_ref(), arguments.action.when_registry_missing())?;
    let caller = CallerAccessCliFlags { principal: arguments.principal.clone(), ..CallerAccessCliFlags::default() };
    let by = open_workspace::caller_from_flags(&caller, CallerProtocol::Person)?;
    let admin = RegistryWorkspaceAdmin(registry);
    let request = match &arguments.action {
        WorkspaceSubcommand::Fork { from, name, options } => {
            WorkspaceAdminRequest::Fork(from.clone(), options.to_named_arguments(flags, name)?)
        }
        WorkspaceSubcommand::Export { name, output } => {
            return export_workspace(&admin, &by, name, output.as_deref());
        }
        WorkspaceSubcommand::Import { name, input, options } => {
            let mut from: Box<dyn Read> = match input {
                Some(file) => Box::new(host_files::open(file)?),
                None => Box::new(std::io::stdin().lock()),
            };
            let created = admin.import_workspace(&by, name, options.to_arguments(flags)?, &mut *from)?;
            return print_workspaces(&created, OutputFormat::from(arguments.json));
        }
        WorkspaceSubcommand::Create { name, options } => {
            WorkspaceAdminRequest::Create(options.to_named_arguments(flags, name)?)
        }
        WorkspaceSubcommand::List { trash, cursor, limit } => {
            let object = json!({ "trash": trash, "cursor": cursor, "limit": limit });
            WorkspaceAdminRequest::List(object.as_object().cloned().unwrap_or_default())
        }
        WorkspaceSubcommand::Show { name } => WorkspaceAdminRequest::Show(name.clone()),
        WorkspaceSubcommand::Destroy { name } => WorkspaceAdminRequest::Destroy(name.clone()),
        WorkspaceSubcommand::Restore { name, rename } => {
            let name_wanted = rename.as_ref().map(|name| ("name".to_owned(), name.as_str().into()));
            WorkspaceAdminRequest::Restore(name.clone(), name_wanted.into_iter().collect())
        }
    };
    let answer = admin.run_request(&by, request)?;
    print_workspaces(&answer, OutputFormat::from(arguments.json))
}

fn export_workspace(
    admin: &RegistryWorkspaceAdmin,
    by: &Caller,
    name: &str,
    output: Option<&Path>,
) -> CliCommandResult {
    let mut begin = |summary: WorkspaceExportStartInfo| {
        if summary.omitted_files > 0 {
            let count = summary.omitted_files;
            output::print_note(&format!("omitted {count} links, pipes or devices, which archives cannot contain"));
        }
    };
    let mut out: Box<dyn Write> = match output {
        Some(file) => Box::new(host_files::create_new(file)?),
        None => Box::new(std::io::BufWriter::new(std::io::stdout().lock())),
    };
    admin.export_workspace(by, name, &mut begin, &mut *out)?;
    out.flush()?;
    Ok(CommandExit::Success)
}

fn print_workspaces(answer: &Value, format: OutputFormat) -> CliCommandResult {
    match (format, answer["workspaces"].as_array()) {
        (OutputFormat::Json, _) => output::print_json(answer)?,
        (OutputFormat::Text, None) => output::print_text(&workspace_line(answer))?,
        (OutputFormat::Text, Some(workspaces)) => {
            for one in workspaces {
                output::print_text(&workspace_line(one))?;
            }
            if let Some(cursor) = answer["cursor"].as_str() {
                output::print_note(&format!("there are more workspaces: repeat the command with --cursor {cursor}"));
            }
        }
    }
    Ok(CommandExit::Success)
}

fn workspace_line(one: &Value) -> String {
    let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let when = |key: &str| one[key].as_i64().map(|unix_ms| UtcSecond { unix_ms }.to_string()).unwrap_or_default();
    let mut line = format!("{}  {}  {}  {}", text("name"), text("id"), text("lasting"), text("state"));
    if let (Some(files), Some(bytes)) = (one["files"].as_u64(), one["bytes"].as_u64()) {
        line.push_str(&format!("  {files} files, {bytes} bytes, entry {}", one["head"]["number"]));
    }
    line.push_str(&format!("  used {}", when("used_ms")));
    if one["ends_ms"].is_i64() {
        line.push_str(&format!("  until {}", when("ends_ms")));
    }
    let label = text("label");
    if !label.is_empty() {
        line.push_str(&format!("  {label}"));
    }
    line
}
