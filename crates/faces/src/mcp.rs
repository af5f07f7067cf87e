//! MCP over a pair of byte streams, one message a line. Serves every revision that clients use from one process: those
//! that open with `initialize` and those that carry their version in every request.
//!
//! Owns the translation of a tool call into an engine call and back. Promises: a malformed, over-long or ambiguous
//! message is answered with an error and the server goes on; nothing but protocol is written; a call that waits or
//! works long holds up no other. Never decides whether something may be done. The types of the protocol library stay
//! inside.

use std::sync::Arc;

use engine::{Caller, Engine};
use rmcp::{ServiceExt, service::ServerInitializeError};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{definition::Broken, dialect::Dialects, run::Runner};

mod annex;
mod blueprint;
mod call;
mod completion;
mod directory;
mod events;
mod guide;
mod message;
mod question;
mod reply;
mod resources;
mod server;
mod span;
mod transport;

pub use annex::{Annex, AnnexError, Annexed, Answering, Asked, Client, List, Refusal};
pub(crate) use blueprint::Blueprint;
pub(crate) use message::inspect;
pub(crate) use server::Server;

/// Why serving ended badly.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The build is broken.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The client could not be served.
    #[error("the client could not be served: {0}")]
    Protocol(String),
}

/// Tells which session a client's calls belong to, where whoever had it started says so and not the client.
pub trait Belonging: Send + Sync {
    /// The session; nothing as long as it has no name.
    fn session(&self) -> Option<String>;
}

/// Serves one client until it closes its side. The caller is who every call is made for; its session is replaced by
/// the name the client gives itself, or by the one it belongs to.
///
/// Must run inside a tokio runtime; calls occupy its blocking threads.
pub async fn serve<R, W>(
    engine: Engine,
    caller: Caller,
    belonging: Option<Arc<dyn Belonging>>,
    dialects: Dialects,
    input: R,
    output: W,
) -> Result<(), McpError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (transport, closed) = transport::Lines::new(input, output);
    let blueprint = Blueprint::new(Arc::new(Runner::new(engine)), caller, dialects);
    let server = Arc::new(Server::of(Arc::new(blueprint), closed).belonging(belonging));
    let running = match server.serve(transport).await {
        Ok(running) => running,
        // A client that closes before it says anything is no failure.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => return Err(McpError::Protocol(error.to_string())),
    };
    let served = running.service().clone();
    let ended = running.waiting().await;
    served.end_subscriptions().await;
    match ended {
        Ok(_) => Ok(()),
        Err(error) => Err(McpError::Protocol(error.to_string())),
    }
}
