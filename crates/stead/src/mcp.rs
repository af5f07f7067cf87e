//! `stead mcp`: one client over standard input and output, nothing else on standard output.

use faces::{
    dialect::Reach,
    limits::{CALL_THREADS_MAX, SHUTDOWN_WAIT},
};
use local::Wall;

use crate::{
    cli::{Durability, McpFlags, WorkspaceFlags},
    outside,
    show::{self, Exit, Outcome, Problem},
    stdio,
    wire::{self, Asker},
};

/// Serves until the client closes its side.
pub(crate) fn run(flags: &WorkspaceFlags, mcp: &McpFlags) -> Outcome {
    if outside::user() == Some(ROOT) {
        show::remark(
            "running as root: files belong to root, and only stead's own checks stand between callers and the machine; \
             run it as a user of its own where you can",
        );
    }
    if flags.durability == Durability::Fast {
        show::remark(
            "durability fast: an acknowledged change survives the death of this process, not a power cut",
        );
    }
    // One thread carries the conversation; calls have threads of their own. No thread starts before the wall stands.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(CALL_THREADS_MAX + STREAM_THREADS)
        .build()
        .map_err(|error| Problem::Outside(format!("the runtime cannot start: {error}")))?;
    let (input, output) = {
        let _inside = runtime.enter();
        (stdio::input(), stdio::output())
    };
    let dialects = wire::dialects(flags, &mcp.dialects)?;
    let reach = dialects.reach();
    if reach == Reach::Machine {
        show::remark(
            "restrict=false: callers reach every place that this user may, and no second wall stands around them",
        );
    }
    let opened = wire::open_reaching(flags, Wall::Raise, &reach)?;
    let caller = wire::caller_at(&mcp.caller, Asker::Agent, &opened.home)?;
    let served = runtime.block_on(faces::mcp::serve(opened.engine.clone(), caller, dialects, input, output));
    runtime.shutdown_timeout(SHUTDOWN_WAIT);
    served.map_err(|error| Problem::Outside(error.to_string()))?;
    Ok(Exit::Fine)
}

/// The user that may do everything.
const ROOT: u32 = 0;
/// Threads for standard streams that cannot be waited for.
const STREAM_THREADS: usize = 2;
