//! Runs `stead trash`, which lists, restores and purges removed files.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use stead_engine::{Caller, Error, ErrorKind, Principal, TrashItem, Workspace};
use stead_local::LandlockMode;

use crate::{
    cli::{CallerAccessCliFlags, WorkspaceFlags},
    open_workspace::{self, CallerProtocol, CommandLineWorkspace},
    operation::{call_operation, print_answer},
    output::{self, CliCommandResult, CommandError, CommandExit, OutputFormat},
    time,
};

#[derive(Debug, Args)]
pub(crate) struct TrashCliArgs {
    #[command(subcommand)]
    action: TrashSubcommand,
}

#[derive(Debug, Subcommand)]
enum TrashSubcommand {
    /// List removed files and directories, newest first
    List {
        #[command(flatten)]
        caller: CallerAccessCliFlags,
        /// Include items that others removed
        #[arg(long)]
        all: bool,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Restore an item
    Restore {
        #[command(flatten)]
        caller: CallerAccessCliFlags,
        /// Id of the item, as stead trash list prints it
        id: String,
        /// Destination [default: the original path]
        #[arg(long, value_name = "PATH")]
        to: Option<String>,
        /// Print the answer as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Delete items permanently; agents cannot do this
    Purge {
        #[command(flatten)]
        caller: CallerAccessCliFlags,
        /// Item ids; without --all only items that this principal removed
        #[arg(required_unless_present_any = ["mine", "all"])]
        ids: Vec<String>,
        /// Delete all items that this principal removed
        #[arg(long, conflicts_with_all = ["ids", "all"])]
        mine: bool,
        /// Include items that others removed; without ids, delete everything
        #[arg(long)]
        all: bool,
    },
}

pub(crate) fn run(flags: &WorkspaceFlags, arguments: &TrashCliArgs) -> CliCommandResult {
    let (TrashSubcommand::List { caller, .. }
    | TrashSubcommand::Restore { caller, .. }
    | TrashSubcommand::Purge { caller, .. }) = &arguments.action;
    let caller = open_workspace::caller_from_flags(caller, CallerProtocol::Person)?;
    let opened = open_workspace::open_workspace(flags, LandlockMode::Off)?;
    match &arguments.action {
        TrashSubcommand::List { all, json, .. } => {
            list_trash(&opened, (!all).then_some(&caller.principal), OutputFormat::from(*json))
        }
        TrashSubcommand::Restore { id, to, json, .. } => {
            let answer = call_operation(&opened, &caller, "restore", json!({ "trash": id, "to": to }))?;
            print_answer(answer, OutputFormat::from(*json))
        }
        TrashSubcommand::Purge { ids, all, .. } => {
            let scope = if *all { TrashPurgeOwnerScope::Everyone } else { TrashPurgeOwnerScope::Own };
            purge_items(&opened, &caller, scope, ids)
        }
    }
}

fn list_trash(opened: &CommandLineWorkspace, owner: Option<&Principal>, format: OutputFormat) -> CliCommandResult {
    for item in opened.local.trash(owner)? {
        output::print_as(format, || trash_item_to_json(&item), || trash_item_line(&item))?;
    }
    Ok(CommandExit::Success)
}

fn trash_item_line(item: &TrashItem) -> String {
    let TrashItem { id, path, owner, summary, .. } = item;
    let (removed, end) = (time::iso_utc(item.removed_ms), time::iso_utc(item.retain_until_ms));
    format!(
        "{id}  {path}  {} files, {} bytes  removed {removed} by {owner}, kept until {end}",
        summary.files, summary.bytes
    )
}

fn trash_item_to_json(item: &TrashItem) -> Value {
    json!({
        "trash": item.id,
        "path": item.path.to_wire(),
        "owner": item.owner,
        "files": item.summary.files,
        "bytes": item.summary.bytes,
        "removed": time::iso_utc(item.removed_ms),
        "recoverable_until": time::iso_utc(item.retain_until_ms),
        "entry": item.entry,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrashPurgeOwnerScope {
    Own,
    Everyone,
}

fn purge_items(
    opened: &CommandLineWorkspace,
    caller: &Caller,
    scope: TrashPurgeOwnerScope,
    ids: &[String],
) -> CliCommandResult {
    if !matches!(caller.principal, Principal::User(_)) {
        return Err(Error::new(ErrorKind::NotOwner, "only a person can purge the trash")
            .with_next_step("repeat the command as a person: --principal user:NAME")
            .into());
    }
    let owner = match scope {
        TrashPurgeOwnerScope::Own => Some(&caller.principal),
        TrashPurgeOwnerScope::Everyone => None,
    };
    let ids: Vec<String> = if ids.is_empty() {
        opened.local.trash(owner)?.into_iter().map(|item| item.id).collect()
    } else {
        // All ids are checked before anything is deleted.
        ids.iter().map(|id| check_purgeable(opened, owner, id)).collect::<Result<_, CommandError>>()?
    };
    let deleted = opened.local.delete_trash_items(&ids)?;
    output::print_text(&format!("permanently deleted {deleted} items"))?;
    Ok(CommandExit::Success)
}

fn check_purgeable(opened: &CommandLineWorkspace, owner: Option<&Principal>, id: &str) -> Result<String, CommandError> {
    let item = opened.local.trash_item(id)?;
    let item = item.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("there is no item {id} in the trash"))
            .with_next_step("to list the trash, run: stead trash list")
    })?;
    if owner.is_some_and(|owner| item.owner != owner.to_string()) {
        return Err(Error::new(ErrorKind::NotOwner, format!("{id} was not deleted: {} removed it", item.owner))
            .with_next_step("add --all to purge items that others removed")
            .into());
    }
    Ok(item.id)
}
