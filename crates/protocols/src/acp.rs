//! A proxy for the Agent Client Protocol (ACP) between an editor and an agent. The proxy serves the agent's file
//! requests itself. It forwards other messages as raw JSON, so unknown members are kept. The proxy changes only
//! messages that initialize the connection or set up sessions, and keeps the other members of these messages unchanged.
//!
//! The agent's `fs/*` requests are confined to the roots of their session. Each of these requests becomes an engine
//! call, and reaches the editor only after the engine has checked it. The ids of the proxy's own requests never collide
//! with the ids of a peer's requests. The proxy opens no file itself: its caller provides a [`SessionRootOpener`].

use std::{io, sync::Arc};

use stead_engine::{Caller, Engine, Error};
use tokio::sync::Semaphore;

use crate::limits::REQUESTS_PENDING_MAX;

mod conductor;
mod editor_files;
mod editor_requests;
mod editor_writes;
mod errors;
mod files;
mod json_members;
mod message;
mod permission;
mod proxy;
mod review;
mod router;
mod session;
mod setup;
mod text_format;

pub use crate::dialect::acp::AcpDialect;
pub(crate) use errors::AcpError;
pub(crate) use files::select_lines;
pub use proxy::{BoxedReader, BoxedWriter};
pub use session::{OpenedAcpSessionRoot, SingleFileRoot};
pub use setup::{AcpCapabilityOffered, AcpFileCapabilities, McpServerCommand, SessionTicketEnvVar};
pub use text_format::{WriteEncodingPolicy, WriteFormatPolicy, WriteLineEndingPolicy};

use conductor::{AcpConductorEnvelopeCodec, AcpPeerWriter};
use router::AcpRouter;

/// Opens the roots of sessions. Implemented by the crate that accesses files.
pub trait SessionRootOpener: Send + Sync {
    /// Opens a directory or a single file by its absolute path. Files outside of this root stay inaccessible.
    fn open_root(&self, root: &str) -> Result<OpenedAcpSessionRoot, Error>;

    /// The command that starts the MCP server for this working directory. `None` means that agents get no MCP server.
    fn mcp_server_command(&self, directory: &str) -> Option<McpServerCommand>;

    /// Assigns the calls of the MCP server that has this ticket to the session with this name.
    fn bind_server_to_session(&self, directory: &str, ticket: &SessionTicketEnvVar, session: &str)
    -> Result<(), Error>;

    /// Adds a policy rule that always allows the change for which the approval was requested.
    fn add_allow_rule(&self, engine: &Engine, approval: &str) -> Result<(), Error>;
}

/// Options of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcpProxyConfig {
    /// The file methods advertised to agents.
    pub file_capabilities: AcpFileCapabilities,
    /// The format of written files. A call can override this format.
    pub text_format: WriteFormatPolicy,
}

/// The peer that closed the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcpConnectionClosedBy {
    /// The editor closed its side.
    Editor,
    /// The agent closed its side.
    Agent,
}

/// The callers of the engine in the sessions of one connection.
#[derive(Debug, Clone)]
pub struct AcpConnectionCallers {
    /// The agent, as the caller of its file methods. Its session is replaced by the ACP session id.
    pub agent: Caller,
    /// The person at the editor, as the caller of review requests.
    pub person: Caller,
}

struct AcpProxy {
    router: AcpRouter,
    options: AcpProxyConfig,
    root_opener: Arc<dyn SessionRootOpener>,
    editor: AcpPeerWriter,
    agent: AcpPeerWriter,
    /// One permit per concurrent file call.
    call_slots: Arc<Semaphore>,
}

impl AcpProxy {
    fn new(
        callers: AcpConnectionCallers,
        options: AcpProxyConfig,
        root_opener: Arc<dyn SessionRootOpener>,
        editor: AcpPeerWriter,
        agent: AcpPeerWriter,
    ) -> Arc<Self> {
        let router = AcpRouter::new(callers, options);
        let call_slots = Arc::new(Semaphore::new(REQUESTS_PENDING_MAX));
        Arc::new(Self { router, options, root_opener, editor, agent, call_slots })
    }
}

/// The streams of one peer.
pub struct AcpPeerStreams {
    /// Messages from the peer.
    pub input: BoxedReader,
    /// Messages to the peer.
    pub output: BoxedWriter,
}

/// Runs the proxy between an editor and an agent until one of them closes its side, and then closes the agent's input.
/// The caller waits for the agent's process.
///
/// Must run inside a tokio runtime; calls occupy its blocking threads.
pub async fn proxy_editor_and_agent(
    editor: AcpPeerStreams,
    agent: AcpPeerStreams,
    callers: AcpConnectionCallers,
    options: AcpProxyConfig,
    root_opener: Arc<dyn SessionRootOpener>,
) -> io::Result<AcpConnectionClosedBy> {
    let (to_editor, to_agent) = (AcpPeerWriter::new(editor.output), AcpPeerWriter::new(agent.output));
    let proxy = AcpProxy::new(callers, options, root_opener, to_editor, to_agent);
    proxy.run_between(editor.input, agent.input).await
}

/// Runs the proxy as one link of a proxy chain, until the conductor of the chain closes its side.
///
/// Must run inside a tokio runtime; calls occupy its blocking threads.
pub async fn proxy_in_chain(
    conductor: AcpPeerStreams,
    callers: AcpConnectionCallers,
    options: AcpProxyConfig,
    root_opener: Arc<dyn SessionRootOpener>,
) -> io::Result<AcpConnectionClosedBy> {
    let envelope = Arc::new(AcpConductorEnvelopeCodec::default());
    let editor = AcpPeerWriter::new(conductor.output);
    let agent = editor.for_successor(envelope.clone());
    let proxy = AcpProxy::new(callers, options, root_opener, editor, agent);
    proxy.run_in_chain(conductor.input, envelope).await
}
