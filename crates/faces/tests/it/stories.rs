//! Stories of editors, people and agents over JSON-RPC: everybody has a connection of their own to one workspace.

use std::{collections::BTreeMap, sync::Arc};

use engine::{Caller, Engine, Principal};
use faces::{
    dialect::{Dialects, Place},
    rpc::{Conversation, Rpc},
};
use serde_json::{Map, Value, json};
use testkit::{
    MemoryWorkspace,
    story::{self, Stage},
};
use tokio::runtime::Runtime;

struct Wired {
    runtime: Runtime,
    workspace: Arc<MemoryWorkspace>,
    engine: Engine,
    connections: BTreeMap<String, (Arc<Rpc>, Arc<Conversation>)>,
}

impl Wired {
    fn new() -> Self {
        let workspace = Arc::new(MemoryWorkspace::new());
        let engine = Engine::new(workspace.clone());
        Self {
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            workspace,
            engine,
            connections: BTreeMap::new(),
        }
    }
}

impl Stage for Wired {
    fn call(
        &mut self,
        caller: &str,
        operation: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Value, Value> {
        let (rpc, conversation) = self.connections.entry(caller.to_owned()).or_insert_with(|| {
            let place = Place { workspace: MemoryWorkspace::ROOT.to_owned() };
            let dialects = Dialects::choose(&["stead".to_owned()], &[], &place).unwrap();
            let caller =
                Caller::new(Principal::parse(caller).unwrap(), format!("session of {caller}"), "rpc");
            (Rpc::new(self.engine.clone(), caller, dialects), Arc::default())
        });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": operation, "params": arguments });
        let admitted = conversation.admit();
        let answer = self.runtime.block_on(rpc.answer(message.to_string().as_bytes(), &admitted)).unwrap();
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(answer["error"]["data"]["error"].clone()),
        }
    }

    fn outside(&mut self, path: &str, content: Option<&str>) {
        match content {
            Some(content) => self.workspace.put_file(path, content),
            None => self.workspace.take(path),
        }
    }

    fn disk(&self, path: &str) -> Option<String> {
        self.workspace.bytes(path).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    fn editors_die(&mut self) {
        self.workspace.lose_editors();
    }
}

#[test]
fn unsaved_text_is_seen_by_all_over_json_rpc() {
    for story in story::of_buffers() {
        story::play(&story, &mut Wired::new());
    }
}

#[test]
fn work_is_merged_reviewed_kept_and_rejected() {
    for story in story::of_reviews() {
        story::play(&story, &mut Wired::new());
    }
}
