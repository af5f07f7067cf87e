//! `stead rpc`: JSON-RPC with one client over standard input and output, one object per line. Nothing else is written to
//! standard output.

use stead_protocols::{limits::SHUTDOWN_TIMEOUT, rpc::RpcServer};

use crate::{
    cli::{RpcFlags, WorkspaceFlags},
    open_workspace::CallerKind,
    output::{CommandError, CommandExit, CommandResult},
    startup::{self, StdioServerSetup},
};

/// Serves until the client closes standard input.
pub(crate) fn run(flags: &WorkspaceFlags, rpc: &RpcFlags) -> CommandResult {
    let StdioServerSetup { runtime, input, output, dialects, workspace: opened, caller } =
        startup::prepare_stdio_server(flags, &rpc.dialects(), &rpc.caller, &rpc.approval, CallerKind::Rpc)?;
    let rpc = RpcServer::new(opened.engine.clone(), caller, dialects);
    let served = runtime.block_on(stead_protocols::rpc::serve(rpc, input, output));
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    served.map_err(|error| CommandError::System(error.to_string()))?;
    Ok(CommandExit::Success)
}
