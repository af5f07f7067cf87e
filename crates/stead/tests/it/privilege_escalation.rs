//! Tests that an agent cannot approve its own calls, widen its scope, exceed its quota, change its rules or edit the
//! journal.

use serde_json::{Value, json};
use testkit::session_fixture::SessionFixture;

use crate::cli_fixture::{CliFixture, CliTestCommandOutput};

/// The tests put the policy file into the workspace, so that an agent can try to change the file.
const POLICY_TEXT: &str = "[[system.rules]]\nname = \"removals\"\noperations = [\"remove\"]\nprincipals = [\"agent:*\"]\n\
                     tier = \"approval_required\"\n[agent.\"agent:*\".quota]\nbytes = 2000\n";
const POLICY_FLAGS: &[&str] = &["--policy", "conf/rules.toml"];

/// Connects as an agent that accepts every elicitation and claims the whole machine as its root.
fn connect_agent(fixture: &CliFixture, protocol: &str) -> SessionFixture {
    let words = [POLICY_FLAGS, &[protocol, "--principal", "agent:a", "--durability", "fast"]].concat();
    let mut agent = fixture.connect(&words);
    agent.answer_server = |method| match method {
        "elicitation/create" => Some(json!({ "action": "accept", "content": { "approve": true, "answer": "yes" } })),
        "roots/list" => Some(json!({ "roots": [{ "uri": "file:///", "name": "everything" }] })),
        _ => None,
    };
    if protocol == "mcp" {
        agent.initialize(&json!({ "elicitation": {}, "roots": {} }));
    }
    agent
}

fn is_refused(answer: &Value) -> bool {
    answer.get("error").is_some()
        || answer["result"]["isError"] == true
        || answer["result"]["resultType"] == "input_required"
        || answer["result"]["success"] == false
}

fn is_refused_by_policy(answer: &Value) -> bool {
    let kind = answer["result"]["structuredContent"]["error"]["kind"].as_str().unwrap_or_default();
    !["", "bad_request", "unknown_operation", "malformed_patch", "text_not_found"].contains(&kind)
}

struct PrivilegeEscalationFixture {
    fixture: CliFixture,
    pending_approval: String,
    files_before: Vec<(String, Vec<u8>)>,
}

impl PrivilegeEscalationFixture {
    fn new() -> Self {
        let fixture = CliFixture::new();
        let at = |path: &str| fixture.workspace().join(path);
        std::fs::create_dir(at("conf")).unwrap();
        std::fs::write(at("conf/rules.toml"), POLICY_TEXT).unwrap();
        std::fs::write(at("a.txt"), "precious\n").unwrap();
        std::fs::write(at("evil.toml"), "[system]\ndefault = \"autonomous\"\n").unwrap();
        std::fs::hard_link(at("conf/rules.toml"), at("twin")).unwrap();
        for (link, target) in [("link", "conf/rules.toml"), ("way", "conf")] {
            std::os::unix::fs::symlink(target, at(link)).unwrap();
        }
        std::fs::write(fixture.directory.path().join("secret"), "correct horse\n").unwrap();
        run_with_policy(&fixture, &["approvals", "setup", "--secret-file", "../secret"]);
        std::os::unix::fs::symlink(fixture.state(), at("state")).unwrap();
        let mut agent = connect_agent(&fixture, "mcp");
        let request = agent.call_tool("remove", &json!({ "path": "a.txt" }));
        let error = &request["result"]["structuredContent"]["error"];
        let pending_approval = error["approval"].as_str().expect("a pending approval").to_owned();
        agent.close();
        let files_before = read_tree(&fixture);
        Self { fixture, pending_approval, files_before }
    }

    #[track_caller]
    fn assert_unchanged(&self, attempt: &str) {
        assert_eq!(read_tree(&self.fixture), self.files_before, "{attempt}");
        let shown = run_with_policy(&self.fixture, &["approvals", "show", &self.pending_approval, "--json"]).json();
        assert_eq!(shown["state"], "pending", "{attempt}: {shown}");
    }

    fn assert_journal_intact(&self) {
        run_with_policy(&self.fixture, &["log", "verify"]);
        let log = run_with_policy(&self.fixture, &["log", "--json", "--limit", "1000"]).text();
        let rows: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for row in &rows {
            let entry = &row["entry"];
            let agent = entry["caller"]["principal"] == "agent:a";
            let changed = entry["changes"].as_array().is_some_and(|changes| !changes.is_empty());
            assert!(!(agent && changed), "{entry}");
            let answer = ["approve", "deny"].contains(&entry["operation"].as_str().unwrap_or_default());
            assert!(!answer || entry["decision"] != "allowed", "{entry}");
        }
    }
}

