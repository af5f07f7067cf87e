//! Plays stories of editors, people and agents over JSON-RPC, each with its own connection to one workspace.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value, json};
use stead_engine::{Caller, Engine, Principal};
use stead_protocols::{
    dialect::{DialectSet, DialectWorkspaceRootPath},
    rpc::{RpcConnection, RpcServer},
};
use testkit::{
    MemoryWorkspace,
    client_story::{self, ClientStoryWorkspaceAdapter},
};
use tokio::runtime::Runtime;

struct RpcStoryConnections {
    runtime: Runtime,
    workspace: Arc<MemoryWorkspace>,
    engine: Engine,
    connections: BTreeMap<String, (Arc<RpcServer>, Arc<RpcConnection>)>,
}

impl RpcStoryConnections {
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

impl ClientStoryWorkspaceAdapter for RpcStoryConnections {
    fn call(&mut self, caller: &str, operation: &str, arguments: &Map<String, Value>) -> Result<Value, Value> {
        let (rpc, conversation) = self.connections.entry(caller.to_owned()).or_insert_with(|| {
            let place = DialectWorkspaceRootPath { root: MemoryWorkspace::ROOT.to_owned() };
            let dialects = DialectSet::from_names(&["stead".to_owned()], &[], &place).unwrap();
            let caller = Caller::new(Principal::parse(caller).unwrap(), format!("session of {caller}"), "rpc");
            (RpcServer::new(self.engine.clone(), caller, dialects), Arc::default())
        });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": operation, "params": arguments });
        let admitted = conversation.accept_message();
        let answer = self.runtime.block_on(rpc.answer_message(message.to_string().as_bytes(), &admitted)).unwrap();
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(answer["error"]["data"]["error"].clone()),
        }
    }

    fn change_externally(&mut self, path: &str, content: Option<&str>) {
        match content {
            Some(content) => self.workspace.put_file(path, content),
            None => self.workspace.remove_silently(path),
        }
    }

    fn read_disk(&self, path: &str) -> Option<String> {
        self.workspace.bytes(path).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    fn kill_editors(&mut self) {
        self.workspace.kill_editors();
    }
}

#[test]
fn unsaved_text_is_shared_over_json_rpc() {
    for story in client_story::buffer_stories() {
        client_story::play_story(&story, &mut RpcStoryConnections::new());
    }
}

#[test]
fn changes_are_merged_and_reviewed_over_json_rpc() {
    for story in client_story::review_stories() {
        client_story::play_story(&story, &mut RpcStoryConnections::new());
    }
}
