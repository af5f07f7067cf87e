//! MCP over a pair of byte streams, one message per line. In earlier protocol versions, a client starts with
//! `initialize`. In later protocol versions, a client names the version in every request. The server supports both.
//!
//! The MCP server translates tool calls into engine calls. A malformed, oversized or ambiguous message gets an error,
//! and the server continues. Only protocol messages are written to the output. A long or waiting call blocks no other
//! call. The engine makes all access decisions. The public interface of this module does not expose types of the MCP
//! library.

use std::sync::Arc;

use rmcp::{
    RoleServer, ServiceExt,
    model::ProtocolVersion,
    service::{RequestContext, ServerInitializeError},
};
use stead_engine::{Caller, Engine};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{call_executor::CallExecutor, definition::DialectDefinitionParseError, dialect::DialectSet};

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
    InvalidMcpExtensionItemError, LoadedMcpExtension, McpClientHandle, McpExtension, McpExtensionErrorResponse,
    McpExtensionFuture, McpListKind, McpRequestForExtension,
};
pub(crate) use message_check::check_line;
pub(crate) use server::McpClientRequestHandler;
pub(crate) use shared_state::McpSharedState;

/// The context that the protocol library passes with a request.
type McpRequestContext = RequestContext<RoleServer>;

/// Why serving an MCP client failed.
#[derive(Debug, thiserror::Error)]
pub enum McpServeError {
    /// A tool definition in this program cannot be parsed, which is an error of the build.
    #[error(transparent)]
    InvalidDefinition(#[from] DialectDefinitionParseError),
    /// The connection to the MCP client failed, or the client violated the protocol.
    #[error("cannot serve the MCP client: {0}")]
    Protocol(String),
}

/// Provides the session name of a client process that was started for exactly one session.
pub trait AssignedSessionNameProvider: Send + Sync {
    /// The name of the client's session; `None` if the name is not known yet.
    fn current_session(&self) -> Option<String>;
}

/// Serves one MCP client until it closes its side. Every call of the client runs as `caller`, in the session that
/// `session_resolver` returns. If `session_resolver` returns no session, the session is named after the client program.
///
/// Must run inside a tokio runtime. Requests of clients can occupy the runtime's blocking threads.
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
    let server =
        Arc::new(McpClientRequestHandler::new(Arc::new(shared), closed).with_session_resolver(session_resolver));
    let running = match server.serve(transport).await {
        Ok(running) => running,
        // A client may close the connection without sending anything.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => return Err(McpServeError::Protocol(error.to_string())),
    };
    let server = running.service().clone();
    let ended = running.waiting().await;
    server.end_subscriptions().await;
    ended.map(drop).map_err(|error| McpServeError::Protocol(error.to_string()))
}

/// Whether the client uses a later protocol version, in which every request names the version and `initialize` is not
/// used.
fn uses_later_protocol(context: &McpRequestContext) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}
