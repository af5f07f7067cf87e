//! Runs `stead trash restore`; the other commands of `stead trash` are operations.

use clap::{Args, Subcommand};
use serde_json::json;
use stead_local::LandlockMode;

use crate::{
    cli::{CallerAccessCliFlags, WorkspaceFlags},
    open_workspace::{self, CallerProtocol},
    operation::{call_operation, print_answer},
    output::{AnswerFormatFlag, CliCommandResult},
};

#[derive(Debug, Args)]
pub(crate) struct TrashCliArgs {
    #[command(subcommand)]
    action: TrashSubcommand,
}

#[derive(Debug, Subcommand)]
enum TrashSubcommand {
    /// Restore an item
    Restore {
        #[command(flatten)]
        caller: CallerAccessCliFlags,
        /// Id of the item, as stead trash list prints it
        id: String,
        /// Destination [default: the original path]
        #[arg(long, value_name = "PATH")]
        to: Option<String>,
        #[command(flatten)]
        format: AnswerFormatFlag,
    },
}

pub(crate) fn run(flags: &WorkspaceFlags, arguments: &TrashCliArgs) -> CliCommandResult {
    let TrashSubcommand::Restore { caller, id, to, format } = &arguments.action;
    let caller = open_workspace::caller_from_flags(caller, CallerProtocol::Person)?;
    let opened = open_workspace::open_workspace(flags, LandlockMode::Off)?;
    let answer = call_operation(&opened, &caller, "restore", json!({ "trash": id, "to": to }))?;
    print_answer(&answer, (*format).into())
}
