//! `stead acp`: stands between an editor on standard input and output and an agent that it starts, or in a chain that a
//! conductor runs. Nothing but the protocol goes to standard output.
//!
//! Ends when either side ends, and ends nothing that it did not start. How the agent ended is how it ends itself.

use std::sync::Arc;

use engine::{Asking, Caller};
use faces::{
    acp::{self, Encodings, Endings, FileOffer, Keeping, Offer, Options, Peer, Who},
    limits::{CALL_THREADS_MAX, SHUTDOWN_WAIT},
};

mod agent;
mod land;

use agent::Agent;
use land::Land;

use crate::{
    cli::{AcpFlags, Approve, CallerFlags, Given, LineEndings, WorkspaceFlags, WrittenEncoding},
    serving,
    show::{Exit, Outcome, Problem},
    stdio,
    wire::{self, Asker},
};

/// Threads for standard streams that cannot be waited for, and for the agent's end.
const OTHER_THREADS: usize = 4;

/// Stands in between until one side ends.
pub(crate) fn run(flags: &WorkspaceFlags, workspace: Given, acp: &AcpFlags) -> Outcome {
    serving::say_risks(flags);
    let agent = wire::caller(&acp.caller, Asker::Acp)?;
    let person = Caller { face: agent.face, ..wire::caller(&CallerFlags::default(), Asker::Person)? };
    let who = Who { agent, person };
    let land = Land::new(flags, workspace, acp, who.agent.principal.clone(), asked(acp.approve))?;
    let land = Arc::new(land);
    let options = Options { offer: offer(acp), keeping: keeping(acp) };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(CALL_THREADS_MAX + OTHER_THREADS)
        .build()
        .map_err(|error| Problem::Outside(format!("the runtime cannot start: {error}")))?;
    let served = runtime.block_on(async {
        let editor = Peer { input: stdio::input(), output: stdio::output() };
        let Some((program, arguments)) = acp.agent.split_first() else {
            let ended = acp::in_chain(editor, who, options, land.clone()).await;
            return ended.map(|_| Exit::Fine).map_err(Problem::from);
        };
        let (mut agent, peer) = Agent::start(program, arguments)?;
        tokio::select! {
            ended = acp::between(editor, peer, who, options, land.clone()) => match ended {
                // Whoever does not listen any more is gone too.
                Ok(_) | Err(_) => agent.end().await,
            },
            // What it started may still hold its output open; nobody speaks for it any more.
            exit = agent.gone() => exit,
        }
    });
    runtime.shutdown_timeout(SHUTDOWN_WAIT);
    land.close();
    served
}

/// What is done where a person must be asked. The client is the editor, not the agent, so its person may answer.
fn asked(approve: Approve) -> Asking {
    match approve {
        Approve::Client => Asking::Client,
        Approve::Ask | Approve::Deny | Approve::Allow => serving::asked(approve),
    }
}

fn offer(acp: &AcpFlags) -> FileOffer {
    FileOffer { reads: Offer::Yes, writes: if acp.caller.read_only { Offer::No } else { Offer::Yes } }
}

fn keeping(acp: &AcpFlags) -> Keeping {
    let endings = match acp.line_endings {
        LineEndings::Kept => Endings::Kept,
        LineEndings::Given => Endings::AsGiven,
    };
    let encodings = match acp.encoding {
        WrittenEncoding::Kept => Encodings::Kept,
        WrittenEncoding::Utf8 => Encodings::Utf8,
    };
    Keeping { endings, encodings }
}
