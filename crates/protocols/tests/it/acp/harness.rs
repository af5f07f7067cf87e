//! A test harness that runs the ACP proxy between an editor and an agent.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use stead_engine::{ApprovalMode, Caller, Engine, Error, ErrorKind, Principal};
use stead_protocols::acp::{
    self, AcpConnectionCallers, AcpConnectionClosedBy, AcpFileCapabilities, AcpPeerStreams, AcpProxyConfig,
    McpServerCommand, McpServerTicketEnvVar, OpenedAcpSessionRoot, SessionRootOpener, WriteFormatPolicy,
};
use testkit::{MemoryWorkspace, engine_fixture::EngineFixture};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
    task::JoinHandle,
};

const TEST_TIMEOUT: Duration = Duration::from_secs(20);
const PIPE_BYTES: usize = 1 << 16;

pub(crate) struct AcpProxyTestPeer {
    output: Option<DuplexStream>,
    input: BufReader<DuplexStream>,
}

impl AcpProxyTestPeer {
    fn new() -> (Self, AcpPeerStreams) {
        let (near_output, far_input) = tokio::io::duplex(PIPE_BYTES);
        let (near_input, far_output) = tokio::io::duplex(PIPE_BYTES);
        let peer = AcpPeerStreams { input: Box::new(far_input), output: Box::new(far_output) };
        (Self { output: Some(near_output), input: BufReader::new(near_input) }, peer)
    }

    pub(crate) async fn send_raw(&mut self, line: &str) {
        let output = self.output.as_mut().unwrap();
        output.write_all(line.as_bytes()).await.unwrap();
        output.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_raw(&message.to_string()).await;
    }

    pub(crate) async fn receive_raw(&mut self) -> String {
        let mut line = String::new();
        tokio::time::timeout(TEST_TIMEOUT, self.input.read_line(&mut line)).await.expect("a line").unwrap();
        line.trim_end_matches('\n').to_owned()
    }

    pub(crate) async fn receive(&mut self) -> Value {
        let line = self.receive_raw().await;
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    pub(crate) fn close_output(&mut self) {
        self.output = None;
    }
}

#[derive(Default)]
pub(crate) struct MemoryRootOpener {
    pub(crate) roots: Mutex<HashMap<String, Arc<MemoryWorkspace>>>,
    pub(crate) allow_rules: Mutex<Vec<String>>,
    approval_mode: ApprovalMode,
}

impl SessionRootOpener for MemoryRootOpener {
    fn open_root(&self, root: &str) -> Result<OpenedAcpSessionRoot, Error> {
        if root.contains("missing") {
            return Err(Error::new(ErrorKind::NotFound, "the root cannot be opened"));
        }
        let mut roots = self.roots.lock().unwrap();
        let workspace = roots.entry(root.to_owned()).or_default().clone();
        let engine = Engine::new(workspace).with_approval_mode(self.approval_mode);
        Ok(OpenedAcpSessionRoot { engine, root_paths: vec![root.to_owned()], single_file: None })
    }

    fn mcp_server_command(&self, directory: &str) -> Option<McpServerCommand> {
        let arguments = vec!["mcp".to_owned(), "--workspace".to_owned(), directory.to_owned()];
        Some(McpServerCommand { command: "/bin/stead".to_owned(), arguments, ticket: None })
    }

    fn bind_server_to_session(
        &self,
        _directory: &str,
        _ticket: &McpServerTicketEnvVar,
        _session: &str,
    ) -> Result<(), Error> {
        Ok(())
    }

    fn add_allow_rule(&self, _engine: &Engine, approval: &str) -> Result<(), Error> {
        self.allow_rules.lock().unwrap().push(approval.to_owned());
        Ok(())
    }
}

pub(crate) struct AcpProxyTestHarness {
    pub(crate) editor: AcpProxyTestPeer,
    pub(crate) agent: AcpProxyTestPeer,
    pub(crate) root_opener: Arc<MemoryRootOpener>,
    pub(crate) proxy: JoinHandle<std::io::Result<AcpConnectionClosedBy>>,
    next_id: i64,
}

pub(crate) const BOTH_FILE_METHODS: AcpFileCapabilities =
    AcpFileCapabilities { read_text_file: true, write_text_file: true };

fn test_callers() -> AcpConnectionCallers {
    AcpConnectionCallers {
        agent: Caller::new(Principal::Agent("tester".to_owned()), "unnamed", "acp"),
        person: Caller::new(Principal::User("ann".to_owned()), "unnamed", "acp"),
    }
}

impl AcpProxyTestHarness {
    pub(crate) fn uninitialized() -> Self {
        Self::with_capabilities(BOTH_FILE_METHODS, ApprovalMode::TrustClient)
    }

