//! `stead mcp`: MCP with one client over standard input and output. Nothing else is written to standard output.
//!
//! With a ticket in the environment, calls belong to the ticket's session, regardless of the client's name. A ticket of another
//! workspace or principal is an error.

use std::sync::{Arc, OnceLock};

use stead_engine::{Caller, Error, ErrorKind};
use stead_local::LocalWorkspace;
use stead_protocols::{limits::SHUTDOWN_TIMEOUT, mcp::SessionResolver};

use crate::{
    cli::{McpFlags, WorkspaceFlags},
    open_workspace::CallerKind,
    output::{CommandError, CommandExit, CommandResult},
    startup::{self, StdioServerSetup},
};

/// The variable with the ticket. It is not an argument, because other users can read arguments.
pub(crate) const TICKET_VARIABLE: &str = "STEAD_TICKET";

/// Serves until the client closes standard input.
pub(crate) fn run(flags: &WorkspaceFlags, mcp: &McpFlags) -> CommandResult {
    let StdioServerSetup { runtime, input, output, dialects, workspace: opened, caller } =
        startup::prepare_stdio_server(flags, &mcp.dialects, &mcp.caller, &mcp.approval, CallerKind::Mcp)?;
    let sessions = match std::env::var(TICKET_VARIABLE) {
        Ok(ticket) => Some(resolver_for_ticket(&opened.local, &caller, ticket)?),
        Err(_) => None,
    };
    let served =
        runtime.block_on(stead_protocols::mcp::serve(opened.engine.clone(), caller, sessions, dialects, input, output));
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    served.map_err(|error| CommandError::System(error.to_string()))?;
    Ok(CommandExit::Success)
}

/// Resolves the session of a ticket.
struct TicketSessionResolver {
    local: Arc<LocalWorkspace>,
    ticket: String,
    /// The session, once the ticket is bound to it.
    session: OnceLock<String>,
}

impl SessionResolver for TicketSessionResolver {
    fn current_session(&self) -> Option<String> {
        if let Some(session) = self.session.get() {
            return Some(session.clone());
        }
        let session = self.local.load_session_ticket(&self.ticket).ok()??.session?;
        Some(self.session.get_or_init(|| session).clone())
    }
}

/// Checks that the ticket belongs to this workspace and caller.
fn resolver_for_ticket(
    local: &Arc<LocalWorkspace>,
    caller: &Caller,
    ticket: String,
) -> Result<Arc<dyn SessionResolver>, CommandError> {
    let known = local.load_session_ticket(&ticket)?;
    if known.is_none_or(|known| known.principal != caller.principal.to_string()) {
        let refused = Error::new(
            ErrorKind::NotOwner,
            format!("{TICKET_VARIABLE} is not valid for this workspace and principal"),
        )
        .with_next_step(
            "start the server with the command and environment that the session provided, or unset STEAD_TICKET",
        );
        return Err(refused.into());
    }
    Ok(Arc::new(TicketSessionResolver { local: local.clone(), ticket, session: OnceLock::new() }))
}