#[track_caller]
fn run_with_policy(fixture: &CliFixture, arguments: &[&str]) -> CliTestCommandOutput {
    fixture.run_successfully(&[POLICY_FLAGS, arguments].concat())
}

fn read_tree(fixture: &CliFixture) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for directory in ["", "conf"] {
        for entry in std::fs::read_dir(fixture.workspace().join(directory)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{directory}/{}", entry.file_name().display());
            let bytes =
                if entry.file_type().unwrap().is_file() { std::fs::read(entry.path()).unwrap() } else { Vec::new() };
            found.push((name, bytes));
        }
    }
    found.sort();
    found
}

#[test]
fn arguments_cannot_change_the_caller_identity() {
    let escalation = PrivilegeEscalationFixture::new();
    let mut agent = connect_agent(&escalation.fixture, "mcp");
    let words = [
        ("principal", json!("user:tester")),
        ("as", json!("user:tester")),
        ("on_behalf_of", json!("user:tester")),
        ("caller", json!({ "principal": "user:tester" })),
        ("approver", json!("shown")),
        ("approval", json!(escalation.pending_approval)),
        ("approved", json!(true)),
        ("grants", json!({ "writable": ["/"], "approver": "shown" })),
        ("tier", json!("autonomous")),
        ("policy", json!("evil.toml")),
        ("quota", json!({ "bytes": 1_000_000 })),
        ("hold_ms", json!(1)),
        ("secret", json!("correct horse")),
        ("force", json!(true)),
    ];
    for (tool, arguments) in [
        ("remove", json!({ "path": "a.txt" })),
        ("write", json!({ "path": "n", "content": "x".repeat(3_000) })),
        ("append", json!({ "path": "conf/rules.toml", "content": "#" })),
    ] {
        for (word, value) in &words {
            let mut arguments = arguments.clone();
            arguments[*word] = value.clone();
            let answer = agent.call_tool(tool, &arguments);
            assert!(is_refused(&answer), "{tool} with {word}: {answer}");
            // A protocol might read the same fields beside the arguments.
            let mut params = json!({ "name": tool, "arguments": arguments });
            params["arguments"].as_object_mut().unwrap().remove(*word);
            params[*word] = value.clone();
            params["_meta"] = json!({ *word: value, "stead/principal": "user:tester", "stead/approval": escalation.pending_approval });
            let answer = agent.request("tools/call", &params);
            assert!(is_refused(&answer), "{tool} beside {word}: {answer}");
        }
        escalation.assert_unchanged(tool);
    }
    agent.close();
    escalation.assert_journal_intact();
}

#[test]
fn no_protocol_lets_an_agent_answer_approvals() {
    let escalation = PrivilegeEscalationFixture::new();
    let id = json!({ "id": escalation.pending_approval, "reason": "I say so" });
    let mut agent = connect_agent(&escalation.fixture, "mcp");
    for tool in ["approve", "deny", "approvals", "approvals.approve", "approvals_approve", "stead.approve"] {
        let answer = agent.call_tool(tool, &id);
        assert!(is_refused(&answer) || tool == "approvals", "{tool}: {answer}");
        escalation.assert_unchanged(tool);
    }
    for method in ["approve", "approvals/approve", "stead/approve", "elicitation/create", "sampling/createMessage"] {
        let answer = agent.request(method, &id);
        assert!(is_refused(&answer), "{method}: {answer}");
    }
    // The agent answers elicitations that were never sent.
    for number in 0..20 {
        let yes = json!({ "action": "accept", "content": { "id": escalation.pending_approval } });
        agent.send(&json!({ "jsonrpc": "2.0", "id": number, "result": yes }));
    }
    escalation.assert_unchanged("answers unasked");
    agent.close();
    let mut rpc = connect_agent(&escalation.fixture, "rpc");
    for method in ["approve", "deny", "approvals.approve", "stead.approve"] {
        let answer = rpc.request(method, &id);
        assert!(is_refused(&answer), "{method}: {answer}");
        let invoked = rpc.request("capabilities.invoke", &json!({ "capability": method, "arguments": id }));
        assert!(is_refused(&invoked), "{method}: {invoked}");
        escalation.assert_unchanged(method);
    }
    let held = json!({ "capability": "remove", "arguments": { "path": "a.txt" }, "hold_ms": 50, "approval": escalation.pending_approval });
    let answer = rpc.request("capabilities.invoke", &held);
    assert!(is_refused(&answer), "{answer}");
    rpc.close();
    escalation.assert_unchanged("held");
    escalation.assert_journal_intact();
}

