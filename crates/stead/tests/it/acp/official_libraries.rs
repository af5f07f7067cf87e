//! Tests `stead acp` with other implementations of ACP: the official libraries, conductor and schemas, and the client
//! acpx.

use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::harness::AcpProxyTestProcess;
use crate::{
    cli_fixture::CliFixture,
    mcp_inspector::{node_binary, npm_packages_directory},
    python_client::python_binary,
};

const FILE_TEXT: &str = "one\ntwo\nthree\nfour\n";

const NOT_UTF8_ERROR: &str = "not_text: the file is not UTF-8: byte 1 does not fit; reading it would damage it";

/// Lists the requests of a test agent with their expected responses. The expected responses are the same for every ACP
/// library and every editor.
fn agent_steps(root: &Path) -> Vec<(Value, Value)> {
    let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let read = |more: Value| {
        let mut given = json!({ "path": path("a.txt") });
        given.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!(["read", given])
    };
    let text = |content: &str| json!({ "content": content });
    let missing = |path: &str| json!({ "code": -32002, "message": "Resource not found", "data": { "uri": path } });
    let refused = |code: i64, data: &Value| {
        let message = if code == -32602 { "Invalid params" } else { "Internal error" };
        json!({ "code": code, "message": message, "data": data })
    };
    let kept = json!({ "_meta": { "stead": { "lineEndings": "crlf" } } });
    let beyond = "Attempting to read beyond the end of the file, line 5:0";
    vec![
        (json!(["offers", {}]), json!({ "reads": true, "writes": true, "servers": ["stead"] })),
        (read(json!({})), text(FILE_TEXT)),
        (read(json!({ "line": 3 })), text("three\nfour\n")),
        (read(json!({ "limit": 2 })), text("one\ntwo\n")),
        (read(json!({ "line": 2, "limit": 2 })), text("two\nthree\n")),
        (read(json!({ "line": 5 })), text("")),
        (read(json!({ "line": 6 })), json!({ "code": -32602, "message": "Invalid params", "data": beyond })),
        (read(json!({ "limit": 0 })), text("")),
        (json!(["read", { "path": path("none") }]), missing(&path("none"))),
        (json!(["read", { "path": "/etc/passwd" }]), missing("/etc/passwd")),
        (json!(["write", { "path": path("new/deep.txt"), "content": "x\n" }]), json!({})),
        (json!(["read", { "path": path("new/deep.txt") }]), text("x\n")),
        (read(json!({ "line": 0 })), text(FILE_TEXT)),
        (json!(["read", { "path": path("empty.txt"), "line": 1 }]), text("")),
        (
            json!(["read", { "path": path("empty.txt"), "line": 5 }]),
            json!({ "code": -32602, "message": "Invalid params", "data": beyond.replace("5:0", "1:0") }),
        ),
        (json!(["write", { "path": "/outside-of-it.txt", "content": "x" }]), missing("/outside-of-it.txt")),
        (
            json!(["read", { "path": "a.txt" }]),
            refused(-32602, &json!({ "path": "a.txt", "reason": "path must be absolute" })),
        ),
        (json!(["read", { "path": path("broken.txt") }]), refused(-32603, &json!(NOT_UTF8_ERROR))),
        (json!(["write", { "path": path("crlf.txt"), "content": "A\nb\n" }]), kept),
        (json!(["read", { "path": path("crlf.txt") }]), text("A\r\nb\r\n")),
    ]
}

/// The indexes of the agent's requests whose results differ if acpx handles the file methods without stead. The client
/// acpx loses line endings and replaces invalid text.
const STEPS_DIFFERING_IN_ACPX: &[usize] = &[0, 3, 4, 6, 8, 9, 14, 15, 16, 17, 18, 19];

fn run_agent_in_acpx(fixture: &CliFixture, agent: &str, flags: &[&str]) -> Vec<Value> {
    let root = fixture.workspace();
    fs::write(root.join("a.txt"), FILE_TEXT).unwrap();
    fs::write(root.join("empty.txt"), "").unwrap();
    fs::write(root.join("broken.txt"), b"a\xffb\n").unwrap();
    fs::write(root.join("crlf.txt"), "a\r\nb\r\n").unwrap();
    drop(fs::remove_dir_all(root.join("new")));
    let script: Vec<Value> = agent_steps(&root).into_iter().map(|(step, _)| step).collect();
    let output = Command::new(node_binary())
        .arg(npm_packages_directory().join("node_modules").join(".bin").join("acpx"))
        .args(["--agent", agent, "--approve-all", "--format", "json"])
        .args(flags)
        .arg("--cwd")
        .arg(&root)
        .args(["exec", &Value::Array(script).to_string()])
        .env("HOME", fixture.directory.path())
        .env("XDG_STATE_HOME", fixture.state())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut updates = lines.filter(|line| line["method"] == "session/update");
    let text = updates.next().map(|update| update["params"]["update"]["content"]["text"].clone());
    let text = text.unwrap_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned().into());
    serde_json::from_str(text.as_str().unwrap()).expect(&printed)
}

