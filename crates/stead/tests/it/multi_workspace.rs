//! Tests `stead serve --workspaces` with one workspace and one token per agent.

mod isolation;

use std::{
    io::{Read, Write},
    ops::Deref,
    os::unix::net::UnixStream,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use testkit::{http_client::TestHttpClient, wait::kill_after};

use crate::server_process::{self, LINE_TIMEOUT};

const TOKEN_MARKER: &str = "(valid until the server stops): ";

pub(crate) struct WorkspaceRegistryTestServer {
    process: server_process::ServerProcess,
    pub(crate) token: String,
}

impl Deref for WorkspaceRegistryTestServer {
    type Target = server_process::ServerProcess;

    fn deref(&self) -> &Self::Target {
        &self.process
    }
}

pub(crate) fn stead_command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(server_process::BINARY);
    command
        .args(arguments)
        .arg("--workspaces")
        .arg(directory.join("estate"))
        .current_dir(directory)
        .env("USER", "tester")
        .env("XDG_STATE_HOME", directory.join("elsewhere"));
    command
}

impl WorkspaceRegistryTestServer {
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), flags)
    }

    pub(crate) fn start_in(directory: tempfile::TempDir, flags: &[&str]) -> Self {
        let mut command = stead_command(directory.path(), &["serve", "--print-token"]);
        command.args(flags);
        let process = server_process::ServerProcess::start_command(directory, command, stead_command);
        // A client on the socket needs no token, so the server prints none.
        let line = match process.address.as_str() {
            "" => String::new(),
            _ => process.wait_for_line(|line| line.contains(TOKEN_MARKER)),
        };
        let token = line.split_once(TOKEN_MARKER).map_or("", |(_, token)| token.trim()).to_owned();
        Self { process, token }
    }

    pub(crate) fn send_request(&self, token: &str, line: &str, body: &[u8]) -> (u16, Vec<u8>) {
        TestHttpClient::new(&self.address).send_request(token, line, &[], body).unwrap()
    }

    pub(crate) fn send_json_request(&self, token: &str, line: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) = self.send_request(token, line, body.as_bytes());
        (status, serde_json::from_slice(&answer).unwrap_or(Value::Null))
    }

    pub(crate) fn create_workspace(&self, name: &str) -> String {
        let created = self.send_json_request(
            &self.token,
            "POST /v1/workspaces",
            &json!({ "name": name, "lasting": "ephemeral" }),
        );
        assert_eq!(created.0, 201, "{created:?}");
        let line = format!("POST /v1/workspaces/{name}/tokens");
        let created = self.send_json_request(&self.token, &line, &json!({ "principal": format!("agent:{name}") }));
        assert_eq!(created.0, 201, "{created:?}");
        created.1["token"].as_str().unwrap().to_owned()
    }

    pub(crate) fn terminate(self) {
        self.process.terminate();
    }
}

fn exchange_over_socket(mut stream: UnixStream, token: &str, line: &str, body: &[u8]) -> (u16, Vec<u8>) {
    stream.set_read_timeout(Some(LINE_TIMEOUT)).unwrap();
    let authorization = if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
    write!(
        stream,
        "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n{authorization}\r\n",
        body.len()
    )
    .unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    (head[9..12].parse().unwrap(), answer.split_off(end + 4))
}

#[test]
fn workspaces_are_created_used_and_destroyed_over_http() {
    let server = WorkspaceRegistryTestServer::start(&["--listen", "127.0.0.1:0"]);
    let (one, two) = (server.create_workspace("one"), server.create_workspace("two"));
    assert_eq!(server.send_request(&one, "PUT /v1/files/a.txt", b"of one").0, 201);
    assert_eq!(server.send_request(&one, "GET /v1/files/a.txt", b""), (200, b"of one".to_vec()));
    assert_eq!(server.send_request(&two, "GET /v1/files/a.txt", b"").0, 404);
    // An administrator token opens no files, and a workspace token administers nothing.
    assert_eq!(server.send_request(&server.token, "GET /v1/files/a.txt", b"").0, 403);
    let refused: Vec<(u16, Vec<u8>)> = ["two", "nobody", "%2e%2e"]
        .iter()
        .map(|name| server.send_request(&one, &format!("GET /v1/workspaces/{name}"), b""))
        .collect();
    assert!(refused.iter().all(|answer| *answer == refused[0] && answer.0 == 403), "{refused:?}");
    assert_eq!(server.send_request(&one, "GET /metrics", b"").0, 403);
    assert_eq!(server.send_request(&server.token, "GET /metrics", b"").0, 200);
    // The responses to a malformed token, an unknown id and a wrong secret must be identical.
    let (most, last) = one.split_at(one.len() - 1);
    let wrong = format!("{most}{}", if last == "0" { "1" } else { "0" });
    let unauthenticated: Vec<(u16, Vec<u8>)> = ["stead_0_0", &wrong, "x", "stead_0123456789abcdef_"]
        .iter()
        .map(|token| server.send_request(token, "GET /v1/files/a.txt", b""))
        .collect();
    assert!(
        unauthenticated.iter().all(|answer| *answer == unauthenticated[0] && answer.0 == 401),
        "{unauthenticated:?}"
    );
    let described = server.send_json_request(&server.token, "GET /v1/workspaces/one", &Value::Null).1;
    assert_eq!((&described["files"], &described["state"]), (&json!(1), &json!("open")));
    let listed = server.send_json_request(&server.token, "GET /v1/workspaces?limit=1", &Value::Null).1;
    assert_eq!(listed["workspaces"][0]["name"], "one");
    let cursor = listed["cursor"].as_str().unwrap();
    let rest = server.send_json_request(&server.token, &format!("GET /v1/workspaces?cursor={cursor}"), &Value::Null).1;
    assert_eq!((&rest["workspaces"][0]["name"], &rest["truncated"]), (&json!("two"), &json!(false)));
    assert_eq!(server.send_json_request(&server.token, "DELETE /v1/workspaces/one", &Value::Null).0, 200);
    assert_eq!(server.send_request(&one, "GET /v1/files/a.txt", b""), unauthenticated[0].clone());
    assert_eq!(server.send_json_request(&server.token, "POST /v1/workspaces", &json!({ "name": "../x" })).0, 400);
    assert_eq!(server.send_json_request(&server.token, "POST /v1/workspaces", &json!({ "name": "two" })).0, 409);
    server.terminate();
}

