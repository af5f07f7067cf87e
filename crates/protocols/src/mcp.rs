//! MCP over a pair of byte streams, one message per line. One process serves every revision that clients use: those
//! that start with `initialize` and those that carry the version in every request.
//!
//! Owns the translation between tool calls and engine calls. A malformed, oversized or ambiguous message gets an error
//! and the server continues; only protocol messages are written to the output; a long or waiting call blocks no other.
//! Makes no access decisions. Types of the protocol library stay private to this module.

use std::sync::Arc;

use rmcp::{ServiceExt, service::ServerInitializeError};
use stead_engine::{Caller, Engine};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{call_executor::CallExecutor, definition::DefinitionError, dialect::DialectSet};

mod call;
mod completion;
mod directory_read;
mod elicitation;
mod extension;
mod message_check;
mod prompts;
mod resources;
mod server;
mod shared_state;
mod span;
mod tool_result;
mod transport;
mod watch_notifications;

pub use extension::{
    InvalidExtensionError, LoadedMcpExtension, McpClientHandle, McpExtension, McpExtensionError, McpExtensionFuture,
    McpExtensionRequest, McpListKind,
};
pub(crate) use message_check::check_line;
pub(crate) use server::McpServer;
pub(crate) use shared_state::McpSharedState;

/// Why serving a client failed.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The build is broken.
    #[error(transparent)]
    InvalidDefinition(#[from] DefinitionError),
    /// The connection failed.
    #[error("the client could not be served: {0}")]
    Protocol(String),
}

/// Names the session of a client that was started for one, in place of the client.
pub trait SessionResolver: Send + Sync {
    /// The session, or `None` while it has no name.
    fn current_session(&self) -> Option<String>;
}

/// Serves one client until it closes its side. Every call is made for `caller`; its session is the one of
/// `session_resolver`, or else the name the client gives itself.
///
/// Must run inside a tokio runtime; calls occupy its blocking threads.
pub async fn serve<R, W>(
    engine: Engine,
    caller: Caller,
    session_resolver: Option<Arc<dyn SessionResolver>>,
    dialects: DialectSet,
    input: R,
    output: W,
) -> Result<(), McpError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (transport, closed) = transport::McpLineTransport::new(input, output);
    let shared = McpSharedState::new(Arc::new(CallExecutor::new(engine)), caller, dialects);
    let server = Arc::new(McpServer::new(Arc::new(shared), closed).with_session_resolver(session_resolver));
    let running = match server.serve(transport).await {
        Ok(running) => running,
        // A client that closes before it sends anything is not an error.
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