const PEERS_VARIABLE: &str = "STEAD_TEST_PEERS";

fn rust_peer_binary(name: &str) -> PathBuf {
    let given = std::env::var_os(PEERS_VARIABLE).map(PathBuf::from);
    let created = || {
        let binary = Path::new(env!("CARGO_BIN_EXE_stead"));
        binary.ancestors().nth(2).unwrap().join("tools").join("rust").join("debug")
    };
    let peer = given.unwrap_or_else(created).join(name);
    assert!(peer.is_file(), "no {}: run `cargo xtask test`, or once `cargo xtask needs`", peer.display());
    peer
}

fn agent_commands() -> [String; 3] {
    let script = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("peers").join(name);
    let library = npm_packages_directory().join("node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js");
    [
        format!("{} {}", python_binary().display(), script("agent.py").display()),
        format!("{} {} {}", node_binary().display(), script("agent.mjs").display(), library.display()),
        rust_peer_binary("agent").display().to_string(),
    ]
}

#[test]
fn agents_on_all_official_libraries_work_behind_acpx() {
    for agent in agent_commands() {
        // The agent must not notice whether acpx offers file methods of its own.
        for flags in [&["--no-fs"][..], &[]] {
            let fixture = CliFixture::new();
            let through = format!("{} acp --durability fast -- {agent}", env!("CARGO_BIN_EXE_stead"));
            let results = run_agent_in_acpx(&fixture, &through, flags);
            for (number, ((step, expected), found)) in
                agent_steps(&fixture.workspace()).iter().zip(&results).enumerate()
            {
                assert_eq!(found, expected, "step {number} {step} of {agent} {flags:?}");
            }
            assert_eq!(fs::read_to_string(fixture.workspace().join("new/deep.txt")).unwrap(), "x\n");
        }
    }
}

