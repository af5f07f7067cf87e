//! Tests one approval from the agent's request to the person's answer at another terminal and its journal entries.

use std::{
    io::{Read, Write},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use testkit::krux_scenario::KruxScenarioSubject;

use crate::{
    cli_fixture::CliFixture,
    scenarios::{ProtocolProcess, TestedStdioProtocol},
};

const SECRET: &str = "battery staple";

struct TestPtyProcess {
    child: Child,
    screen_text: String,
}

impl TestPtyProcess {
    fn new(fixture: &CliFixture, arguments: &[&str]) -> Self {
        let plain = fixture.command(arguments);
        let mut words = vec![plain.get_program().to_str().unwrap().to_owned()];
        words.extend(plain.get_args().map(|word| word.to_str().unwrap().to_owned()));
        let line: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let mut command = Command::new("script");
        command.args(["-qec", &line.join(" "), "/dev/null"]).current_dir(fixture.workspace());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program script");
        Self { child, screen_text: String::new() }
    }

    fn type_answer(&mut self, question: &str, typed: &str) {
        let before = self.screen_text.len();
        let mut byte = [0];
        while !self.screen_text[before..].ends_with(question) {
            let read = self.child.stdout.as_mut().unwrap().read(&mut byte).unwrap();
            assert_eq!(read, 1, "the command ended before it asked '{question}': {}", self.screen_text);
            self.screen_text.push(char::from(byte[0]));
        }
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(format!("{typed}\n").as_bytes()).unwrap();
        input.flush().unwrap();
    }

    fn wait_for_exit(mut self) -> (bool, String) {
        let mut rest = Vec::new();
        self.child.stdout.as_mut().unwrap().read_to_end(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        self.screen_text.push_str(&String::from_utf8_lossy(&rest));
        (status.success(), self.screen_text)
    }
}

#[test]
fn secret_is_typed_twice_and_never_shown() {
    let fixture = CliFixture::new();
    let mut differing = TestPtyProcess::new(&fixture, &["approvals", "setup"]);
    differing.type_answer("new approver's secret: ", SECRET);
    differing.type_answer("repeat it: ", "something else");
    let (fine, seen) = differing.wait_for_exit();
    assert!(!fine && seen.contains("the two secrets differ; no secret was set"), "{seen}");
    let mut typed = TestPtyProcess::new(&fixture, &["approvals", "setup"]);
    typed.type_answer("new approver's secret: ", SECRET);
    typed.type_answer("repeat it: ", SECRET);
    let (fine, seen) = typed.wait_for_exit();
    assert!(fine && seen.contains("approver's secret is set"), "{seen}");
    assert!(!seen.contains(SECRET), "{seen}");
    let mut again = TestPtyProcess::new(&fixture, &["approvals", "setup"]);
    again.type_answer("approver's secret: ", "wrong");
    let (fine, seen) = again.wait_for_exit();
    assert!(!fine && seen.contains("a secret is already set"), "{seen}");
}

fn request_delete(served: &mut ProtocolProcess) -> (Value, bool) {
    let path = format!("{}/notes/plan.txt", served.workspace_path());
    let outcome = served.call("filesystem.delete", json!({ "path": path }).as_object().unwrap());
    (outcome.object, outcome.is_error)
}

fn play_approval_story(protocol: TestedStdioProtocol) {
    let mut served = ProtocolProcess::new(protocol);
    let fixture = served.fixture();
    std::fs::create_dir(fixture.workspace().join("notes")).unwrap();
    std::fs::write(fixture.workspace().join("notes/plan.txt"), "first\nsecond\n").unwrap();
    let mut setup = TestPtyProcess::new(served.fixture(), &["approvals", "setup"]);
    setup.type_answer("new approver's secret: ", SECRET);
    setup.type_answer("repeat it: ", SECRET);
    assert!(setup.wait_for_exit().0);

    let (pending, failed) = request_delete(&mut served);
    assert!(failed && pending["status"] == "pending_approval", "{pending}");
    let id = pending["approval_id"].as_str().unwrap().to_owned();
    let message = pending["message"].as_str().unwrap();
    assert!(message.contains("is required: "), "{message}");
    assert!(message.contains("the tool's own tier"), "{message}");

    let listed = served.fixture().run_successfully(&["approvals", "list"]).text();
    let line = format!(
        "{id} pending: agent:tester wants krux/filesystem.delete, to remove notes/plan.txt \
         (1 file, 13 bytes; can be restored for 24 hours), until "
    );
    assert!(listed.contains(&line), "{listed}");
    let shown = served.fixture().run_successfully(&["approvals", "show", &id]).text();
    for words in [
        "requests krux/filesystem.delete",
        "approval is required because of the tool's own tier, as no rule matches this call",
        "remove notes/plan.txt (1 file, 13 bytes; can be restored for 24 hours)",
        "  -first\n  -second\n",
        "stead approvals approve ap-",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let mut approve = TestPtyProcess::new(served.fixture(), &["approvals", "approve", &id, "--reason", "fine by me"]);
    approve.type_answer("approver's secret: ", SECRET);
    let (fine, seen) = approve.wait_for_exit();
    assert!(fine && !seen.contains(SECRET), "{seen}");
    assert!(seen.contains("approved once; the agent must repeat exactly the same call"), "{seen}");

    let events = served.call("session.events", json!({ "wait_ms": 5000 }).as_object().unwrap()).object;
    assert_eq!(events["events"][0]["type"], "approval_resolved", "{events}");
    assert_eq!(events["events"][0]["data"]["reason"], "fine by me", "{events}");
    let (deleted, failed) = request_delete(&mut served);
    assert!(!failed && deleted["trash_path"].is_string(), "{deleted}");
    let (again, failed) = request_delete(&mut served);
    assert!(failed && again["error"] == "FileNotFound", "the approval is used only once: {again}");
    assert_approval_journaled(served.fixture(), &id);
    served.close();
}

fn assert_approval_journaled(fixture: &CliFixture, id: &str) {
    let seen = fixture.run_successfully(&["watch", "--supervisor", "--since", "0", "--no-wait", "--json"]).text();
    let events: Vec<Value> = seen.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of: Vec<&Value> = events.iter().filter(|event| event["data"]["approval"] == id).collect();
    let types: Vec<&str> = of.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let story = ["approval_requested", "approval_resolved", "capability_invoked", "capability_result"];
    assert_eq!(types, story, "{seen}");
    assert_eq!(
        (&of[0]["agent"], &of[1]["agent"], &of[3]["agent"]),
        (&json!("agent:tester"), &json!("user:tester"), &json!("agent:tester"))
    );
    assert_eq!(of[3]["data"]["changed"], json!(["notes/plan.txt"]));
    let log = fixture.run_successfully(&["log"]).text();
    let about: Vec<&str> = log.lines().filter(|line| line.ends_with(&format!("  approval: {id}"))).collect();
    let expected =
        ["remove  notes/plan.txt  as krux/filesystem.delete", "approve", "refused: approval_pending  as krux/"];
    assert_eq!(about.len(), expected.len(), "{log}");
    for (line, words) in about.iter().zip(expected) {
        assert!(line.contains(words), "newest first, {words}: {line}");
    }
    assert_eq!(fixture.run(&["log", "verify"]).code, 0);
}

#[test]
fn mcp_delete_is_approved_at_another_terminal() {
    play_approval_story(TestedStdioProtocol::Mcp);
}

#[test]
fn json_rpc_delete_is_approved_at_another_terminal() {
    play_approval_story(TestedStdioProtocol::Rpc);
}