    pub(crate) fn with_capabilities(offered: AcpFileCapabilities, approval_mode: ApprovalMode) -> Self {
        let root_opener = Arc::new(MemoryRootOpener { approval_mode, ..MemoryRootOpener::default() });
        let ((editor, near), (agent, far)) = (AcpProxyTestPeer::new(), AcpProxyTestPeer::new());
        let options = AcpProxyConfig { file_capabilities: offered, text_format: WriteFormatPolicy::default() };
        let proxy = tokio::spawn(acp::proxy_editor_and_agent(near, far, test_callers(), options, root_opener.clone()));
        Self { editor, agent, root_opener, proxy, next_id: 100 }
    }

    pub(crate) fn in_chain() -> Self {
        let root_opener =
            Arc::new(MemoryRootOpener { approval_mode: ApprovalMode::TrustClient, ..MemoryRootOpener::default() });
        let ((conductor, near), (unused, _)) = (AcpProxyTestPeer::new(), AcpProxyTestPeer::new());
        let options =
            AcpProxyConfig { file_capabilities: BOTH_FILE_METHODS, text_format: WriteFormatPolicy::default() };
        let proxy = tokio::spawn(acp::proxy_in_chain(near, test_callers(), options, root_opener.clone()));
        Self { editor: conductor, agent: unused, root_opener, proxy, next_id: 100 }
    }

    /// Starts a proxy, sends `initialize`, and creates the session `s1` with the root `/ws`.
    pub(crate) async fn initialized() -> Self {
        Self::initialized_with(BOTH_FILE_METHODS, ApprovalMode::TrustClient, &json!({})).await
    }

    pub(crate) async fn initialized_with(
        offered: AcpFileCapabilities,
        approval_mode: ApprovalMode,
        capabilities: &Value,
    ) -> Self {
        let mut harness = Self::with_capabilities(offered, approval_mode);
        harness.initialize(1, capabilities).await;
        harness.create_session("s1", &json!({ "cwd": "/ws", "mcpServers": [] })).await;
        harness
    }

    pub(crate) async fn initialize(&mut self, version: u64, capabilities: &Value) -> Value {
        let params = json!({ "protocolVersion": version, "clientCapabilities": capabilities });
        self.editor.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
        let received = self.agent.receive().await;
        self.agent.send(&json!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": version } })).await;
        assert_eq!(self.editor.receive().await["result"]["protocolVersion"], version);
        received
    }

    pub(crate) async fn create_session(&mut self, id: &str, params: &Value) -> Value {
        self.editor.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params })).await;
        let received = self.agent.receive().await;
        self.agent.send(&json!({ "jsonrpc": "2.0", "id": 1, "result": { "sessionId": id } })).await;
        assert_eq!(self.editor.receive().await["result"]["sessionId"], id);
        received
    }

    pub(crate) async fn call_from_agent(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_from_agent(method, params).await;
        let response = self.agent.receive().await;
        assert_eq!(response["id"], id, "{response}");
        response
    }

    pub(crate) async fn send_from_agent(&mut self, method: &str, mut params: Value) -> i64 {
        self.next_id += 1;
        if params.get("sessionId").is_none() {
            params["sessionId"] = "s1".into();
        }
        let id = self.next_id;
        self.agent.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    pub(crate) async fn read_file(&mut self, path: &str) -> Value {
        self.call_from_agent("fs/read_text_file", json!({ "path": path })).await
    }

    pub(crate) async fn write_file(&mut self, path: &str, content: &str) -> Value {
        self.call_from_agent("fs/write_text_file", json!({ "path": path, "content": content })).await
    }

    pub(crate) fn root_workspace(&self, path: &str) -> Arc<MemoryWorkspace> {
        self.root_opener.roots.lock().unwrap()[path].clone()
    }

    /// Returns a caller that accesses the workspace of a root directly, without an ACP connection.
    pub(crate) fn other_caller(&self, root: &str, caller: &Caller) -> EngineFixture {
        EngineFixture::on_workspace(self.root_workspace(root)).with_caller(caller)
    }
}
