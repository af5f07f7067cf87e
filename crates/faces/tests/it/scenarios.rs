//! Every scenario of the capabilities, through the engine, over MCP and over JSON-RPC, with equal answers; and that none
//! of the declared errors, ways out and patterns is left untried.

use std::sync::Arc;

use engine::{Approver, Call, Caller, Engine, Failure, Kind, Principal};
use faces::dialect::{Dialects, Place, Verdict};
use serde_json::{Map, Value, json};
use testkit::{
    MemoryWorkspace,
    scenario::{self, Ground, Need, Outcome, Planted, Scenario, Somebody, Suite, Word},
};
use tokio::runtime::Runtime;

use crate::client::Client;

fn plant(workspace: &MemoryWorkspace, path: &str, what: Planted<'_>) {
    match what {
        Planted::File(bytes) => workspace.put_file(path, bytes),
        Planted::Directory => workspace.put_directory(path),
        Planted::Link(target) => workspace.put_link(path, target),
    }
}

/// A person's answer.
fn say(workspace: &Arc<MemoryWorkspace>, id: &str, word: Word) {
    let mut person = Caller::new(Principal::User("ann".to_owned()), "cli", "cli");
    person.grants.approver = Approver::Shown;
    let arguments = Map::from_iter([("id".to_owned(), id.into())]);
    let operation = match word {
        Word::Yes => "approve",
        Word::No => "deny",
    };
    Engine::new(workspace.clone()).call(&Call::new(&person, operation, arguments)).unwrap();
}

/// Somebody else's call.
fn others(
    workspace: &Arc<MemoryWorkspace>,
    somebody: Somebody,
    operation: &str,
    arguments: &Map<String, Value>,
) {
    let principal = match somebody {
        Somebody::Agent => Principal::Agent("other".to_owned()),
        Somebody::Person => Principal::User("ann".to_owned()),
    };
    let caller = Caller::new(principal, "elsewhere", "library");
    let mut call = Call::new(&caller, operation, arguments.clone());
    call.terms.unseen = engine::Unseen::Yields;
    Engine::new(workspace.clone()).call(&call).unwrap();
}

/// A failure of this kind.
fn failure(kind: &str) -> Failure {
    let kind = Kind::ALL.iter().find(|known| known.code() == kind).expect("a kind of failure");
    Failure::new(*kind, "the machine had this in store")
}

fn krux() -> Dialects {
    let place = Place { workspace: MemoryWorkspace::ROOT.to_owned() };
    Dialects::choose(&["krux".to_owned()], &[], &place).unwrap()
}

/// The engine itself, with the dialect's translation and no face.
struct Bare {
    dialects: Dialects,
    workspace: Arc<MemoryWorkspace>,
    engine: Engine,
    caller: Caller,
}

impl Bare {
    fn new() -> Self {
        let workspace = Arc::new(MemoryWorkspace::new());
        let engine = Engine::new(workspace.clone());
        let caller = Caller::new(Principal::Agent("tester".to_owned()), "bare", "library");
        Self { dialects: krux(), workspace, engine, caller }
    }
}

impl Ground for Bare {
    fn workspace(&self) -> String {
        MemoryWorkspace::ROOT.to_owned()
    }

    fn can(&self, _need: Need) -> bool {
        true
    }

    fn plant(&mut self, path: &str, what: Planted<'_>) {
        plant(&self.workspace, path, what);
    }

    fn advance_ms(&mut self, ms: i64) {
        self.workspace.advance_ms(ms);
    }

    fn rule(&mut self, policy: &str) {
        self.workspace.set_policy(policy);
    }

    fn fail_next(&mut self, kind: &str) {
        self.workspace.fail_next(failure(kind));
    }

    fn say(&mut self, id: &str, word: Word) {
        say(&self.workspace, id, word);
    }

    fn others(&mut self, somebody: Somebody, operation: &str, arguments: &Map<String, Value>) {
        others(&self.workspace, somebody, operation, arguments);
    }

    fn call(&mut self, capability: &str, inputs: &Map<String, Value>) -> Outcome {
        let dialect = self.dialects.with_tool(capability).expect("it is declared");
        let request = dialect.ask(capability, inputs);
        let call =
            Call { terms: request.terms, ..Call::new(&self.caller, &request.operation, request.arguments) };
        let outcome = self.engine.call(&call);
        if let Ok(answer) = &outcome {
            match &answer.switch {
                Some(engine::Switch::To(session)) => self.caller.session.clone_from(session),
                Some(engine::Switch::Back) => "bare".clone_into(&mut self.caller.session),
                None => {}
            }
        }
        let reply = dialect.reply(capability, inputs, outcome);
        assert_eq!(serde_json::from_str::<Value>(&reply.text).unwrap(), Value::Object(reply.json.clone()));
        Outcome { object: Value::Object(reply.json), failed: reply.verdict == Verdict::Error }
    }
}

