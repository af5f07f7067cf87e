//! Runs every scenario of the krux capabilities on a real directory, with `stead rpc` and `stead mcp` over pipes.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::fs::symlink,
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use serde_json::{Map, Value, json};
use testkit::krux_scenario::{
    self, InitialItem, KruxScenarioActualReply, KruxScenarioOtherCallerKind, KruxScenarioSubject,
    ScenarioApprovalAnswer, ScenarioRequirement,
};

use crate::cli_fixture::CliFixture;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestedStdioProtocol {
    Mcp,
    Rpc,
}

const POLICY_FILE: &str = "policy.toml";

pub(crate) struct ProtocolProcess {
    fixture: CliFixture,
    protocol: TestedStdioProtocol,
    child: Child,
    output: Option<ChildStdin>,
    input: BufReader<ChildStdout>,
    next_id: u64,
}

impl ProtocolProcess {
    pub(crate) fn new(protocol: TestedStdioProtocol) -> Self {
        let fixture = CliFixture::new();
        let command = match protocol {
            TestedStdioProtocol::Mcp => "mcp",
            TestedStdioProtocol::Rpc => "rpc",
        };
        std::fs::write(fixture.directory.path().join(POLICY_FILE), "").unwrap();
        let mut command = fixture.command(&[command, "--durability", "fast", "--dialect", "krux"]);
        command.args(["--principal", "agent:tester", "--policy", &format!("../{POLICY_FILE}")]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = child.stdin.take();
        let input = BufReader::new(child.stdout.take().unwrap());
        let mut served = Self { fixture, protocol, child, output, input, next_id: 0 };
        if protocol == TestedStdioProtocol::Mcp {
            let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
            served.request("initialize", &hello);
        }
        served
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params });
        writeln!(self.output.as_mut().unwrap(), "{request}").unwrap();
        loop {
            let mut line = String::new();
            self.input.read_line(&mut line).unwrap();
            let answer: Value = serde_json::from_str(&line).expect("one message a line");
            // Events may arrive before the response.
            if answer.get("id").is_some() {
                return answer;
            }
        }
    }

    pub(crate) fn fixture(&self) -> &CliFixture {
        &self.fixture
    }

    pub(crate) fn close(mut self) {
        drop(self.output.take());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl KruxScenarioSubject for ProtocolProcess {
    fn workspace_path(&self) -> String {
        self.fixture.workspace().canonicalize().unwrap().to_str().unwrap().to_owned()
    }

    fn supports(&self, _need: ScenarioRequirement) -> bool {
        false
    }

    fn create_item(&mut self, path: &str, what: InitialItem<'_>) {
        let place = self.fixture.workspace().join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        match what {
            InitialItem::File(bytes) => std::fs::write(place, bytes).unwrap(),
            InitialItem::Directory => std::fs::create_dir_all(place).unwrap(),
            InitialItem::Link(target) => symlink(target, place).unwrap(),
        }
    }

    fn set_policy(&mut self, policy: &str) {
        std::fs::write(self.fixture.directory.path().join(POLICY_FILE), policy).unwrap();
    }

    fn answer_approval(&mut self, id: &str, word: ScenarioApprovalAnswer) {
        let secret = self.fixture.directory.path().join("secret");
        if !secret.exists() {
            std::fs::write(secret, "correct horse\n").unwrap();
            let ran = self.fixture.run(&["approvals", "setup", "--secret-file", "../secret"]);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
        }
        let word = match word {
            ScenarioApprovalAnswer::Yes => "approve",
            ScenarioApprovalAnswer::No => "deny",
        };
        let ran = self.fixture.run(&["approvals", word, id, "--secret-file", "../secret"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }

    fn call_as_other(
        &mut self,
        somebody: KruxScenarioOtherCallerKind,
        operation: &str,
        arguments: &Map<String, Value>,
    ) {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": operation, "params": arguments });
        let principal = match somebody {
            KruxScenarioOtherCallerKind::Agent => "agent:other",
            KruxScenarioOtherCallerKind::Person => "user:ann",
        };
        let mut command = self.fixture.command(&["rpc", "--durability", "fast", "--principal", principal]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        writeln!(child.stdin.take().unwrap(), "{request}").unwrap();
        let ran = child.wait_with_output().unwrap();
        let answer: Value = serde_json::from_slice(&ran.stdout).unwrap();
        assert!(answer.get("result").is_some(), "{answer}");
    }

    fn call(&mut self, capability: &str, inputs: &Map<String, Value>) -> KruxScenarioActualReply {
        let inputs = Value::Object(inputs.clone());
        match self.protocol {
            TestedStdioProtocol::Mcp => {
                let params = json!({ "name": capability.replace('.', "__"), "arguments": inputs });
                let answer = self.request("tools/call", &params);
                let result = &answer["result"];
                KruxScenarioActualReply {
                    object: result["structuredContent"].clone(),
                    is_error: result["isError"] == true,
                }
            }
            TestedStdioProtocol::Rpc => {
                let answer = self.request(capability, &inputs);
                let failed = answer.get("error").is_some();
                let object = if failed { &answer["error"]["data"] } else { &answer["result"] };
                KruxScenarioActualReply { object: object.clone(), is_error: failed }
            }
        }
    }
}

fn play_all_scenarios(protocol: TestedStdioProtocol) {
    for suite in krux_scenario::load_suites() {
        for scenario in &suite.scenarios {
            let mut served = ProtocolProcess::new(protocol);
            krux_scenario::play_scenario(scenario, &mut served);
            served.close();
        }
    }
}

#[test]
fn all_scenarios_pass_over_json_rpc_on_disk() {
    play_all_scenarios(TestedStdioProtocol::Rpc);
}

#[test]
fn all_scenarios_pass_over_mcp_on_disk() {
    play_all_scenarios(TestedStdioProtocol::Mcp);
}

#[test]
fn alert_answered_on_the_cli_is_delivered_over_json_rpc() {
    let mut served = ProtocolProcess::new(TestedStdioProtocol::Rpc);
    let ask = |served: &mut ProtocolProcess, capability: &str, inputs: Value| {
        let outcome = served.call(capability, inputs.as_object().unwrap());
        assert!(!outcome.is_error, "{}", outcome.object);
        outcome.object
    };
    let sent = ask(&mut served, "alerts.send", json!({ "message": "may I write to docs?", "severity": "warning" }));
    let id = sent["alert_id"].as_str().unwrap().to_owned();
    let listed = served.fixture.run_successfully(&["alerts", "list"]).text();
    assert!(listed.contains("may I write to docs?") && listed.contains("agent:tester"), "{listed}");
    assert!(served.fixture.run_successfully(&["alerts", "show", &id, "--json"]).text().contains("\"open\""));
    let refused = served.fixture.run(&["alerts", "answer", &id, "yes", "--principal", "agent:tester"]);
    assert_ne!(refused.code, 0, "an agent answers nobody");
    served.fixture.run_successfully(&["alerts", "answer", &id, "yes, but only there"]);
    let heard = ask(&mut served, "session.events", json!({ "wait_ms": 5000 }));
    assert_eq!(heard["events"][0]["type"], "alert_answered", "{heard}");
    assert_eq!(heard["events"][0]["data"]["text"], "yes, but only there");
    served.close();
}
