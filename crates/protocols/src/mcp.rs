//! The MCP server over a pair of byte streams with one message per line. The MCP server supports clients that start
//! with `initialize` and clients that name the protocol version in every request. A malformed message gets an error
//! response, and the MCP server continues. The public interface of `mcp` exposes no types of the MCP library.

use std::sync::Arc;

use rmcp::{
    RoleServer, ServiceExt,
    model::ProtocolVersion,
    service::{RequestContext, ServerInitializeError},
};
use stead_engine::{Caller, Engine};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{call_executor::CallExecutor, dialect::DialectSet};

mod elicitation;
mod extension;
mod message_check;
mod prompts;
mod resources;
mod server;
mod shared_state;
mod subscriptions;
mod tool_call;
mod transport;

pub use extension::{
    InvalidMcpExtensionItemError, McpClientHandle, McpExtension, McpExtensionErrorResponse, McpExtensionFuture,
    McpExtensionWithParsedItems, McpListKind, McpRequestForExtension,
};
pub(crate) use message_check::check_line;
pub(crate) use server::McpClientRequestHandler;
pub(crate) use shared_state::McpSharedState;

type McpRequestContext = RequestContext<RoleServer>;

/// The error for a failed connection to an MCP client, or for a client that violates the protocol.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve the MCP client: {0}")]
pub struct McpServeError(String);

/// Provides the name of the session for which a client process was started.
pub trait AssignedSessionNameProvider: Send + Sync {
    /// Returns the name of the client's session, or `None` while the name is unknown.
    fn current_session(&self) -> Option<String>;
}

/// Serves one MCP client until the client closes the connection, and runs every call of the client as `caller`. A
/// client's calls run in the session from `session_resolver`, or else in a session named after the client program.
///
/// This function must run inside a tokio runtime, whose blocking threads the client's requests can occupy.
pub async fn serve<R, W>(
    engine: Engine,
    caller: Caller,
    session_resolver: Option<Arc<dyn AssignedSessionNameProvider>>,
    dialects: DialectSet,
    input: R,
    output: W,
) -> Result<(), McpServeError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (transport, closed) = transport::McpLineTransport::new(input, output);
    let shared = McpSharedState::new(Arc::new(CallExecutor::new(engine)), caller, dialects);
    let mut handler = McpClientRequestHandler::new(Arc::new(shared), closed);
    handler.session_resolver = session_resolver;
    let running = match Arc::new(handler).serve(transport).await {
        Ok(running) => running,
        // A client may close the connection without sending anything.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => return Err(McpServeError(error.to_string())),
    };
    let server = running.service().clone();
    let ended = running.waiting().await;
    server.end_subscriptions().await;
    ended.map(drop).map_err(|error| McpServeError(error.to_string()))
}

/// Returns whether the client names the protocol version in every request instead of sending `initialize`.
fn uses_later_protocol(context: &McpRequestContext) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}