#[test]
fn official_conductor_runs_a_chain_through_stead() {
    for agent in agent_commands() {
        let fixture = CliFixture::new();
        // acpx starts one command line, but the conductor takes one argument for each component of the chain.
        let chain = fixture.directory.path().join("chain");
        let (conductor, stead) = (rust_peer_binary("conductor"), env!("CARGO_BIN_EXE_stead"));
        let script = format!("#!/bin/sh\nexec '{}' '{stead} acp --durability fast' '{agent}'\n", conductor.display());
        fs::write(&chain, script).unwrap();
        fs::set_permissions(&chain, fs::Permissions::from_mode(0o755)).unwrap();
        let results = run_agent_in_acpx(&fixture, chain.to_str().unwrap(), &["--no-fs"]);
        for ((step, expected), found) in agent_steps(&fixture.workspace()).iter().zip(&results) {
            assert_eq!(found, expected, "step {step} of {agent} in a chain");
        }
        // The forwarded prompt started a turn, so all files written in the turn are reverted together.
        let turn: Value = fixture.run_successfully(&["review", "--since", "turn", "--json"]).json();
        let changed: Vec<&Value> = turn["files"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
        assert_eq!(changed, ["crlf.txt", "new/deep.txt"], "{turn}");
        fixture.run_successfully(&["reject", "--since", "turn"]);
        assert!(!fixture.workspace().join("new/deep.txt").exists());
    }
}

#[test]
fn acpx_own_file_methods_differ_only_in_known_steps() {
    let fixture = CliFixture::new();
    let results = run_agent_in_acpx(&fixture, &agent_commands()[0], &[]);
    let pairs = agent_steps(&fixture.workspace()).into_iter().zip(&results).enumerate();
    let differ: Vec<usize> =
        pairs.filter(|(_, ((_, expected), found))| *found != expected).map(|(number, _)| number).collect();
    assert_eq!(differ, STEPS_DIFFERING_IN_ACPX, "{results:?}");
}

#[test]
fn all_messages_match_the_official_schemas() {
    let fixture = CliFixture::new();
    let path = |name: &str| fixture.workspace().join(name);
    let mut messages: Vec<(&str, &str, Value)> = Vec::new();
    let mut proxy = AcpProxyTestProcess::start(&fixture.state(), &["--durability", "fast"]);
    let params = json!({ "protocolVersion": 1, "clientCapabilities": { "terminal": true } });
    proxy.send_from_editor(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
    messages.push(("v1", "InitializeRequest", proxy.receive_at_agent()["params"].clone()));
    proxy.send_from_agent(&json!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": 1 } }));
    messages.push(("v1", "InitializeResponse", proxy.receive_at_editor()["result"].clone()));
    let session = json!({ "cwd": fixture.workspace(), "mcpServers": [] });
    messages.push(("v1", "NewSessionRequest", proxy.new_session("s1", &session)["params"].clone()));
    messages.push(("v1", "Error", proxy.new_session_error(&json!({ "cwd": "relative" }))["error"].clone()));
    messages.push(("v1", "WriteTextFileResponse", proxy.write_text_file(&path("a.txt"), FILE_TEXT)["result"].clone()));
    messages.push(("v1", "ReadTextFileResponse", proxy.read_text_file(&path("a.txt"))["result"].clone()));
    fs::write(path("crlf.txt"), "a\r\n").unwrap();
    let response = proxy.write_text_file(&path("crlf.txt"), "b\n")["result"].clone();
    assert_eq!(response["_meta"]["stead"]["lineEndings"], "crlf");
    messages.push(("v1", "WriteTextFileResponse", response));
    let params = json!({ "sessionId": "s1" });
    proxy.send_from_editor(&json!({ "jsonrpc": "2.0", "id": 5, "method": "_stead/review", "params": params }));
    let review = proxy.receive_at_editor();
    assert_eq!(review["result"]["files"].as_array().map(Vec::len), Some(2), "{review}");
    for file in review["result"]["files"].as_array().unwrap() {
        messages.push(("v1", "ToolCallContent", file["content"][0].clone()));
    }
    for wrong in [path("none"), "relative".into(), "/etc/passwd".into(), fixture.workspace()] {
        messages.push(("v1", "Error", proxy.read_text_file(&wrong)["error"].clone()));
    }
    proxy.send_from_agent(&json!({ "jsonrpc": "2.0", "id": 9, "method": 7 }));
    let refused = proxy.receive_at_agent();
    messages.push(("v1", "RequestId", refused["id"].clone()));
    messages.push(("v1", "Error", refused["error"].clone()));
    for old in [None, Some("old\n")] {
        if let Some(old) = old {
            fs::create_dir_all(path(".git")).unwrap();
            fs::write(path(".git/config"), old).unwrap();
        }
        let id =
            proxy.send_agent_request("fs/write_text_file", json!({ "path": path(".git/config"), "content": "new\n" }));
        let question = proxy.receive_at_editor();
        messages.push(("v1", "RequestId", question["id"].clone()));
        messages.push(("v1", "RequestPermissionRequest", question["params"].clone()));
        proxy
            .send_from_agent(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": id } }));
        messages.push(("v1", "Error", proxy.receive_at_agent()["error"].clone()));
        messages.push(("v1", "CancelRequestNotification", proxy.receive_at_editor()["params"].clone()));
    }
    let mut proxy = AcpProxyTestProcess::start(&fixture.state(), &["--durability", "fast"]);
    let info = json!({ "name": "t", "version": "1" });
    let params = json!({ "protocolVersion": 2, "info": info, "capabilities": {} });
    proxy.send_from_editor(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
    messages.push(("v2", "InitializeRequest", proxy.receive_at_agent()["params"].clone()));
    let capabilities = json!({ "session": { "mcp": { "stdio": {} } } });
    proxy.send_from_agent(&json!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": 2, "info": info, "capabilities": capabilities } }));
    proxy.receive_at_editor();
    let setup = proxy.new_session("s1", &json!({ "cwd": fixture.workspace() }))["params"].clone();
    assert_eq!(setup["mcpServers"].as_array().map(Vec::len), Some(1));
    messages.push(("v2", "NewSessionRequest", setup));
    validate_against_schemas(&messages);
}

fn validate_against_schemas(messages: &[(&str, &str, Value)]) {
    let schemas = npm_packages_directory().join("node_modules/@agentclientprotocol/sdk/schema");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("peers").join("validate.py");
    let mut judge =
        Command::new(python_binary()).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = judge.stdin.take().unwrap();
    for (version, definition, value) in messages {
        let schema = schemas.join(version).join("schema.json");
        writeln!(input, "{}", json!([schema, definition, value])).unwrap();
    }
    drop(input);
    let output = judge.wait_with_output().unwrap();
    let verdict = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{verdict}");
    assert_eq!(verdict.trim(), format!("{} values, 0 wrong", messages.len()));
}