#[test]
fn listing_a_missing_registry_creates_nothing() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [
        &["workspace", "list"][..],
        &["workspace", "show", "one"],
        &["workspace", "destroy", "one"],
        &["token", "list", "--estate"],
        &["token", "create", "--workspace-name", "one", "--principal", "agent:a"],
    ] {
        let ran = stead_command(directory.path(), arguments).output().unwrap();
        let printed = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.code() == Some(1) && printed.contains("there are no workspaces in"), "{printed}");
        assert!(!directory.path().join("estate").exists(), "{arguments:?}");
    }
}

#[test]
fn cli_works_beside_a_running_server() {
    let server = WorkspaceRegistryTestServer::start(&["--listen", "127.0.0.1:0"]);
    server.run_cli(&["workspace", "create", "kept", "--label", "a person's"]);
    let token = server.run_cli(&["token", "create", "--workspace-name", "kept", "--principal", "agent:a"]);
    assert_eq!(server.send_request(token.trim(), "PUT /v1/files/a.txt", b"kept").0, 201);
    let shown = server.run_cli(&["workspace", "show", "kept"]);
    assert!(shown.contains("1 files, 4 bytes") && shown.contains("a person's"), "{shown}");
    server.run_cli(&["workspace", "destroy", "kept"]);
    assert_eq!(server.send_request(token.trim(), "GET /v1/files/a.txt", b"").0, 401);
    assert_eq!(server.run_cli(&["workspace", "list"]), "");
    assert!(server.run_cli(&["workspace", "list", "--trash"]).contains("kept"));
    server.run_cli(&["workspace", "restore", "kept", "--as", "again"]);
    let token = server.run_cli(&["token", "create", "--workspace-name", "again", "--principal", "agent:a"]);
    assert_eq!(server.send_request(token.trim(), "GET /v1/files/a.txt", b""), (200, b"kept".to_vec()));
    let admin_caller = server.run_cli(&["token", "create", "--estate", "--principal", "user:platform"]);
    let listed = server.send_json_request(admin_caller.trim(), "GET /v1/workspaces", &Value::Null).1;
    assert_eq!(listed["workspaces"][0]["name"], "again");
    let directory = server.directory.path().join("estate/estate");
    let mut verify = Command::new(server_process::BINARY);
    verify
        .args(["log", "verify", "--workspace"])
        .arg(directory.join("files"))
        .arg("--state")
        .arg(directory.join("state"));
    assert!(verify.output().unwrap().status.success());
    server.terminate();
}

