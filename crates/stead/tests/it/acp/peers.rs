//! Peers by other hands: agents on the official Python and TypeScript libraries, the client acpx, the official schemas.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::puppet::Puppet;
use crate::{
    bench::Bench,
    inspector::{home, node},
    python::python,
};

/// The file that is read.
const TEXT: &str = "one\ntwo\nthree\nfour\n";

/// What an agent does, and what it must be answered, whatever library it is written on and whatever the editor offers.
fn steps(root: &Path) -> Vec<(Value, Value)> {
    let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let read = |more: Value| {
        let mut given = json!({ "path": path("a.txt") });
        given.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!(["read", given])
    };
    let text = |content: &str| json!({ "content": content });
    let missing =
        |path: &str| json!({ "code": -32002, "message": "Resource not found", "data": { "uri": path } });
    let beyond = "Attempting to read beyond the end of the file, line 5:0";
    vec![
        (json!(["offers", {}]), json!({ "reads": true, "writes": true, "servers": ["stead"] })),
        (read(json!({})), text(TEXT)),
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
    ]
}

/// Where acpx's own files differ: slices lose their last terminator, and beyond the end, a missing file and one outside
/// have no error of their own. In each the reference client and the protocol's text are followed instead.
const OTHERWISE_IN_ACPX: &[usize] = &[0, 3, 4, 6, 8, 9];

/// What the agent told after doing every step.
fn told(bench: &Bench, agent: &str, flags: &[&str]) -> Vec<Value> {
    let root = bench.workspace();
    fs::write(root.join("a.txt"), TEXT).unwrap();
    drop(fs::remove_dir_all(root.join("new")));
    let script: Vec<Value> = steps(&root).into_iter().map(|(step, _)| step).collect();
    let output = Command::new(node())
        .arg(home().join("node_modules").join(".bin").join("acpx"))
        .args(["--agent", agent, "--approve-all", "--format", "json"])
        .args(flags)
        .arg("--cwd")
        .arg(&root)
        .args(["exec", &Value::Array(script).to_string()])
        .env("HOME", bench.place.path())
        .env("XDG_STATE_HOME", bench.state())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut updates = lines.filter(|line| line["method"] == "session/update");
    let text = updates.next().map(|update| update["params"]["update"]["content"]["text"].clone());
    let text = text.unwrap_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned().into());
    serde_json::from_str(text.as_str().unwrap()).expect(&said)
}

fn agents() -> [String; 2] {
    let script = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("peers").join(name);
    let library = home().join("node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js");
    [
        format!("{} {}", python().display(), script("agent.py").display()),
        format!("{} {} {}", node().display(), script("agent.mjs").display(), library.display()),
    ]
}

#[test]
fn agents_on_both_official_libraries_are_served_behind_acpx() {
    for agent in agents() {
        // With files of its own, and without: the agent must not notice.
        for flags in [&["--no-fs"][..], &[]] {
            let bench = Bench::new();
            let through = format!("{} acp --durability fast -- {agent}", env!("CARGO_BIN_EXE_stead"));
            let told = told(&bench, &through, flags);
            for (number, ((step, expected), found)) in steps(&bench.workspace()).iter().zip(&told).enumerate()
            {
                assert_eq!(found, expected, "step {number} {step} of {agent} {flags:?}");
            }
            assert_eq!(fs::read_to_string(bench.workspace().join("new/deep.txt")).unwrap(), "x\n");
        }
    }
}

#[test]
fn where_acpx_s_own_files_differ_is_known() {
    let bench = Bench::new();
    let told = told(&bench, &agents()[0], &[]);
    let pairs = steps(&bench.workspace()).into_iter().zip(&told).enumerate();
    let differ: Vec<usize> =
        pairs.filter(|(_, ((_, expected), found))| *found != expected).map(|(number, _)| number).collect();
    assert_eq!(differ, OTHERWISE_IN_ACPX, "{told:?}");
}

