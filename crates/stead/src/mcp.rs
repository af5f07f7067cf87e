//! `stead mcp`: one client over standard input and output, nothing else on standard output.

use faces::limits::SHUTDOWN_WAIT;

use crate::{
    cli::{McpFlags, WorkspaceFlags},
    serving::{self, Ready},
    show::{Exit, Outcome, Problem},
    wire::Asker,
};

/// Serves until the client closes its side.
pub(crate) fn run(flags: &WorkspaceFlags, mcp: &McpFlags) -> Outcome {
    let Ready { runtime, input, output, dialects, opened, caller } =
        serving::ready(flags, &mcp.dialects, &mcp.caller, &mcp.asking, Asker::Mcp)?;
    let served = runtime.block_on(faces::mcp::serve(opened.engine.clone(), caller, dialects, input, output));
    runtime.shutdown_timeout(SHUTDOWN_WAIT);
    served.map_err(|error| Problem::Outside(error.to_string()))?;
    Ok(Exit::Fine)
}
