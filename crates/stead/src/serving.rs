//! What every server over standard input and output begins with: the risks said aloud, the streams, the dialects, the
//! open workspace and the caller.

use engine::Caller;
use faces::{
    dialect::{Dialects, Reach},
    limits::CALL_THREADS_MAX,
};
use local::Wall;
use tokio::runtime::Runtime;

use crate::{
    cli::{CallerFlags, DialectFlags, Durability, WorkspaceFlags},
    outside,
    show::{self, Problem},
    stdio::{self, Input, Output},
    wire::{self, Asker, Opened},
};

/// The user that may do everything.
const ROOT: u32 = 0;
/// Threads for standard streams that cannot be waited for.
const STREAM_THREADS: usize = 2;

/// A server that can begin.
pub(crate) struct Ready {
    pub(crate) runtime: Runtime,
    pub(crate) input: Input,
    pub(crate) output: Output,
    pub(crate) dialects: Dialects,
    pub(crate) opened: Opened,
    pub(crate) caller: Caller,
}

/// Gets everything ready. One thread carries the conversation; calls have threads of their own. No thread starts before
/// the wall stands.
pub(crate) fn ready(
    flags: &WorkspaceFlags,
    dialects: &DialectFlags,
    caller: &CallerFlags,
    asker: Asker,
) -> Result<Ready, Problem> {
    say_risks(flags);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(CALL_THREADS_MAX + STREAM_THREADS)
        .build()
        .map_err(|error| Problem::Outside(format!("the runtime cannot start: {error}")))?;
    let (input, output) = {
        let _inside = runtime.enter();
        (stdio::input(), stdio::output())
    };
    let dialects = wire::dialects(flags, dialects)?;
    let reach = dialects.reach();
    if reach == Reach::Machine {
        show::remark(
            "restrict=false: callers reach every place that this user may, and no second wall stands around them",
        );
    }
    let opened = wire::open_reaching(flags, Wall::Raise, &reach)?;
    let caller = wire::caller_at(caller, asker, &opened.home)?;
    Ok(Ready { runtime, input, output, dialects, opened, caller })
}

fn say_risks(flags: &WorkspaceFlags) {
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
}