#[test]
fn workspace_is_forked_exported_imported_and_destroyed() {
    let server = WorkspaceRegistryTestServer::start(&["--listen", "127.0.0.1:0"]);
    let one = server.create_workspace("one");
    assert_eq!(server.send_request(&one, "PUT /v1/files/d/a.txt", b"carried").0, 201);
    let forked = server.send_json_request(&server.token, "POST /v1/workspaces/one/fork", &json!({ "name": "fork" }));
    assert_eq!((forked.0, &forked.1["origin"]["files"]), (201, &json!(1)), "{forked:?}");
    let (status, archive) = server.send_request(&server.token, "GET /v1/workspaces/fork/export", b"");
    assert_eq!(status, 200);
    assert_eq!(archive.len() % 512, 0);
    let import = "PUT /v1/workspaces/copy/import?lasting=ephemeral&label=a%20copy";
    let created = server.send_request(&server.token, import, &archive);
    assert_eq!(created.0, 201, "{}", String::from_utf8_lossy(&created.1));
    let token = server.run_cli(&["token", "create", "--workspace-name", "copy", "--principal", "agent:a"]);
    assert_eq!(server.send_request(token.trim(), "GET /v1/files/d/a.txt", b""), (200, b"carried".to_vec()));
    assert_eq!(server.send_request(&server.token, import, &archive).0, 409);
    assert_eq!(server.send_request(&server.token, "PUT /v1/workspaces/bad/import", &archive[..700]).0, 400);
    assert_eq!(server.send_request(&server.token, "GET /v1/workspaces/nobody/export", b"").0, 404);
    assert_eq!(server.send_request(&one, "GET /v1/workspaces/one/export", b"").0, 403);
    let file = server.directory.path().join("one.tar");
    server.run_cli(&["workspace", "export", "one", "--output", file.to_str().unwrap()]);
    let other = tempfile::tempdir().unwrap();
    let imported = stead_command(other.path(), &["workspace", "import", "far", "--input", file.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    let shown = stead_command(other.path(), &["workspace", "show", "far", "--json"]).output().unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!((&shown["files"], &shown["bytes"]), (&json!(1), &json!(7)));
    for name in ["one", "fork", "copy"] {
        assert_eq!(server.send_request(&server.token, &format!("DELETE /v1/workspaces/{name}"), b"").0, 200);
    }
    assert_eq!(server.run_cli(&["workspace", "list"]), "");
    server.terminate();
}

#[test]
fn racing_and_killed_processes_leave_the_registry_consistent() {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let start = |arguments: &[&str]| {
        stead_command(directory.path(), arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    for round in 0..6 {
        let mut creators: Vec<Child> = (0..3).map(|_| start(&["workspace", "create", "one", "--ephemeral"])).collect();
        let created = creators.iter_mut().map(|maker| maker.wait().unwrap()).filter(ExitStatus::success).count();
        assert_eq!(created, 1, "round {round}");
        let mut destroyers: Vec<Child> = (0..3).map(|_| start(&["workspace", "destroy", "one"])).collect();
        let ended = destroyers.iter_mut().map(|ender| ender.wait().unwrap()).filter(ExitStatus::success).count();
        assert_eq!(ended, 1, "round {round}");
    }
    for round in 0..12_u64 {
        let mut victim = start(&["workspace", "create", &format!("victim-{round}")]);
        kill_after(&mut victim, Duration::from_millis(round * 3)).unwrap();
        let name = format!("victim-{round}");
        // The name can be used and freed again, whether or not the killed process created the workspace.
        start(&["workspace", "create", &name]).wait().unwrap();
        let mut victim = start(&["workspace", "destroy", &name]);
        kill_after(&mut victim, Duration::from_millis(round * 3)).unwrap();
    }
    let listed = |flag: &[&str]| {
        let output =
            stead_command(directory.path(), &[&["workspace", "list", "--json"], flag].concat()).output().unwrap();
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
        listed["workspaces"].as_array().unwrap().len()
    };
    let lying = |of: &str| std::fs::read_dir(directory.path().join("estate").join(of)).unwrap().count();
    let (ready, trash) = (listed(&[]), listed(&["--trash"]));
    assert_eq!((lying("workspaces"), lying("trash")), (ready, trash));
    assert!(ready + trash >= 12);
}

#[test]
fn same_user_administers_over_the_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let server = WorkspaceRegistryTestServer::start(&["--socket", path.to_str().unwrap()]);
    let ask = |token: &str, line: &str, body: &str| {
        exchange_over_socket(UnixStream::connect(&path).unwrap(), token, line, body.as_bytes())
    };
    assert_eq!(ask("", "POST /v1/workspaces", r#"{"name":"one"}"#).0, 201);
    let created = ask("", "POST /v1/workspaces/one/tokens", r#"{"principal":"agent:one"}"#);
    let created: Value = serde_json::from_slice(&created.1).unwrap();
    assert_eq!(ask(created["token"].as_str().unwrap(), "PUT /v1/files/a", "x").0, 201);
    assert_eq!(ask("", "GET /v1/files/a", "").0, 403);
    let line = format!("DELETE /v1/workspaces/one/tokens/{}", created["id"].as_str().unwrap());
    assert_eq!(ask("", &line, "").0, 200);
    assert_eq!(ask(created["token"].as_str().unwrap(), "GET /v1/files/a", "").0, 401);
    server.terminate();
}

#[test]
fn single_workspace_server_has_no_workspace_admin() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let server = server_process::ServerProcess::start(&["--socket", path.to_str().unwrap()]);
    let stream = UnixStream::connect(&path).unwrap();
    assert_eq!(exchange_over_socket(stream, "", "GET /v1/workspaces", b"").0, 404);
    server.terminate();
}
