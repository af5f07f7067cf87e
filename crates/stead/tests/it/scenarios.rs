//! Every scenario of the capabilities against the real thing: a directory, `stead rpc` and `stead mcp` over pipes.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::fs::symlink,
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use serde_json::{Map, Value, json};
use testkit::scenario::{self, Ground, Need, Outcome, Planted, Somebody, Word};

use crate::bench::Bench;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Face {
    Mcp,
    Rpc,
}

/// The policy file, beside the workspace.
const POLICY: &str = "policy.toml";

/// One server over one directory.
pub(crate) struct Served {
    bench: Bench,
    face: Face,
    child: Child,
    output: Option<ChildStdin>,
    input: BufReader<ChildStdout>,
    next_id: u64,
}

impl Served {
    pub(crate) fn new(face: Face) -> Self {
        let bench = Bench::new();
        let command = match face {
            Face::Mcp => "mcp",
            Face::Rpc => "rpc",
        };
        std::fs::write(bench.place.path().join(POLICY), "").unwrap();
        let mut command = bench.command(&[command, "--durability", "fast", "--dialect", "krux"]);
        command.args(["--principal", "agent:tester", "--policy", &format!("../{POLICY}")]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = child.stdin.take();
        let input = BufReader::new(child.stdout.take().unwrap());
        let mut served = Self { bench, face, child, output, input, next_id: 0 };
        if face == Face::Mcp {
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
            // Events are pushed in between.
            if answer.get("id").is_some() {
                return answer;
            }
        }
    }

    pub(crate) fn bench(&self) -> &Bench {
        &self.bench
    }

    pub(crate) fn end(mut self) {
        drop(self.output.take());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Ground for Served {
    fn workspace(&self) -> String {
        self.bench.workspace().canonicalize().unwrap().to_str().unwrap().to_owned()
    }

    fn can(&self, _need: Need) -> bool {
        false
    }

    fn plant(&mut self, path: &str, what: Planted<'_>) {
        let place = self.bench.workspace().join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        match what {
            Planted::File(bytes) => std::fs::write(place, bytes).unwrap(),
            Planted::Directory => std::fs::create_dir_all(place).unwrap(),
            Planted::Link(target) => symlink(target, place).unwrap(),
        }
    }

    fn rule(&mut self, policy: &str) {
        std::fs::write(self.bench.place.path().join(POLICY), policy).unwrap();
    }

    fn say(&mut self, id: &str, word: Word) {
        let secret = self.bench.place.path().join("secret");
        if !secret.exists() {
            std::fs::write(secret, "correct horse\n").unwrap();
            let ran = self.bench.run(&["approvals", "setup", "--secret-file", "../secret"]);
            assert_eq!(ran.code, 0, "{}", ran.err);
        }
        let word = match word {
            Word::Yes => "approve",
            Word::No => "deny",
        };
        let ran = self.bench.run(&["approvals", word, id, "--secret-file", "../secret"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
    }

    fn others(&mut self, somebody: Somebody, operation: &str, arguments: &Map<String, Value>) {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": operation, "params": arguments });
        let principal = match somebody {
            Somebody::Agent => "agent:other",
            Somebody::Person => "user:ann",
        };
        let mut command = self.bench.command(&["rpc", "--durability", "fast", "--principal", principal]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        writeln!(child.stdin.take().unwrap(), "{request}").unwrap();
        let ran = child.wait_with_output().unwrap();
        let answer: Value = serde_json::from_slice(&ran.stdout).unwrap();
        assert!(answer.get("result").is_some(), "{answer}");
    }

    fn call(&mut self, capability: &str, inputs: &Map<String, Value>) -> Outcome {
        let inputs = Value::Object(inputs.clone());
        match self.face {
            Face::Mcp => {
                let params = json!({ "name": capability.replace('.', "__"), "arguments": inputs });
                let answer = self.request("tools/call", &params);
                let result = &answer["result"];
                Outcome { object: result["structuredContent"].clone(), failed: result["isError"] == true }
            }
            Face::Rpc => {
                let answer = self.request(capability, &inputs);
                let failed = answer.get("error").is_some();
                let object = if failed { &answer["error"]["data"] } else { &answer["result"] };
                Outcome { object: object.clone(), failed }
            }
        }
    }
}

fn play(face: Face) {
    for suite in scenario::suites() {
        for scenario in &suite.scenarios {
            let mut served = Served::new(face);
            scenario::play(scenario, &mut served);
            served.end();
        }
    }
}

#[test]
fn every_scenario_holds_over_json_rpc_on_a_directory() {
    play(Face::Rpc);
}

#[test]
fn every_scenario_holds_over_mcp_on_a_directory() {
    play(Face::Mcp);
}

#[test]
fn an_alert_is_answered_at_the_command_line_and_heard_over_json_rpc() {
    let mut served = Served::new(Face::Rpc);
    let ask = |served: &mut Served, capability: &str, inputs: Value| {
        let outcome = served.call(capability, inputs.as_object().unwrap());
        assert!(!outcome.failed, "{}", outcome.object);
        outcome.object
    };
    let sent =
        ask(&mut served, "alerts.send", json!({ "message": "may I write to docs?", "severity": "warning" }));
    let id = sent["alert_id"].as_str().unwrap().to_owned();
    let listed = served.bench.ok(&["alerts", "list"]).text();
    assert!(listed.contains("may I write to docs?") && listed.contains("agent:tester"), "{listed}");
    assert!(served.bench.ok(&["alerts", "show", &id, "--json"]).text().contains("\"open\""));
    let refused = served.bench.run(&["alerts", "answer", &id, "yes", "--principal", "agent:tester"]);
    assert_ne!(refused.code, 0, "an agent answers nobody");
    served.bench.ok(&["alerts", "answer", &id, "yes, but only there"]);
    let heard = ask(&mut served, "session.events", json!({ "wait_ms": 5000 }));
    assert_eq!(heard["events"][0]["type"], "alert_answered", "{heard}");
    assert_eq!(heard["events"][0]["data"]["text"], "yes, but only there");
    served.end();
}
