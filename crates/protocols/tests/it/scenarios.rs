//! Runs every krux scenario through the engine, over MCP and over JSON-RPC, and compares the responses.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use stead_engine::{Caller, Error, ErrorKind, Principal, ops::WriteArgs};
use stead_protocols::dialect::{DialectSet, ReplyStatus};
use testkit::native::run_operation;
use testkit::{
    MemoryWorkspace,
    engine_fixture::{EngineFixture, agent, approver, user},
    krux_scenario::{
        self, InitialItem, KruxCapabilityScenarios, KruxScenario, KruxScenarioActualReply, KruxScenarioOtherCallerKind,
        KruxScenarioSubject, ScenarioApprovalAnswer, ScenarioRequirement,
    },
};
use tokio::runtime::Runtime;

use crate::test_client::{JsonLinesTestClient, load_dialects};

fn create_entry(workspace: &MemoryWorkspace, path: &str, what: InitialItem<'_>) {
    match what {
        InitialItem::File(bytes) => workspace.put_file(path, bytes),
        InitialItem::Directory => workspace.put_directory(path),
        InitialItem::Link(target) => workspace.put_link(path, target),
    }
}

fn answer_approval(workspace: &Arc<MemoryWorkspace>, id: &str, word: ScenarioApprovalAnswer) {
    let operation = match word {
        ScenarioApprovalAnswer::Yes => "approve",
        ScenarioApprovalAnswer::No => "deny",
    };
    EngineFixture::on_workspace(workspace.clone())
        .with_caller(&approver("ann"))
        .call_ok(operation, json!({ "id": id }));
}

fn call_as_other(
    workspace: &Arc<MemoryWorkspace>,
    somebody: KruxScenarioOtherCallerKind,
    operation: &str,
    arguments: &Map<String, Value>,
) {
    let caller = match somebody {
        KruxScenarioOtherCallerKind::Agent => agent("other"),
        KruxScenarioOtherCallerKind::Person => user("ann"),
    };
    let (fixture, arguments) = (EngineFixture::on_workspace(workspace.clone()), Value::Object(arguments.clone()));
    if operation == "write" {
        let arguments: WriteArgs = serde_json::from_value(arguments).unwrap();
        let write = WriteArgs { replace_without_base: true, ..arguments };
        run_operation(&fixture.engine, &caller, write).unwrap();
    } else {
        fixture.with_caller(&caller).call_ok(operation, arguments);
    }
}

fn error_of_kind(kind: &str) -> Error {
    let kind = ErrorKind::ALL.iter().find(|known| known.code() == kind).expect("the scenario names a kind of error");
    Error::new(*kind, "an injected error")
}

pub(crate) fn krux_dialects() -> DialectSet {
    load_dialects(&["krux"], &[])
}

struct EngineKruxScenarioSubject {
    dialects: DialectSet,
    fixture: EngineFixture,
}

impl EngineKruxScenarioSubject {
    fn new() -> Self {
        let mut fixture = EngineFixture::new();
        fixture.caller = Caller::new(Principal::Agent("tester".to_owned()), "bare", "library");
        Self { dialects: krux_dialects(), fixture }
    }
}

impl KruxScenarioSubject for EngineKruxScenarioSubject {
    fn workspace_path(&self) -> String {
        MemoryWorkspace::ROOT.to_owned()
    }

    fn supports(&self, _need: ScenarioRequirement) -> bool {
        true
    }

    fn create_item(&mut self, path: &str, what: InitialItem<'_>) {
        create_entry(&self.fixture.workspace, path, what);
    }

    fn advance_ms(&mut self, ms: i64) {
        self.fixture.workspace.advance_ms(ms);
    }

    fn set_policy(&mut self, policy: &str) {
        self.fixture.workspace.set_policy(policy);
    }

    fn fail_next(&mut self, kind: &str) {
        self.fixture.workspace.fail_next(error_of_kind(kind));
    }