/// A client of a face, driven step by step.
struct Behind {
    runtime: Runtime,
    client: Client,
    face: Face,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Face {
    Mcp,
    Rpc,
    /// JSON-RPC by `capabilities.invoke`.
    Envelope,
}

impl Behind {
    fn new(face: Face) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(async {
            match face {
                Face::Mcp => Client::open_in("krux").await,
                Face::Rpc | Face::Envelope => Client::rpc(&["krux"]),
            }
        });
        Self { runtime, client, face }
    }
}

impl Ground for Behind {
    fn workspace(&self) -> String {
        MemoryWorkspace::ROOT.to_owned()
    }

    fn can(&self, _need: Need) -> bool {
        true
    }

    fn plant(&mut self, path: &str, what: Planted<'_>) {
        plant(&self.client.workspace, path, what);
    }

    fn advance_ms(&mut self, ms: i64) {
        self.client.workspace.advance_ms(ms);
    }

    fn rule(&mut self, policy: &str) {
        self.client.workspace.set_policy(policy);
    }

    fn fail_next(&mut self, kind: &str) {
        self.client.workspace.fail_next(failure(kind));
    }

    fn say(&mut self, id: &str, word: Word) {
        say(&self.client.workspace, id, word);
    }

    fn others(&mut self, somebody: Somebody, operation: &str, arguments: &Map<String, Value>) {
        others(&self.client.workspace, somebody, operation, arguments);
    }

    fn call(&mut self, capability: &str, inputs: &Map<String, Value>) -> Outcome {
        let inputs = Value::Object(inputs.clone());
        let Self { runtime, client, face } = self;
        match face {
            Face::Mcp => {
                let plain = capability.replace('.', "__");
                let answer = runtime.block_on(client.call(&plain, inputs));
                let result = &answer["result"];
                let object = result["structuredContent"].clone();
                let text = result["content"][0]["text"].as_str().unwrap();
                assert_eq!(serde_json::from_str::<Value>(text).unwrap(), object);
                Outcome { object, failed: result["isError"] == true }
            }
            Face::Rpc => {
                let direct = runtime.block_on(client.request(capability, inputs));
                let failed = direct.get("error").is_some();
                let object = if failed { &direct["error"]["data"] } else { &direct["result"] };
                Outcome { object: object.clone(), failed }
            }
            Face::Envelope => {
                let invoke = json!({ "capability": capability, "arguments": inputs });
                let answer = runtime.block_on(client.request("capabilities.invoke", invoke));
                // What the protocol has a code for is an error of the protocol.
                if let Some(error) = answer.get("error") {
                    return Outcome { object: error["data"].clone(), failed: true };
                }
                let result = &answer["result"];
                let failed = result["success"] == false;
                let object = if failed { unsorry(&result["error"]) } else { result["data"].clone() };
                Outcome { object, failed }
            }
        }
    }
}

/// An error as the other faces have it.
fn unsorry(error: &Value) -> Value {
    let renamed = |(name, value): (&String, &Value)| {
        let name = if name == "type" { "error" } else { name };
        (name.to_owned(), value.clone())
    };
    Value::Object(error.as_object().unwrap().iter().map(renamed).collect())
}

fn played(suite: &Suite, scenario: &Scenario, ground: &mut dyn Ground) -> Vec<Outcome> {
    assert!(!scenario.steps.is_empty(), "{}: {}", suite.capability, scenario.title);
    scenario::play(scenario, ground)
}

fn fill_up(scenario: &Scenario, workspace: &MemoryWorkspace) {
    if scenario.needs == Some(Need::Full) {
        workspace.fill_up();
    }
}

#[test]
fn every_scenario_holds_in_the_engine_and_on_both_faces_with_equal_answers() {
    for suite in scenario::suites() {
        for scenario in &suite.scenarios {
            let mut bare = Bare::new();
            fill_up(scenario, &bare.workspace);
            let by_engine = played(&suite, scenario, &mut bare);
            for face in [Face::Mcp, Face::Rpc, Face::Envelope] {
                let mut behind = Behind::new(face);
                fill_up(scenario, &behind.client.workspace);
                let by_face = played(&suite, scenario, &mut behind);
                let alike = |outcomes: &[Outcome]| -> Vec<Value> {
                    outcomes.iter().map(scenario::comparable).collect()
                };
                // What a session counts includes the envelopes that only JSON-RPC has.
                if suite.capability != "agent.session" && suite.capability != "session.create" {
                    assert_eq!(
                        alike(&by_engine),
                        alike(&by_face),
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
async fn tools_show_their_tier_and_take_dotted_names() {
    let mut client = Client::open_in("krux").await;
    let listed = client.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let delete = tools.iter().find(|tool| tool["name"] == "filesystem__delete").unwrap();
    assert_eq!(delete["_meta"]["stead/tier"], "approval_required");
    assert!(delete["description"].as_str().unwrap().ends_with("Tier: approval_required."));
    assert!(tools.iter().all(|tool| !tool["name"].as_str().unwrap().contains('.')));
    client.workspace.put_file("a.txt", "a");
    for name in ["filesystem.read", "filesystem__read"] {
        let answer = client.call(name, json!({ "path": "/ws/a.txt" })).await;
        assert_eq!(answer["result"]["structuredContent"]["content"], "a", "{answer}");
    }
    client.close().await;
}
