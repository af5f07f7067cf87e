//! Runs every scenario of the krux capabilities on a real directory, with `stead rpc` and `stead mcp` over pipes.

use std::os::unix::fs::symlink;

use serde_json::{Map, Value, json};
use testkit::{
    krux_scenario::{
        self, InitialItem, KruxScenarioActualReply, KruxScenarioOtherCallerKind, KruxScenarioSubject,
        ScenarioApprovalAnswer, ScenarioRequirement,
    },
    session_fixture::SessionFixture,
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
    session: SessionFixture,
}

impl ProtocolProcess {
    pub(crate) fn new(protocol: TestedStdioProtocol) -> Self {
        let fixture = CliFixture::new();
        let command = match protocol {
            TestedStdioProtocol::Mcp => "mcp",
            TestedStdioProtocol::Rpc => "rpc",
        };
        std::fs::write(fixture.directory.path().join(POLICY_FILE), "").unwrap();
        let policy = format!("../{POLICY_FILE}");
        let options = ["--durability", "fast", "--dialect", "krux", "--principal", "agent:tester", "--policy", &policy];
        let mut session = fixture.connect(&[&[command], &options[..]].concat());
        if protocol == TestedStdioProtocol::Mcp {
            session.initialize(&json!({}));
        }
        Self { fixture, protocol, session }
    }

    pub(crate) fn fixture(&self) -> &CliFixture {
        &self.fixture
    }

    pub(crate) fn close(self) {
        self.session.close();
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
        let principal = match somebody {
            KruxScenarioOtherCallerKind::Agent => "agent:other",
            KruxScenarioOtherCallerKind::Person => "user:ann",
        };
        let mut session = self.fixture.connect(&["rpc", "--durability", "fast", "--principal", principal]);
        session.request_ok(operation, &json!(arguments));
        session.close();
    }

    fn call(&mut self, capability: &str, inputs: &Map<String, Value>) -> KruxScenarioActualReply {
        let inputs = Value::Object(inputs.clone());
        match self.protocol {
            TestedStdioProtocol::Mcp => {
                let answer = self.session.call_tool(&capability.replace('.', "__"), &inputs);
                let result = &answer["result"];
                KruxScenarioActualReply {
                    object: result["structuredContent"].clone(),
                    is_error: result["isError"] == true,
                }
            }
            TestedStdioProtocol::Rpc => {
                let answer = self.session.request(capability, &inputs);
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