    fn answer_approval(&mut self, id: &str, word: ScenarioApprovalAnswer) {
        answer_approval(&self.fixture.workspace, id, word);
    }

    fn call_as_other(
        &mut self,
        somebody: KruxScenarioOtherCallerKind,
        operation: &str,
        arguments: &Map<String, Value>,
    ) {
        call_as_other(&self.fixture.workspace, somebody, operation, arguments);
    }

    fn call(&mut self, capability: &str, inputs: &Map<String, Value>) -> KruxScenarioActualReply {
        let dialect = self.dialects.find_by_tool(capability).expect("the capability is declared");
        let call = dialect.translate_with_tier(capability, inputs);
        let finished =
            call.run(&self.fixture.engine, &self.fixture.caller, None, &stead_engine::CallControl::default());
        match &finished.session_switch {
            Some(stead_engine::ConversationSessionSwitch::Enter(session)) => {
                self.fixture.caller.session.clone_from(session)
            }
            Some(stead_engine::ConversationSessionSwitch::Leave) => "bare".clone_into(&mut self.fixture.caller.session),
            None => {}
        }
        let reply = finished.reply;
        assert_eq!(reply.text, reply.json);
        KruxScenarioActualReply {
            object: Value::Object(reply.json_fields()),
            is_error: reply.status == ReplyStatus::Error,
        }
    }
}

struct KruxScenarioSubjectOverProtocol {
    runtime: Runtime,
    client: JsonLinesTestClient,
    protocol: KruxScenarioTestProtocol,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum KruxScenarioTestProtocol {
    Mcp,
    Rpc,
    RpcInvoke,
}

impl KruxScenarioSubjectOverProtocol {
    fn new(protocol: KruxScenarioTestProtocol) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(async {
            match protocol {
                KruxScenarioTestProtocol::Mcp => JsonLinesTestClient::initialized_with_dialect("krux").await,
                KruxScenarioTestProtocol::Rpc | KruxScenarioTestProtocol::RpcInvoke => {
                    JsonLinesTestClient::rpc_client(&["krux"])
                }
            }
        });
        Self { runtime, client, protocol }
    }
}

impl KruxScenarioSubject for KruxScenarioSubjectOverProtocol {
    fn workspace_path(&self) -> String {
        MemoryWorkspace::ROOT.to_owned()
    }

    fn supports(&self, _need: ScenarioRequirement) -> bool {
        true
    }

    fn create_item(&mut self, path: &str, what: InitialItem<'_>) {
        create_entry(&self.client.workspace, path, what);
    }

    fn advance_ms(&mut self, ms: i64) {
        self.client.workspace.advance_ms(ms);
    }

    fn set_policy(&mut self, policy: &str) {
        self.client.workspace.set_policy(policy);
    }

    fn fail_next(&mut self, kind: &str) {
        self.client.workspace.fail_next(error_of_kind(kind));
    }

    fn answer_approval(&mut self, id: &str, word: ScenarioApprovalAnswer) {
        answer_approval(&self.client.workspace, id, word);
    }

    fn call_as_other(
        &mut self,
        somebody: KruxScenarioOtherCallerKind,
        operation: &str,
        arguments: &Map<String, Value>,
    ) {
        call_as_other(&self.client.workspace, somebody, operation, arguments);
    }

