//! `stead rpc`: JSON-RPC with one client over standard input and output, one object a line, nothing else on standard
//! output.

use faces::{limits::SHUTDOWN_WAIT, rpc::Rpc};

use crate::{
    cli::{RpcFlags, WorkspaceFlags},
    serving::{self, Ready},
    show::{Exit, Outcome, Problem},
    wire::Asker,
};

/// Serves until the client closes its side.
pub(crate) fn run(flags: &WorkspaceFlags, rpc: &RpcFlags) -> Outcome {
    let Ready { runtime, input, output, dialects, opened, caller } =
        serving::ready(flags, &rpc.dialects(), &rpc.caller, &rpc.asking, Asker::Rpc)?;
    let rpc = Rpc::new(opened.engine.clone(), caller, dialects);
    let served = runtime.block_on(faces::rpc::serve(rpc, input, output));
    runtime.shutdown_timeout(SHUTDOWN_WAIT);
    served.map_err(|error| Problem::Outside(error.to_string()))?;
    Ok(Exit::Fine)
}
