//! A line-based test client that can also send malformed messages.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use stead_engine::{Caller, Engine, Principal};
use stead_protocols::dialect::{DialectSet, DialectWorkspaceRootPath};
use testkit::{
    MemoryWorkspace,
    engine_fixture::{EngineFixture, agent},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf},
    task::JoinHandle,
};

const TEST_TIMEOUT: Duration = Duration::from_secs(20);
const PIPE_BYTES: usize = 1 << 16;

pub(crate) struct JsonLinesTestClient {
    output: Option<WriteHalf<DuplexStream>>,
    input: BufReader<ReadHalf<DuplexStream>>,
    server: JoinHandle<Result<(), String>>,
    pub(crate) workspace: Arc<MemoryWorkspace>,
    next_id: i64,
}

pub(crate) fn load_dialects(dialects: &[&str], options: &[&str]) -> DialectSet {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let place = DialectWorkspaceRootPath { root: MemoryWorkspace::ROOT.to_owned() };
    DialectSet::from_names(&owned(dialects), &owned(options), &place).unwrap()
}

impl JsonLinesTestClient {
    pub(crate) fn uninitialized() -> Self {
        Self::uninitialized_with_dialect("stead", &[])
    }

    pub(crate) fn uninitialized_with_dialect(dialect: &str, options: &[&str]) -> Self {
        let dialects = load_dialects(&[dialect], options);
        Self::with_server("mcp", |engine, caller, stream| {
            let (input, output) = tokio::io::split(stream);
            let served = stead_protocols::mcp::serve(engine, caller, None, dialects, input, output);
            tokio::spawn(async { served.await.map_err(|error| error.to_string()) })
        })
    }

    pub(crate) fn rpc_client(dialects: &[&str]) -> Self {
        let dialects = load_dialects(dialects, &[]);
        Self::with_server("rpc", |engine, caller, stream| {
            let (input, output) = tokio::io::split(stream);
            let rpc = stead_protocols::rpc::RpcServer::new(engine, caller, dialects);
            let served = stead_protocols::rpc::serve(rpc, input, output);
            tokio::spawn(async { served.await.map_err(|error| error.to_string()) })
        })
    }

    pub(crate) fn with_approval_mode(mode: stead_engine::ApprovalMode) -> Self {
        Self::with_approval_mode_over(Arc::new(MemoryWorkspace::new()), mode)
    }

    pub(crate) fn second_connection(&self, mode: stead_engine::ApprovalMode) -> Self {
        Self::with_approval_mode_over(self.workspace.clone(), mode)
    }

    fn with_approval_mode_over(workspace: Arc<MemoryWorkspace>, mode: stead_engine::ApprovalMode) -> Self {
        let dialects = load_dialects(&["stead"], &[]);
        Self::with_server_over(workspace, "mcp", |engine, caller, stream| {
            let (input, output) = tokio::io::split(stream);
            let served =
                stead_protocols::mcp::serve(engine.with_approval_mode(mode), caller, None, dialects, input, output);
            tokio::spawn(async { served.await.map_err(|error| error.to_string()) })
        })
    }

    pub(crate) fn over_engine(engine: Engine, caller: Caller, dialects: DialectSet) -> Self {
        Self::with_server("mcp", |_, _, stream| {
            let (input, output) = tokio::io::split(stream);
            let served = stead_protocols::mcp::serve(engine, caller, None, dialects, input, output);
            tokio::spawn(async { served.await.map_err(|error| error.to_string()) })
        })
    }

    fn with_server(
        face: &'static str,
        serve: impl FnOnce(Engine, Caller, DuplexStream) -> JoinHandle<Result<(), String>>,
    ) -> Self {
        Self::with_server_over(Arc::new(MemoryWorkspace::new()), face, serve)
    }

