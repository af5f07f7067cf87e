//! A proxy for the Agent Client Protocol (ACP) between an editor and an agent. The proxy serves the agent's file
//! requests itself, and forwards other messages as raw JSON, so that unknown members are kept. The proxy changes only
//! messages that initialize the connection or set up sessions, and keeps the other members of these messages unchanged.
//!
//! The agent's `fs/*` requests are confined to the roots of their session. The proxy turns each `fs/*` request into an
//! engine call; the editor sees the request only after the engine has checked it. The ids of the proxy's own requests
//! never collide with the ids of a peer's requests. The proxy opens no file itself: its caller provides a
//! [`SessionRootOpener`].

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

pub(crate) use errors::AcpErrorCode;

pub use crate::dialect::acp::AcpDialect;
pub(crate) use errors::AcpError;
pub(crate) use files::select_lines;
pub use proxy::{BoxedAcpMessageReader, BoxedAcpMessageWriter};
pub use session::{AcpSingleFileRoot, OpenedAcpSessionRoot};
pub use setup::{AcpCapabilityOfferStatus, AcpFileCapabilities, McpServerCommand, McpServerTicketEnvVar};
pub use text_format::{WriteEncodingPolicy, WriteFormatPolicy, WriteLineEndingPolicy};

use conductor::{AcpConductorEnvelopeCodec, AcpPeerWriter};
use router::AcpProxyMessageRouter;

/// Opens the roots of sessions. The crate that accesses files implements this trait.
pub trait SessionRootOpener: Send + Sync {
    /// Opens a directory or a single file by its absolute path. A caller of the returned root cannot access files
    /// outside the opened directory or file.
    fn open_root(&self, root: &str) -> Result<OpenedAcpSessionRoot, Error>;

    /// The command that starts an MCP server for this working directory; `None` means that agents get no MCP server.
    fn mcp_server_command(&self, directory: &str) -> Option<McpServerCommand>;

    /// Assigns the calls of the MCP server with the ticket `ticket` to the session named `session`.
    fn bind_server_to_session(
        &self,
        directory: &str,
        ticket: &McpServerTicketEnvVar,
        session: &str,
    ) -> Result<(), Error>;

    /// Adds a policy rule that always allows the change for which the approval was requested.
    fn add_allow_rule(&self, engine: &Engine, approval: &str) -> Result<(), Error>;
}

/// Options of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcpProxyConfig {
    /// The file methods advertised to agents.
    pub file_capabilities: AcpFileCapabilities,
    /// The format of the files that agents write; a single call can override the format.
    pub text_format: WriteFormatPolicy,
}

/// The peer that ended the ACP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcpConnectionClosedBy {
    /// The editor closed its side of the ACP connection.
    Editor,
    /// The agent closed its side of the ACP connection.
    Agent,
}

/// The callers of the engine in the sessions of one connection.
#[derive(Debug, Clone)]
pub struct AcpConnectionCallers {
    /// The agent as a caller of the engine. Each ACP session uses a copy with its own session id.
    pub agent: Caller,
    /// The person at the editor as a caller of the engine, for review requests.
    pub person: Caller,
}

struct AcpProxy {
    router: AcpProxyMessageRouter,
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
        let router = AcpProxyMessageRouter::new(callers, options);
        let call_slots = Arc::new(Semaphore::new(REQUESTS_PENDING_MAX));
        Arc::new(Self { router, options, root_opener, editor, agent, call_slots })
    }
}

/// The input and output streams of an editor or an agent.
pub struct AcpPeerStreams {
    /// The stream of messages from the editor or agent.
    pub input: BoxedAcpMessageReader,
    /// The stream of messages to the editor or agent.
    pub output: BoxedAcpMessageWriter,
}

/// Runs the proxy between an editor and an agent until one of them closes its side, and then closes the agent's input.
/// This function does not wait for the agent's process to exit; its caller does.
///
/// Must run inside a tokio runtime. File requests of the agent can occupy the runtime's blocking threads.
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
/// Must run inside a tokio runtime. File requests of the agent can occupy the runtime's blocking threads.
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
