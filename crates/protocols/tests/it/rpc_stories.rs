//! Plays stories of editors, people and agents over JSON-RPC, each with its own connection to one workspace.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value, json};
use stead_engine::{Caller, Principal};
use stead_protocols::rpc::{RpcConnection, RpcServer};
use testkit::{
    client_story::{self, ClientStoryWorkspaceAdapter},
    engine_fixture::EngineFixture,
};
use tokio::runtime::Runtime;

use crate::test_client::load_dialects;

struct RpcStoryConnections {
    runtime: Runtime,
    fixture: EngineFixture,
    connections: BTreeMap<String, (Arc<RpcServer>, Arc<RpcConnection>)>,
}

impl RpcStoryConnections {
    fn new() -> Self {
        Self {
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            fixture: EngineFixture::new(),
            connections: BTreeMap::new(),
        }
    }
}

impl ClientStoryWorkspaceAdapter for RpcStoryConnections {
    fn call(&mut self, caller: &str, operation: &str, arguments: &Map<String, Value>) -> Result<Value, Value> {
        let (rpc, conversation) = self.connections.entry(caller.to_owned()).or_insert_with(|| {
            let caller = Caller::new(Principal::parse(caller).unwrap(), format!("session of {caller}"), "rpc");
            (RpcServer::new(self.fixture.engine.clone(), caller, load_dialects(&["stead"], &[])), Arc::default())
        });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": operation, "params": arguments });
        let admitted = conversation.accept_message();
        let answer = self.runtime.block_on(rpc.answer_message(message.to_string().as_bytes(), &admitted)).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(answer["error"]["data"]["error"].clone()),
        }
    }

    fn change_externally(&mut self, path: &str, content: Option<&str>) {
        match content {
            Some(content) => self.fixture.workspace.put_file(path, content),
            None => self.fixture.workspace.remove_silently(path),
        }
    }

    fn read_disk(&self, path: &str) -> Option<String> {
        self.fixture.read_text(path)
    }

    fn kill_editors(&mut self) {
        self.fixture.workspace.kill_editors();
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
