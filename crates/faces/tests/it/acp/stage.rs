//! An editor and an agent with the proxy between them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use engine::{Asking, Caller, Engine, Failure, Kind, Principal};
use faces::acp::{
    self, Ended, FileOffer, Ground, Keeping, Offer, Opened, Options, Peer, Server, Ticket, Who,
};
use serde_json::{Value, json};
use testkit::MemoryWorkspace;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
    task::JoinHandle,
};

/// Nothing here takes longer unless something hangs.
const PATIENCE: Duration = Duration::from_secs(20);
const PIPE_BYTES: usize = 1 << 16;

/// One end of a conversation, line by line. Each direction is a pipe of its own, which ends when it is let go.
pub(crate) struct End {
    output: Option<DuplexStream>,
    input: BufReader<DuplexStream>,
}

impl End {
    /// An end, and the other one as the proxy has it.
    fn new() -> (Self, Peer) {
        let (near_output, far_input) = tokio::io::duplex(PIPE_BYTES);
        let (near_input, far_output) = tokio::io::duplex(PIPE_BYTES);
        let peer = Peer { input: Box::new(far_input), output: Box::new(far_output) };
        (Self { output: Some(near_output), input: BufReader::new(near_input) }, peer)
    }

    pub(crate) async fn say_raw(&mut self, line: &str) {
        let output = self.output.as_mut().unwrap();
        output.write_all(line.as_bytes()).await.unwrap();
        output.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        self.say_raw(&message.to_string()).await;
    }

    /// The next line; empty at the end.
    pub(crate) async fn hear_raw(&mut self) -> String {
        let mut line = String::new();
        tokio::time::timeout(PATIENCE, self.input.read_line(&mut line))
            .await
            .expect("it says something")
            .unwrap();
        line.trim_end_matches('\n').to_owned()
    }

    pub(crate) async fn hear(&mut self) -> Value {
        let line = self.hear_raw().await;
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Closes what it says; it still hears.
    pub(crate) fn close(&mut self) {
        self.output = None;
    }
}

/// Workspaces in memory, by the paths of their roots.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) roots: Mutex<HashMap<String, Arc<MemoryWorkspace>>>,
    pub(crate) always: Mutex<Vec<String>>,
    asking: Asking,
}

impl Ground for Memory {
    fn open(&self, root: &str) -> Result<Opened, Failure> {
        if root.contains("missing") {
            return Err(Failure::new(Kind::NotFound, "it cannot be opened"));
        }
        let mut roots = self.roots.lock().unwrap();
        let workspace = roots.entry(root.to_owned()).or_default().clone();
        let engine = Engine::new(workspace).asking(self.asking);
        Ok(Opened { engine, spellings: vec![root.to_owned()], only: None })
    }

    fn server(&self, directory: &str) -> Option<Server> {
        let arguments = vec!["mcp".to_owned(), "--workspace".to_owned(), directory.to_owned()];
        Some(Server { command: "/bin/stead".to_owned(), arguments, ticket: None })
    }

    fn belongs(&self, _directory: &str, _ticket: &Ticket, _session: &str) -> Result<(), Failure> {
        Ok(())
    }

    fn always(&self, _engine: &Engine, approval: &str) -> Result<(), Failure> {
        self.always.lock().unwrap().push(approval.to_owned());
        Ok(())
    }
}

pub(crate) struct Stage {
    pub(crate) editor: End,
    pub(crate) agent: End,
    pub(crate) ground: Arc<Memory>,
    pub(crate) proxy: JoinHandle<std::io::Result<Ended>>,
    next_id: i64,
}

pub(crate) const BOTH: FileOffer = FileOffer { reads: Offer::Yes, writes: Offer::Yes };

fn who() -> Who {
    Who {
        agent: Caller::new(Principal::Agent("tester".to_owned()), "unnamed", "acp"),
        person: Caller::new(Principal::User("ann".to_owned()), "unnamed", "acp"),
    }
}

impl Stage {
    /// Nobody has said anything.
    pub(crate) fn silent() -> Self {
        Self::with(BOTH, Asking::Client)
    }

    pub(crate) fn with(offer: FileOffer, asking: Asking) -> Self {
        let ground = Arc::new(Memory { asking, ..Memory::default() });
        let ((editor, near), (agent, far)) = (End::new(), End::new());
        let options = Options { offer, keeping: Keeping::default() };
        let proxy = tokio::spawn(acp::between(near, far, who(), options, ground.clone()));
        Self { editor, agent, ground, proxy, next_id: 100 }
    }

    /// A proxy in a chain: the editor's end is the conductor's, and the agent's is not used.
    pub(crate) fn chained() -> Self {
        let ground = Arc::new(Memory { asking: Asking::Client, ..Memory::default() });
        let ((conductor, near), (unused, _)) = (End::new(), End::new());
        let options = Options { offer: BOTH, keeping: Keeping::default() };
        let proxy = tokio::spawn(acp::in_chain(near, who(), options, ground.clone()));
        Self { editor: conductor, agent: unused, ground, proxy, next_id: 100 }
    }

    /// The protocol is opened and one session `s1` has the root `/ws`.
    pub(crate) async fn open() -> Self {
        Self::opened(BOTH, Asking::Client, &json!({})).await
    }

    pub(crate) async fn opened(offer: FileOffer, asking: Asking, capabilities: &Value) -> Self {
        let mut stage = Self::with(offer, asking);
        stage.initialize(1, capabilities).await;
        stage.session("s1", &json!({ "cwd": "/ws", "mcpServers": [] })).await;
        stage
    }

    /// The editor opens, the agent agrees; what the agent heard.
    pub(crate) async fn initialize(&mut self, version: u64, capabilities: &Value) -> Value {
        let params = json!({ "protocolVersion": version, "clientCapabilities": capabilities });
        self.editor
            .say(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }))
            .await;
        let heard = self.agent.hear().await;
        self.agent.say(&json!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": version } })).await;
        assert_eq!(self.editor.hear().await["result"]["protocolVersion"], version);
        heard
    }

    /// The editor begins a session, the agent names it; what the agent heard.
    pub(crate) async fn session(&mut self, id: &str, params: &Value) -> Value {
        self.editor
            .say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params }))
            .await;
        let heard = self.agent.hear().await;
        self.agent.say(&json!({ "jsonrpc": "2.0", "id": 1, "result": { "sessionId": id } })).await;
        assert_eq!(self.editor.hear().await["result"]["sessionId"], id);
        heard
    }

    /// The agent calls a method in the session `s1` and hears the answer.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        let answer = self.agent.hear().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// The agent calls a method in the session `s1`.
    pub(crate) async fn send(&mut self, method: &str, mut params: Value) -> i64 {
        self.next_id += 1;
        if params.get("sessionId").is_none() {
            params["sessionId"] = "s1".into();
        }
        let id = self.next_id;
        self.agent.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    pub(crate) async fn read(&mut self, path: &str) -> Value {
        self.call("fs/read_text_file", json!({ "path": path })).await
    }

    pub(crate) async fn write(&mut self, path: &str, content: &str) -> Value {
        self.call("fs/write_text_file", json!({ "path": path, "content": content })).await
    }

    pub(crate) fn root(&self, path: &str) -> Arc<MemoryWorkspace> {
        self.ground.roots.lock().unwrap()[path].clone()
    }
}
