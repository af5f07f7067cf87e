//! A client that speaks lines, so that it can also say what no client should.

use std::{sync::Arc, time::Duration};

use engine::{Caller, Engine, Principal};
use faces::dialect::{Dialects, Place};
use serde_json::{Value, json};
use testkit::MemoryWorkspace;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf},
    task::JoinHandle,
};

/// Nothing here takes longer unless something hangs.
const PATIENCE: Duration = Duration::from_secs(20);
const PIPE_BYTES: usize = 1 << 16;

pub(crate) struct Client {
    output: Option<WriteHalf<DuplexStream>>,
    input: BufReader<ReadHalf<DuplexStream>>,
    server: JoinHandle<Result<(), String>>,
    pub(crate) workspace: Arc<MemoryWorkspace>,
    next_id: i64,
}

fn chosen(dialects: &[&str], options: &[&str]) -> Dialects {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let place = Place { workspace: MemoryWorkspace::ROOT.to_owned() };
    Dialects::choose(&owned(dialects), &owned(options), &place).unwrap()
}

impl Client {
    /// A server over an empty workspace, and a client that has not said anything.
    pub(crate) fn silent() -> Self {
        Self::silent_in("stead", &[])
    }

    /// The same in another dialect.
    pub(crate) fn silent_in(dialect: &str, options: &[&str]) -> Self {
        let dialects = chosen(&[dialect], options);
        Self::over("mcp", |engine, caller, stream| {
            let (input, output) = tokio::io::split(stream);
            let served = faces::mcp::serve(engine, caller, None, dialects, input, output);
            tokio::spawn(async { served.await.map_err(|error| error.to_string()) })
        })
    }

    /// A JSON-RPC server of these dialects.
    pub(crate) fn rpc(dialects: &[&str]) -> Self {
        let dialects = chosen(dialects, &[]);
        Self::over("rpc", |engine, caller, stream| {
            let (input, output) = tokio::io::split(stream);
            let rpc = faces::rpc::Rpc::new(engine, caller, dialects);
            let served = faces::rpc::serve(rpc, input, output);
            tokio::spawn(async { served.await.map_err(|error| error.to_string()) })
        })
    }

    /// A server whose operator chose what is done where a person must be asked.
    pub(crate) fn asking(asking: engine::Asking) -> Self {
        Self::asking_over(Arc::new(MemoryWorkspace::new()), asking)
    }

    /// Another connection of the same agent, on a workspace that is served already.
    pub(crate) fn beside(&self, asking: engine::Asking) -> Self {
        Self::asking_over(self.workspace.clone(), asking)
    }

    fn asking_over(workspace: Arc<MemoryWorkspace>, asking: engine::Asking) -> Self {
        let dialects = chosen(&["stead"], &[]);
        Self::on(workspace, "mcp", |engine, caller, stream| {
            let (input, output) = tokio::io::split(stream);
            let served = faces::mcp::serve(engine.asking(asking), caller, None, dialects, input, output);
            tokio::spawn(async { served.await.map_err(|error| error.to_string()) })
        })
    }

    /// A server over a workspace that somebody has already.
    pub(crate) fn serving(engine: Engine, caller: Caller, dialects: Dialects) -> Self {
        Self::over("mcp", |_, _, stream| {
            let (input, output) = tokio::io::split(stream);
            let served = faces::mcp::serve(engine, caller, None, dialects, input, output);
            tokio::spawn(async { served.await.map_err(|error| error.to_string()) })
        })
    }

    fn over(
        face: &'static str,
        serve: impl FnOnce(Engine, Caller, DuplexStream) -> JoinHandle<Result<(), String>>,
    ) -> Self {
        Self::on(Arc::new(MemoryWorkspace::new()), face, serve)
    }

    fn on(
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

    /// A client that has opened with `initialize`.
    pub(crate) async fn open(version: &str) -> Self {
        let mut client = Self::silent();
        let answer = client.initialize(version).await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        client
    }

    /// The same in another dialect.
    pub(crate) async fn open_in(dialect: &str) -> Self {
        let mut client = Self::silent_in(dialect, &[]);
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
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        answer
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        self.say_raw(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn say_raw(&mut self, bytes: &[u8]) {
        let output = self.output.as_mut().expect("still open");
        tokio::time::timeout(PATIENCE, output.write_all(bytes))
            .await
            .expect("the server reads")
            .expect("it is there");
    }

    pub(crate) async fn hear(&mut self) -> Value {
        let mut line = String::new();
        let read = tokio::time::timeout(PATIENCE, self.input.read_line(&mut line))
            .await
            .expect("the server answers");
        assert!(read.expect("it is there") > 0, "the server closed");
        serde_json::from_str(&line).expect("the server speaks JSON")
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        // What is pushed meanwhile is for those tests that wait for it.
        let mut answer = self.hear().await;
        while answer.get("id").is_none() {
            answer = self.hear().await;
        }
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Somebody else writes a file, through another engine over the same workspace.
    pub(crate) fn others_write(&self, path: &str, content: &str) {
        let caller = Caller::new(Principal::Agent("other".to_owned()), "elsewhere", "library");
        let arguments = json!({ "path": path, "content": content });
        let mut call = engine::Call::new(&caller, "write", arguments.as_object().cloned().unwrap());
        call.terms.unseen = engine::Unseen::Yields;
        Engine::new(self.workspace.clone()).call(&call).unwrap();
    }

    /// Closes the client's side and waits for the server to end well.
    pub(crate) async fn close(mut self) -> Vec<Value> {
        let mut output = self.output.take().expect("still open");
        output.shutdown().await.expect("the server is there");
        let mut rest = Vec::new();
        let Self { mut input, output: _, server, .. } = self;
        let mut line = String::new();
        while tokio::time::timeout(PATIENCE, input.read_line(&mut line))
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