    fn call(&mut self, capability: &str, inputs: &Map<String, Value>) -> KruxScenarioActualReply {
        let inputs = Value::Object(inputs.clone());
        let Self { runtime, client, protocol } = self;
        match protocol {
            KruxScenarioTestProtocol::Mcp => {
                let name = capability.replace('.', "__");
                let answer = runtime.block_on(client.call_tool(&name, inputs));
                let result = &answer["result"];
                let object = result["structuredContent"].clone();
                let text = result["content"][0]["text"].as_str().unwrap();
                assert_eq!(serde_json::from_str::<Value>(text).unwrap(), object);
                KruxScenarioActualReply { object, is_error: result["isError"] == true }
            }
            KruxScenarioTestProtocol::Rpc => {
                let direct = runtime.block_on(client.request(capability, inputs));
                let failed = direct.get("error").is_some();
                let object = if failed { &direct["error"]["data"] } else { &direct["result"] };
                KruxScenarioActualReply { object: object.clone(), is_error: failed }
            }
            KruxScenarioTestProtocol::RpcInvoke => {
                let invoke = json!({ "capability": capability, "arguments": inputs });
                let answer = runtime.block_on(client.request("capabilities.invoke", invoke));
                // An error with its own JSON-RPC code is the error of the response, not of the result.
                if let Some(error) = answer.get("error") {
                    return KruxScenarioActualReply { object: error["data"].clone(), is_error: true };
                }
                let result = &answer["result"];
                let failed = result["success"] == false;
                let object = if failed { unwrap_error(&result["error"]) } else { result["data"].clone() };
                KruxScenarioActualReply { object, is_error: failed }
            }
        }
    }
}

/// Renames the member `type` in an error of `capabilities.invoke` to `error`, as in the other protocols.
fn unwrap_error(error: &Value) -> Value {
    let renamed = |(name, value): (&String, &Value)| {
        let name = if name == "type" { "error" } else { name };
        (name.to_owned(), value.clone())
    };
    Value::Object(error.as_object().unwrap().iter().map(renamed).collect())
}

fn play_scenario(
    suite: &KruxCapabilityScenarios,
    scenario: &KruxScenario,
    backend: &mut dyn KruxScenarioSubject,
) -> Vec<KruxScenarioActualReply> {
    assert!(!scenario.steps.is_empty(), "{}: {}", suite.capability, scenario.title);
    krux_scenario::play_scenario(scenario, backend)
}

fn fill_disk(scenario: &KruxScenario, workspace: &MemoryWorkspace) {
    if scenario.needs == Some(ScenarioRequirement::Full) {
        workspace.fill_up();
    }
}

#[test]
fn all_scenarios_match_across_engine_and_protocols() {
    for suite in krux_scenario::load_suites() {
        for scenario in &suite.scenarios {
            let mut engine = EngineKruxScenarioSubject::new();
            fill_disk(scenario, &engine.fixture.workspace);
            let engine_results = play_scenario(&suite, scenario, &mut engine);
            for protocol in
                [KruxScenarioTestProtocol::Mcp, KruxScenarioTestProtocol::Rpc, KruxScenarioTestProtocol::RpcInvoke]
            {
                let mut client = KruxScenarioSubjectOverProtocol::new(protocol);
                fill_disk(scenario, &client.client.workspace);
                let client_results = play_scenario(&suite, scenario, &mut client);
                let comparable = |outcomes: &[KruxScenarioActualReply]| -> Vec<Value> {
                    outcomes.iter().map(krux_scenario::without_protocol_fields).collect()
                };
                // The counters of a session include `capabilities.invoke` calls, which only JSON-RPC has.
                if suite.capability != "agent.session" && suite.capability != "session.create" {
                    assert_eq!(
                        comparable(&engine_results),
                        comparable(&client_results),
                        "{}: {}",
                        suite.capability,
                        scenario.title
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn tools_show_tier_and_accept_dotted_names() {
    let mut client = JsonLinesTestClient::initialized_with_dialect("krux").await;
    let listed = client.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let delete = tools.iter().find(|tool| tool["name"] == "filesystem__delete").unwrap();
    assert_eq!(delete["_meta"]["stead/tier"], "approval_required");
    assert!(delete["description"].as_str().unwrap().ends_with("Tier: approval_required."));
    assert!(tools.iter().all(|tool| !tool["name"].as_str().unwrap().contains('.')));
    client.workspace.put_file("a.txt", "a");
    for name in ["filesystem.read", "filesystem__read"] {
        let answer = client.call_tool(name, json!({ "path": "/ws/a.txt" })).await;
        assert_eq!(answer["result"]["structuredContent"]["content"], "a", "{answer}");
    }
    client.close().await;
}
