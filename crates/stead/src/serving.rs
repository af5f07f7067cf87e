//! What every server over standard input and output begins with: the risks said aloud, the streams, the dialects, the
//! open workspace and the caller.

use std::path::PathBuf;

use engine::{Asking, Caller};
use faces::{
    dialect::{Dialects, Reach},
    limits::CALL_THREADS_MAX,
};
use local::Wall;
use tokio::runtime::Runtime;

use crate::{
    cli::{Approve, AskingFlags, CallerFlags, DialectFlags, Durability, WorkspaceFlags},
    outside,
    show::{self, Problem},
    spans,
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
    asking: &AskingFlags,
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
    let mut opened = wire::open_reaching(flags, Wall::Raise, &reach)?;
    spans::begin();
    opened.engine = opened.engine.clone().asking(asked(asking.approve));
    let caller = wire::caller_at(caller, asker, &opened.home)?;
    Ok(Ready { runtime, input, output, dialects, opened, caller })
}

/// An open workspace behind its wall, beside which these places stay readable, with the risks said aloud.
pub(crate) fn opened(
    flags: &WorkspaceFlags,
    asking: &AskingFlags,
    beside: Vec<PathBuf>,
) -> Result<Opened, Problem> {
    say_risks(flags);
    let mut options = wire::options(flags, Wall::Raise, &Reach::Workspace)?;
    options.beside = beside;
    let mut opened = wire::opened(options)?;
    opened.engine = opened.engine.clone().asking(asked(asking.approve));
    Ok(opened)
}

/// The operator's choice, said aloud where it is one of trust.
pub(crate) fn asked(approve: Approve) -> Asking {
    match approve {
        Approve::Ask => Asking::Ask,
        Approve::Deny => Asking::Deny,
        Approve::Allow => {
            show::remark(
                "approve allow: calls that need a person's approval run without it; the journal says so",
            );
            Asking::Allow
        }
        Approve::Client => {
            show::remark(
                "approve client: whoever is the client approves; if the client is the agent, it approves itself",
            );
            Asking::Client
        }
    }
}

/// Says what is good to know before anything is served.
pub(crate) fn say_risks(flags: &WorkspaceFlags) {
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