#[test]
fn whatever_we_say_fits_the_official_schemas() {
    let bench = Bench::new();
    let path = |name: &str| bench.workspace().join(name);
    let mut said: Vec<(&str, &str, Value)> = Vec::new();
    let mut puppet = Puppet::start(&bench.state(), &["--durability", "fast"]);
    let params = json!({ "protocolVersion": 1, "clientCapabilities": { "terminal": true } });
    puppet.editor(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
    said.push(("v1", "InitializeRequest", puppet.agent_hears()["params"].clone()));
    puppet.agent(&json!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": 1 } }));
    puppet.editor_hears();
    let session = json!({ "cwd": bench.workspace(), "mcpServers": [] });
    said.push(("v1", "NewSessionRequest", puppet.session("s1", &session)["params"].clone()));
    said.push(("v1", "Error", puppet.refused_session(&json!({ "cwd": "relative" }))["error"].clone()));
    said.push(("v1", "WriteTextFileResponse", puppet.write(&path("a.txt"), TEXT)["result"].clone()));
    said.push(("v1", "ReadTextFileResponse", puppet.read(&path("a.txt"))["result"].clone()));
    for wrong in [path("none"), "relative".into(), "/etc/passwd".into(), bench.workspace()] {
        said.push(("v1", "Error", puppet.read(&wrong)["error"].clone()));
    }
    puppet.agent(&json!({ "jsonrpc": "2.0", "id": 9, "method": 7 }));
    let refused = puppet.agent_hears();
    said.push(("v1", "RequestId", refused["id"].clone()));
    said.push(("v1", "Error", refused["error"].clone()));
    for old in [None, Some("old\n")] {
        if let Some(old) = old {
            fs::create_dir_all(path(".git")).unwrap();
            fs::write(path(".git/config"), old).unwrap();
        }
        let id =
            puppet.send("fs/write_text_file", json!({ "path": path(".git/config"), "content": "new\n" }));
        let question = puppet.editor_hears();
        said.push(("v1", "RequestId", question["id"].clone()));
        said.push(("v1", "RequestPermissionRequest", question["params"].clone()));
        puppet
            .agent(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": id } }));
        said.push(("v1", "Error", puppet.agent_hears()["error"].clone()));
        said.push(("v1", "CancelRequestNotification", puppet.editor_hears()["params"].clone()));
    }
    let mut puppet = Puppet::start(&bench.state(), &["--durability", "fast"]);
    let info = json!({ "name": "t", "version": "1" });
    let params = json!({ "protocolVersion": 2, "info": info, "capabilities": {} });
    puppet.editor(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
    said.push(("v2", "InitializeRequest", puppet.agent_hears()["params"].clone()));
    let capabilities = json!({ "session": { "mcp": { "stdio": {} } } });
    puppet.agent(&json!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": 2, "info": info, "capabilities": capabilities } }));
    puppet.editor_hears();
    let setup = puppet.session("s1", &json!({ "cwd": bench.workspace() }))["params"].clone();
    assert_eq!(setup["mcpServers"].as_array().map(Vec::len), Some(1));
    said.push(("v2", "NewSessionRequest", setup));
    hold(&said);
}

/// Holds values against definitions of the official schemas.
fn hold(said: &[(&str, &str, Value)]) {
    let schemas = home().join("node_modules/@agentclientprotocol/sdk/schema");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("peers").join("validate.py");
    let mut judge =
        Command::new(python()).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = judge.stdin.take().unwrap();
    for (version, definition, value) in said {
        let schema = schemas.join(version).join("schema.json");
        writeln!(input, "{}", json!([schema, definition, value])).unwrap();
    }
    drop(input);
    let output = judge.wait_with_output().unwrap();
    let verdict = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{verdict}");
    assert_eq!(verdict.trim(), format!("{} values, 0 wrong", said.len()));
}