    fn with_server_over(
        workspace: Arc<MemoryWorkspace>,
        face: &'static str,
        serve: impl FnOnce(Engine, Caller, DuplexStream) -> JoinHandle<Result<(), String>>,
    ) -> Self {
        let engine = Engine::new(workspace.clone());
        let caller = Caller::new(Principal::Agent("tester".to_owned()), "unnamed", face);
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        let server = serve(engine, caller, far);
        let (input, output) = tokio::io::split(near);
        Self { output: Some(output), input: BufReader::new(input), server, workspace, next_id: 1 }
    }

    pub(crate) async fn initialized(version: &str) -> Self {
        let mut client = Self::uninitialized();
        let answer = client.initialize(version).await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        client
    }

    pub(crate) async fn initialized_with_dialect(dialect: &str) -> Self {
        let mut client = Self::uninitialized_with_dialect(dialect, &[]);
        client.initialize("2025-11-25").await;
        client
    }

    pub(crate) async fn initialize(&mut self, version: &str) -> Value {
        self.initialize_with(version, json!({})).await
    }

    pub(crate) async fn initialize_with(&mut self, version: &str, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": version, "capabilities": capabilities, "clientInfo": { "name": "line client", "version": "1" }
        });
        let answer = self.request("initialize", params).await;
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        answer
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) {
        let output = self.output.as_mut().expect("still open");
        tokio::time::timeout(TEST_TIMEOUT, output.write_all(bytes))
            .await
            .expect("the server reads")
            .expect("it is there");
    }

    pub(crate) async fn receive(&mut self) -> Value {
        let mut line = String::new();
        let read =
            tokio::time::timeout(TEST_TIMEOUT, self.input.read_line(&mut line)).await.expect("the server answers");
        assert!(read.expect("it is there") > 0, "the server closed");
        serde_json::from_str(&line).expect("the server speaks JSON")
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        let mut answer = self.receive().await;
        while answer.get("id").is_none() {
            answer = self.receive().await;
        }
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub(crate) async fn call_tool(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Returns a caller that accesses the client's workspace directly, without a connection.
    pub(crate) fn other_caller(&self, caller: &Caller) -> EngineFixture {
        EngineFixture::on_workspace(self.workspace.clone()).with_caller(caller)
    }

    pub(crate) fn write_as_other(&self, path: &str, content: &str) {
        self.other_caller(&agent("other")).write(path, content);
    }

    pub(crate) async fn send_all_then_receive_all(&mut self, messages: &[Value]) -> Vec<Value> {
        let mut output = self.output.take().expect("still open");
        let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
        let saying = tokio::spawn(async move {
            output.write_all(lines.as_bytes()).await.expect("the server is there");
            output
        });
        for _ in 0..100_000 {
            tokio::task::yield_now().await;
        }
        let mut answers = Vec::new();
        for _ in messages {
            answers.push(self.receive().await);
        }
        self.output = Some(saying.await.expect("no panic"));
        answers
    }

    pub(crate) async fn send_all_and_disconnect(mut self, messages: &[Value]) {
        let mut output = self.output.take().expect("still open");
        let Self { input, server, .. } = self;
        let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
        let saying = tokio::spawn(async move { drop(output.write_all(lines.as_bytes()).await) });
        for _ in 0..100_000 {
            tokio::task::yield_now().await;
        }
        saying.abort();
        drop((input, saying.await));
        let ended = tokio::time::timeout(TEST_TIMEOUT, server).await.expect("the server ends");
        ended.expect("no panic").expect("a clean end");
    }

    pub(crate) async fn close(mut self) -> Vec<Value> {
        let mut output = self.output.take().expect("still open");
        output.shutdown().await.expect("the server is there");
        let mut rest = Vec::new();
        let Self { mut input, output: _, server, .. } = self;
        let mut line = String::new();
        while tokio::time::timeout(TEST_TIMEOUT, input.read_line(&mut line))
            .await
            .expect("the server ends")
            .is_ok_and(|n| n > 0)
        {
            rest.push(serde_json::from_str(&line).expect("the server speaks JSON"));
            line.clear();
        }
        server.await.expect("no panic").expect("a clean end");
        rest
    }
}