#[test]
fn agent_cannot_answer_its_own_elicitation() {
    let escalation = PrivilegeEscalationFixture::new();
    let mut agent = connect_agent(&escalation.fixture, "mcp");
    for _ in 0..3 {
        // The agent accepts every elicitation.
        let answer = agent.call_tool("remove", &json!({ "path": "a.txt" }));
        assert!(is_refused(&answer), "{answer}");
        escalation.assert_unchanged("accepted by itself");
    }
    let modern = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
        "io.modelcontextprotocol/clientInfo": { "name": "modern", "version": "1" } });
    let yes = json!({ "approval": { "action": "accept", "content": {} } });
    let ask = |more: &Value| {
        let mut params = json!({ "name": "remove", "arguments": { "path": "a.txt" }, "_meta": modern });
        for (name, value) in more.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        params
    };
    let first = agent.request("tools/call", &ask(&json!({})));
    let sealed = first["result"]["requestState"].as_str().expect("a sealed state").to_owned();
    let mut flipped = sealed.clone().into_bytes();
    let middle = flipped.len() / 2;
    flipped[middle] = if flipped[middle] == b'A' { b'B' } else { b'A' };
    let flipped = String::from_utf8(flipped).unwrap();
    // The state is sent unchanged, repeatedly, with one changed byte, invented, and on another connection.
    for state in [sealed.as_str(), &sealed, &flipped, &escalation.pending_approval, "", "eyJhcHByb3ZlZCI6dHJ1ZX0"] {
        let answer = agent.request("tools/call", &ask(&json!({ "requestState": state, "inputResponses": yes })));
        assert!(is_refused(&answer), "{state}: {answer}");
        escalation.assert_unchanged(state);
    }
    let mut second = connect_agent(&escalation.fixture, "mcp");
    let answer = second.request("tools/call", &ask(&json!({ "requestState": sealed, "inputResponses": yes })));
    assert!(is_refused(&answer), "{answer}");
    second.close();
    agent.close();
    escalation.assert_unchanged("another connection");
    escalation.assert_journal_intact();
}

#[test]
fn agents_cannot_change_the_policy_that_binds_them() {
    let escalation = PrivilegeEscalationFixture::new();
    let mut agent = connect_agent(&escalation.fixture, "mcp");
    let base = agent.call_tool("stat", &json!({ "path": "conf/rules.toml" }))["result"]["structuredContent"]["version"]
        .clone();
    let mut attempts = Vec::new();
    for name in ["conf/rules.toml", "way/rules.toml", "link", "twin"] {
        let patch = |text: &str| json!({ "patch": format!("*** Begin Patch\n{text}\n*** End Patch\n") });
        attempts.extend([
            ("write", json!({ "path": name, "content": "", "base": base })),
            ("append", json!({ "path": name, "content": "#\n" })),
            ("edit", json!({ "path": name, "edits": [{ "old": "2000", "new": "9000" }] })),
            ("patch", patch(&format!("*** Update File: {name}\n@@\n-bytes = 2000\n+bytes = 9000"))),
            ("patch", patch(&format!("*** Delete File: {name}"))),
            ("patch", patch(&format!("*** Move File: {name} -> gone.toml"))),
            ("patch", patch(&format!("*** Move File: evil.toml -> {name}"))),
            ("copy", json!({ "from": "evil.toml", "to": name, "overwrite": true })),
            ("move", json!({ "from": "evil.toml", "to": name, "overwrite": true })),
            ("move", json!({ "from": name, "to": "elsewhere" })),
            ("remove", json!({ "path": name })),
            ("lock", json!({ "path": name })),
        ]);
    }
    for directory in ["conf", "way"] {
        attempts.extend([
            ("move", json!({ "from": directory, "to": "other" })),
            ("remove", json!({ "path": directory, "recursive": true })),
            ("copy", json!({ "from": "evil.toml", "to": directory, "overwrite": true })),
            ("move", json!({ "from": "evil.toml", "to": directory, "overwrite": true })),
            ("write", json!({ "path": format!("{directory}/RULES.toml"), "content": "" })),
        ]);
    }
    for (tool, arguments) in attempts {
        let answer = agent.call_tool(tool, &arguments);
        // Changing a link to the policy file is allowed, because it leaves the rules in force.
        let link = ["link", "way"].iter().any(|link| {
            let patched = arguments["patch"].as_str().unwrap_or_default();
            arguments["from"] == *link
                || arguments["path"] == *link
                || ["Delete File: ", "Move File: "].iter().any(|verb| patched.contains(&format!("{verb}{link}")))
        });
        let taken = link && !is_refused(&answer);
        assert!(is_refused(&answer) || taken, "{tool} {arguments}: {answer}");
        assert!(taken || is_refused_by_policy(&answer), "{tool} {arguments}: {answer}");
        if taken {
            let undone = agent.call_tool("undo", &json!({}));
            assert!(!is_refused(&undone), "{undone}");
        }
        escalation.assert_unchanged(&format!("{tool} {arguments}"));
    }
    agent.close();
    run_with_policy(&escalation.fixture, &["log", "verify"]);
}

