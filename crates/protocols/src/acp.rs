//! A proxy for the Agent Client Protocol (ACP) between an editor and an agent. Each `fs/*` request of the agent becomes
//! an engine call that is confined to the session roots. The proxy forwards messages that it does not handle as raw
//! JSON, so that unknown members are kept. The proxy opens no file itself: its caller provides a [`SessionRootOpener`].

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

pub(crate) use errors::AcpError;
pub use proxy::{BoxedAcpMessageReader, BoxedAcpMessageWriter};
pub use session::{AcpSingleFileRoot, OpenedAcpSessionRoot};
pub use setup::{AcpFileCapabilities, McpServerCommand, McpServerTicketEnvVar};
pub use text_format::{WriteEncodingPolicy, WriteFormatPolicy, WriteLineEndingPolicy};

use conductor::{AcpConductorEnvelopeCodec, AcpPeerWriter};
use router::AcpProxyMessageRouter;

/// A session root opener opens the roots of ACP sessions for the proxy.
pub trait SessionRootOpener: Send + Sync {
    /// Opens a directory or a single file by its absolute path. The returned root gives no access to files outside the
    /// opened directory or file.
    fn open_root(&self, root: &str) -> Result<OpenedAcpSessionRoot, Error>;

    /// The command that starts an MCP server for a working directory. The agent gets no MCP server from the proxy if
    /// the command is `None`.
    fn mcp_server_command(&self, directory: &str) -> Option<McpServerCommand>;

    /// Assigns all calls of one MCP server, identified by its ticket, to the ACP session `session`.
    fn bind_server_to_session(
        &self,
        directory: &str,
        ticket: &McpServerTicketEnvVar,
        session: &str,
    ) -> Result<(), Error>;

    /// Adds a policy rule so that a change like the one in the approval request needs no further approval.
    fn add_allow_rule(&self, engine: &Engine, approval: &str) -> Result<(), Error>;
}

/// The configuration of the ACP proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcpProxyConfig {
    /// The file methods that the ACP proxy advertises to agents.
    pub file_capabilities: AcpFileCapabilities,
    /// The text format of the files that agents write. A write request of an agent can override the configured text
    /// format.
    pub text_format: WriteFormatPolicy,
}

/// The peer that ended the ACP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcpConnectionClosedBy {
    Editor,
    Agent,
}

/// The callers of the engine in the sessions of one ACP connection.
#[derive(Debug, Clone)]
pub struct AcpConnectionCallers {
    /// The agent as a caller of the engine. Each ACP session calls the engine as the agent, with its own session id.
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
    /// The stream of messages that the editor or agent sends.
    pub input: BoxedAcpMessageReader,
    /// The stream of messages that the editor or agent receives.
    pub output: BoxedAcpMessageWriter,
}

/// Runs the proxy between an editor and an agent until one of them closes its side. When the connection ends, the proxy
/// closes the agent's input and does not wait until the agent's process exits.
///
/// The proxy must run inside a tokio runtime. File requests of the agent can occupy the runtime's blocking threads.
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
/// The proxy must run inside a tokio runtime. File requests of the agent can occupy the runtime's blocking threads.
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
