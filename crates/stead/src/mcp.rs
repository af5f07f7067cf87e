//! `stead mcp`: one client over standard input and output, nothing else on standard output.
//!
//! Where the environment holds a ticket, calls belong to the session that it was made for, whatever the client calls
//! itself; a ticket that is not of this workspace and this principal ends it at once.

use std::sync::{Arc, OnceLock};

use engine::{Caller, Failure, Kind};
use faces::{limits::SHUTDOWN_WAIT, mcp::Belonging};
use local::LocalWorkspace;

use crate::{
    cli::{McpFlags, WorkspaceFlags},
    serving::{self, Ready},
    show::{Exit, Outcome, Problem},
    wire::Asker,
};

/// The variable that holds a ticket. In the environment, because arguments are for everybody to see.
pub(crate) const TICKET: &str = "STEAD_TICKET";

/// Serves until the client closes its side.
pub(crate) fn run(flags: &WorkspaceFlags, mcp: &McpFlags) -> Outcome {
    let Ready { runtime, input, output, dialects, opened, caller } =
        serving::ready(flags, &mcp.dialects, &mcp.caller, &mcp.asking, Asker::Mcp)?;
    let belonging = match std::env::var(TICKET) {
        Ok(ticket) => Some(shown(&opened.local, &caller, ticket)?),
        Err(_) => None,
    };
    let served = runtime.block_on(faces::mcp::serve(
        opened.engine.clone(),
        caller,
        belonging,
        dialects,
        input,
        output,
    ));
    runtime.shutdown_timeout(SHUTDOWN_WAIT);
    served.map_err(|error| Problem::Outside(error.to_string()))?;
    Ok(Exit::Fine)
}

/// Whoever shows a ticket.
struct Bearer {
    local: Arc<LocalWorkspace>,
    ticket: String,
    /// The session, once it has a name.
    session: OnceLock<String>,
}

impl Belonging for Bearer {
    fn session(&self) -> Option<String> {
        if let Some(session) = self.session.get() {
            return Some(session.clone());
        }
        let session = self.local.session_ticket(&self.ticket).ok()??.session?;
        Some(self.session.get_or_init(|| session).clone())
    }
}

/// Takes a ticket that is of this workspace and this caller.
fn shown(
    local: &Arc<LocalWorkspace>,
    caller: &Caller,
    ticket: String,
) -> Result<Arc<dyn Belonging>, Problem> {
    let known = local.session_ticket(&ticket)?;
    if known.is_none_or(|known| known.principal != caller.principal.to_string()) {
        let refused =
            Failure::new(Kind::NotOwner, format!("{TICKET} is no ticket of this workspace and principal"))
                .hint("leave the command and the environment as the session gave them, or unset it");
        return Err(refused.into());
    }
    Ok(Arc::new(Bearer { local: local.clone(), ticket, session: OnceLock::new() }))
}