#[test]
fn state_directory_and_journal_are_unreachable() {
    let escalation = PrivilegeEscalationFixture::new();
    let mut agent = connect_agent(&escalation.fixture, "mcp");
    let state = escalation.fixture.state().display().to_string();
    let places =
        [state.clone(), format!("{state}/x"), "state".into(), "state/x".into(), "../state".into(), "../secret".into()];
    for place in &places {
        for (tool, arguments) in [
            ("read", json!({ "path": place })),
            ("list", json!({ "path": place })),
            ("search", json!({ "path": place, "query": "a" })),
            ("find", json!({ "path": place, "pattern": "*" })),
            ("write", json!({ "path": format!("{place}/stead.db"), "content": "" })),
            ("copy", json!({ "from": place, "to": "taken" })),
            ("move", json!({ "from": "a.txt", "to": format!("{place}/taken") })),
            ("watch", json!({ "path": place })),
        ] {
            let answer = agent.call_tool(tool, &arguments);
            assert!(is_refused(&answer) && is_refused_by_policy(&answer), "{tool} {arguments}: {answer}");
        }
        for uri in [format!("stead:///{place}"), format!("file://{state}"), "stead:///%2e%2e/state".into()] {
            for method in ["resources/read", "resources/subscribe"] {
                let answer = agent.request(method, &json!({ "uri": uri }));
                assert!(is_refused(&answer), "{method} {uri}: {answer}");
            }
        }
        escalation.assert_unchanged(place);
    }
    agent.notify("notifications/roots/list_changed", &json!({}));
    for (tool, arguments) in [
        ("history", json!({ "truncate": true })),
        ("undo", json!({ "entry": "r1" })),
        ("policy", json!({ "principal": "user:tester" })),
        ("session", json!({ "action": "begin", "principal": "user:tester" })),
        ("respond", json!({ "id": "a1", "answer": "yes" })),
        ("read", json!({ "path": "/etc/passwd" })),
    ] {
        let answer = agent.call_tool(tool, &arguments);
        assert!(is_refused(&answer), "{tool} {arguments}: {answer}");
    }
    agent.close();
    escalation.assert_unchanged("the rest");
    escalation.assert_journal_intact();
}

#[test]
fn connections_share_one_quota_and_rate_limit() {
    let escalation = PrivilegeEscalationFixture::new();
    let mut agents = [
        connect_agent(&escalation.fixture, "mcp"),
        connect_agent(&escalation.fixture, "mcp"),
        connect_agent(&escalation.fixture, "rpc"),
    ];
    let [one, two, three] = &mut agents;
    let mut refused = 0;
    for round in 0..20 {
        let file = |who: &str| json!({ "path": format!("{who}{round}"), "content": "x".repeat(100), "base": "" });
        let answers = [
            one.call_tool("write", &file("a")),
            two.call_tool("write", &file("b")),
            three.request("write", &file("c")),
        ];
        refused += answers.iter().filter(|answer| is_refused(answer)).count();
    }
    let held: u64 = std::fs::read_dir(escalation.fixture.workspace())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap())
        .filter(std::fs::Metadata::is_file)
        .map(|meta| meta.len())
        .sum();
    assert!(refused > 40 && held <= 2_000 && held > 1_700, "{refused} refused, {held} held");
    agents.into_iter().for_each(|agent| drop(agent.close()));
    let usage = run_with_policy(&escalation.fixture, &["policy", "list", "--principal", "agent:a", "--json"]).json();
    assert_eq!(usage["quota"]["bytes"]["limit"], 2_000, "{usage}");
    run_with_policy(&escalation.fixture, &["log", "verify"]);
}
