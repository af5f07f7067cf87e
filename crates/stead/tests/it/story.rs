//! The whole story as a newcomer lives it: an agent deletes through the krux capabilities, a person at another terminal is
//! told, reads what would be lost, types the secret and answers; and the audit tells all of it.

use std::{
    io::{Read, Write},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use testkit::scenario::Ground;

use crate::{
    bench::Bench,
    scenarios::{Face, Served},
};

const SECRET: &str = "battery staple";

/// A command at a terminal of its own.
struct Terminal {
    child: Child,
    seen: String,
}

impl Terminal {
    fn new(bench: &Bench, arguments: &[&str]) -> Self {
        let plain = bench.command(arguments);
        let mut words = vec![plain.get_program().to_str().unwrap().to_owned()];
        words.extend(plain.get_args().map(|word| word.to_str().unwrap().to_owned()));
        let line: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let mut command = Command::new("script");
        command.args(["-qec", &line.join(" "), "/dev/null"]).current_dir(bench.workspace());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program script");
        Self { child, seen: String::new() }
    }

    /// Waits for a question, then types.
    fn answer(&mut self, question: &str, typed: &str) {
        let before = self.seen.len();
        let mut byte = [0];
        while !self.seen[before..].ends_with(question) {
            let read = self.child.stdout.as_mut().unwrap().read(&mut byte).unwrap();
            assert_eq!(read, 1, "it ended before it asked '{question}': {}", self.seen);
            self.seen.push(char::from(byte[0]));
        }
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(format!("{typed}\n").as_bytes()).unwrap();
        input.flush().unwrap();
    }

    /// Waits for the end. Answers how it ended and everything that was on the screen.
    fn end(mut self) -> (bool, String) {
        let mut rest = Vec::new();
        self.child.stdout.as_mut().unwrap().read_to_end(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        self.seen.push_str(&String::from_utf8_lossy(&rest));
        (status.success(), self.seen)
    }
}

#[test]
fn the_secret_is_typed_twice_and_shown_never() {
    let bench = Bench::new();
    let mut differing = Terminal::new(&bench, &["approvals", "setup"]);
    differing.answer("new approver's secret: ", SECRET);
    differing.answer("the same again: ", "something else");
    let (fine, seen) = differing.end();
    assert!(!fine && seen.contains("the two differ; nothing was set"), "{seen}");
    let mut typed = Terminal::new(&bench, &["approvals", "setup"]);
    typed.answer("new approver's secret: ", SECRET);
    typed.answer("the same again: ", SECRET);
    let (fine, seen) = typed.end();
    assert!(fine && seen.contains("the secret is set"), "{seen}");
    assert!(!seen.contains(SECRET), "{seen}");
    let mut again = Terminal::new(&bench, &["approvals", "setup"]);
    again.answer("approver's secret: ", "wrong");
    let (fine, seen) = again.end();
    assert!(!fine && seen.contains("there is a secret already"), "{seen}");
}

fn delete(served: &mut Served) -> (Value, bool) {
    let path = format!("{}/notes/plan.txt", served.workspace());
    let outcome = served.call("filesystem.delete", json!({ "path": path }).as_object().unwrap());
    (outcome.object, outcome.failed)
}

fn story(face: Face) {
    let mut served = Served::new(face);
    let bench = served.bench();
    std::fs::create_dir(bench.workspace().join("notes")).unwrap();
    std::fs::write(bench.workspace().join("notes/plan.txt"), "first\nsecond\n").unwrap();
    let mut setup = Terminal::new(served.bench(), &["approvals", "setup"]);
    setup.answer("new approver's secret: ", SECRET);
    setup.answer("the same again: ", SECRET);
    assert!(setup.end().0);

    let (pending, failed) = delete(&mut served);
    assert!(failed && pending["status"] == "pending_approval", "{pending}");
    let id = pending["approval_id"].as_str().unwrap().to_owned();
    let message = pending["message"].as_str().unwrap();
    assert!(message.contains("a person must approve this first"), "{message}");
    assert!(message.contains("the tool's own tier"), "{message}");

    let listed = served.bench().ok(&["approvals", "list"]).text();
    let line = format!(
        "{id} pending: agent:tester wants krux/filesystem.delete, to remove notes/plan.txt \
         (1 file, 13 bytes; can be restored for 24 hours), until "
    );
    assert!(listed.contains(&line), "{listed}");
    let shown = served.bench().ok(&["approvals", "show", &id]).text();
    for words in [
        "wants krux/filesystem.delete",
        "this needs a person because of the tool's own tier, as no rule is about this call",
        "remove notes/plan.txt (1 file, 13 bytes; can be restored for 24 hours)",
        "  -first\n  -second\n",
        "stead approvals approve ap-",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let mut approve = Terminal::new(served.bench(), &["approvals", "approve", &id, "--reason", "fine by me"]);
    approve.answer("approver's secret: ", SECRET);
    let (fine, seen) = approve.end();
    assert!(fine && !seen.contains(SECRET), "{seen}");
    assert!(seen.contains("it runs when the very same call is made again, once"), "{seen}");

    let told = served.call("session.events", json!({ "wait_ms": 5000 }).as_object().unwrap()).object;
    assert_eq!(told["events"][0]["type"], "approval_resolved", "{told}");
    assert_eq!(told["events"][0]["data"]["reason"], "fine by me", "{told}");
    let (deleted, failed) = delete(&mut served);
    assert!(!failed && deleted["trash_path"].is_string(), "{deleted}");
    let (again, failed) = delete(&mut served);
    assert!(failed && again["error"] == "FileNotFound", "used once: {again}");
    audited(served.bench(), &id);
    served.end();
}

/// The journal and the supervisor's stream tell what happened, by whom and with whose yes.
fn audited(bench: &Bench, id: &str) {
    let seen = bench.ok(&["watch", "--supervisor", "--since", "0", "--no-wait", "--json"]).text();
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
    let log = bench.ok(&["log"]).text();
    let about: Vec<&str> = log.lines().filter(|line| line.ends_with(&format!("  approval: {id}"))).collect();
    let told = [
        "remove  notes/plan.txt  as krux/filesystem.delete",
        "approve",
        "refused: approval_pending  as krux/",
    ];
    assert_eq!(about.len(), told.len(), "{log}");
    for (line, words) in about.iter().zip(told) {
        assert!(line.contains(words), "newest first, {words}: {line}");
    }
    assert_eq!(bench.run(&["log", "verify"]).code, 0);
}

#[test]
fn an_agent_deletes_over_mcp_and_a_person_at_another_terminal_approves() {
    story(Face::Mcp);
}

#[test]
fn an_agent_deletes_over_json_rpc_and_a_person_at_another_terminal_approves() {
    story(Face::Rpc);
}
