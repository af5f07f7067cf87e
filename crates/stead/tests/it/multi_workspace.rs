//! `stead serve --workspaces` as a platform uses it: a workspace and a token for every agent, and nobody sees another's.

mod isolation;

use std::{
    io::{Read, Write},
    net::TcpStream,
    ops::Deref,
    os::unix::net::UnixStream,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::server_process::{self, LINE_TIMEOUT};

/// What the token of a run follows.
const TOKEN_MARKER: &str = "(valid until the server stops): ";

/// A server over an estate.
pub(crate) struct RegistryServerProcess {
    process: server_process::ServerProcess,
    /// What administers.
    pub(crate) token: String,
}

impl Deref for RegistryServerProcess {
    type Target = server_process::ServerProcess;

    fn deref(&self) -> &Self::Target {
        &self.process
    }
}

/// The command line on the estate of a place.
pub(crate) fn stead_command(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(server_process::BINARY);
    command
        .args(arguments)
        .arg("--workspaces")
        .arg(place.join("estate"))
        .current_dir(place)
        .env("USER", "tester")
        .env("XDG_STATE_HOME", place.join("elsewhere"));
    command
}

impl RegistryServerProcess {
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), flags)
    }

    pub(crate) fn start_in(place: tempfile::TempDir, flags: &[&str]) -> Self {
        let mut command = stead_command(place.path(), &["serve", "--print-token"]);
        command.args(flags);
        let process = server_process::ServerProcess::start_command(place, command, stead_command);
        // Through a socket nobody needs one.
        let line = match process.address.as_str() {
            "" => String::new(),
            _ => process.wait_for_line(|line| line.contains(TOKEN_MARKER)),
        };
        let token = line.split_once(TOKEN_MARKER).map_or("", |(_, token)| token.trim()).to_owned();
        Self { process, token }
    }

    /// One request on a connection of its own.
    pub(crate) fn send_request(&self, token: &str, line: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LINE_TIMEOUT)).unwrap();
        exchange_http(stream, &self.address, token, line, body)
    }

    /// The same where the answer is an object.
    pub(crate) fn send_json_request(&self, token: &str, line: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) = self.send_request(token, line, body.as_bytes());
        (status, serde_json::from_slice(&answer).unwrap_or(Value::Null))
    }

    /// A new workspace and a token of it.
    pub(crate) fn create_workspace(&self, name: &str) -> String {
        let made = self.send_json_request(
            &self.token,
            "POST /v1/workspaces",
            &json!({ "name": name, "lasting": "ephemeral" }),
        );
        assert_eq!(made.0, 201, "{made:?}");
        let line = format!("POST /v1/workspaces/{name}/tokens");
        let made = self.send_json_request(&self.token, &line, &json!({ "principal": format!("agent:{name}") }));
        assert_eq!(made.0, 201, "{made:?}");
        made.1["token"].as_str().unwrap().to_owned()
    }

    /// Asks it to end, as a service manager does.
    pub(crate) fn terminate(self) {
        self.process.terminate();
    }
}

fn exchange_http(mut stream: impl Read + Write, host: &str, token: &str, line: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let authorization = if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
    write!(
        stream,
        "{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
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
    let server = RegistryServerProcess::start(&["--listen", "127.0.0.1:0"]);
    let (one, two) = (server.create_workspace("one"), server.create_workspace("two"));
    assert_eq!(server.send_request(&one, "PUT /v1/files/a.txt", b"of one").0, 201);
    assert_eq!(server.send_request(&one, "GET /v1/files/a.txt", b""), (200, b"of one".to_vec()));
    assert_eq!(server.send_request(&two, "GET /v1/files/a.txt", b"").0, 404);
    // Who administers opens no files, and who works in a workspace administers nothing, whatever it names.
    assert_eq!(server.send_request(&server.token, "GET /v1/files/a.txt", b"").0, 403);
    let refused: Vec<(u16, Vec<u8>)> = ["two", "nobody", "%2e%2e"]
        .iter()
        .map(|name| server.send_request(&one, &format!("GET /v1/workspaces/{name}"), b""))
        .collect();
    assert!(refused.iter().all(|answer| *answer == refused[0] && answer.0 == 403), "{refused:?}");
    assert_eq!(server.send_request(&one, "GET /metrics", b"").0, 403);
    assert_eq!(server.send_request(&server.token, "GET /metrics", b"").0, 200);
    // An unknown token, one of an unknown id, and one with a wrong secret are told the same.
    let (most, last) = one.split_at(one.len() - 1);
    let wrong = format!("{most}{}", if last == "0" { "1" } else { "0" });
    let strangers: Vec<(u16, Vec<u8>)> = ["stead_0_0", &wrong, "x", "stead_0123456789abcdef_"]
        .iter()
        .map(|token| server.send_request(token, "GET /v1/files/a.txt", b""))
        .collect();
    assert!(strangers.iter().all(|answer| *answer == strangers[0] && answer.0 == 401), "{strangers:?}");
    let told = server.send_json_request(&server.token, "GET /v1/workspaces/one", &Value::Null).1;
    assert_eq!((&told["files"], &told["state"]), (&json!(1), &json!("open")));
    let listed = server.send_json_request(&server.token, "GET /v1/workspaces?limit=1", &Value::Null).1;
    assert_eq!(listed["workspaces"][0]["name"], "one");
    let cursor = listed["cursor"].as_str().unwrap();
    let rest = server.send_json_request(&server.token, &format!("GET /v1/workspaces?cursor={cursor}"), &Value::Null).1;
    assert_eq!((&rest["workspaces"][0]["name"], &rest["truncated"]), (&json!("two"), &json!(false)));
    assert_eq!(server.send_json_request(&server.token, "DELETE /v1/workspaces/one", &Value::Null).0, 200);
    assert_eq!(server.send_request(&one, "GET /v1/files/a.txt", b""), strangers[0].clone());
    assert_eq!(server.send_json_request(&server.token, "POST /v1/workspaces", &json!({ "name": "../x" })).0, 400);
    assert_eq!(server.send_json_request(&server.token, "POST /v1/workspaces", &json!({ "name": "two" })).0, 409);
    server.terminate();
}

#[test]
fn listing_a_missing_registry_creates_nothing() {
    let place = tempfile::tempdir().unwrap();
    for arguments in [
        &["workspace", "list"][..],
        &["workspace", "show", "one"],
        &["workspace", "destroy", "one"],
        &["token", "list", "--estate"],
        &["token", "create", "--workspace-name", "one", "--principal", "agent:a"],
    ] {
        let ran = stead_command(place.path(), arguments).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.code() == Some(1) && said.contains("there are no workspaces in"), "{said}");
        assert!(!place.path().join("estate").exists(), "{arguments:?}");
    }
}

#[test]
fn cli_works_beside_a_running_server() {
    let server = RegistryServerProcess::start(&["--listen", "127.0.0.1:0"]);
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
    let steward = server.run_cli(&["token", "create", "--estate", "--principal", "user:platform"]);
    let listed = server.send_json_request(steward.trim(), "GET /v1/workspaces", &Value::Null).1;
    assert_eq!(listed["workspaces"][0]["name"], "again");
    let place = server.directory.path().join("estate/estate");
    let mut verify = Command::new(server_process::BINARY);
    verify.args(["log", "verify", "--workspace"]).arg(place.join("files")).arg("--state").arg(place.join("state"));
    assert!(verify.output().unwrap().status.success());
    server.terminate();
}

#[test]
fn workspace_is_forked_exported_imported_and_destroyed() {
    let server = RegistryServerProcess::start(&["--listen", "127.0.0.1:0"]);
    let one = server.create_workspace("one");
    assert_eq!(server.send_request(&one, "PUT /v1/files/d/a.txt", b"carried").0, 201);
    let forked = server.send_json_request(&server.token, "POST /v1/workspaces/one/fork", &json!({ "name": "fork" }));
    assert_eq!((forked.0, &forked.1["origin"]["files"]), (201, &json!(1)), "{forked:?}");
    let (status, archive) = server.send_request(&server.token, "GET /v1/workspaces/fork/export", b"");
    assert_eq!(status, 200);
    let archive = decode_chunked(&archive);
    assert_eq!(archive.len() % 512, 0);
    let import = "PUT /v1/workspaces/copy/import?lasting=ephemeral&label=a%20copy";
    let made = server.send_request(&server.token, import, &archive);
    assert_eq!(made.0, 201, "{}", String::from_utf8_lossy(&made.1));
    let token = server.run_cli(&["token", "create", "--workspace-name", "copy", "--principal", "agent:a"]);
    assert_eq!(server.send_request(token.trim(), "GET /v1/files/d/a.txt", b""), (200, b"carried".to_vec()));
    assert_eq!(server.send_request(&server.token, import, &archive).0, 409);
    assert_eq!(server.send_request(&server.token, "PUT /v1/workspaces/bad/import", &archive[..700]).0, 400);
    assert_eq!(server.send_request(&server.token, "GET /v1/workspaces/nobody/export", b"").0, 404);
    assert_eq!(server.send_request(&one, "GET /v1/workspaces/one/export", b"").0, 403);
    // The same by the command line, into another estate.
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

/// A body that came in pieces.
fn decode_chunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        whole.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[end + 4 + size..];
    }
    whole
}

/// Processes make and end one name at the same time, and some are killed on the way.
#[test]
fn racing_and_killed_processes_leave_the_registry_consistent() {
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let start = |arguments: &[&str]| {
        stead_command(place.path(), arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    for round in 0..6 {
        let mut makers: Vec<Child> = (0..3).map(|_| start(&["workspace", "create", "one", "--ephemeral"])).collect();
        let made = makers.iter_mut().map(|maker| maker.wait().unwrap()).filter(ExitStatus::success).count();
        assert_eq!(made, 1, "round {round}");
        let mut enders: Vec<Child> = (0..3).map(|_| start(&["workspace", "destroy", "one"])).collect();
        let ended = enders.iter_mut().map(|ender| ender.wait().unwrap()).filter(ExitStatus::success).count();
        assert_eq!(ended, 1, "round {round}");
    }
    for round in 0..12_u64 {
        let mut victim = start(&["workspace", "create", &format!("victim-{round}")]);
        std::thread::sleep(Duration::from_millis(round * 3));
        victim.kill().unwrap();
        victim.wait().unwrap();
        let name = format!("victim-{round}");
        // Whether it was made or not, the name can be had and given back.
        start(&["workspace", "create", &name]).wait().unwrap();
        let mut victim = start(&["workspace", "destroy", &name]);
        std::thread::sleep(Duration::from_millis(round * 3));
        victim.kill().unwrap();
        victim.wait().unwrap();
    }
    let listed = |flag: &[&str]| {
        let output = stead_command(place.path(), &[&["workspace", "list", "--json"], flag].concat()).output().unwrap();
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
        listed["workspaces"].as_array().unwrap().len()
    };
    let lying = |of: &str| std::fs::read_dir(place.path().join("estate").join(of)).unwrap().count();
    let (ready, trash) = (listed(&[]), listed(&["--trash"]));
    assert_eq!((lying("workspaces"), lying("trash")), (ready, trash));
    assert!(ready + trash >= 12);
}

#[test]
fn same_user_administers_over_the_socket() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("socket");
    let server = RegistryServerProcess::start(&["--socket", path.to_str().unwrap()]);
    let ask = |token: &str, line: &str, body: &str| {
        let stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(LINE_TIMEOUT)).unwrap();
        exchange_http(stream, "localhost", token, line, body.as_bytes())
    };
    assert_eq!(ask("", "POST /v1/workspaces", r#"{"name":"one"}"#).0, 201);
    let made = ask("", "POST /v1/workspaces/one/tokens", r#"{"principal":"agent:one"}"#);
    let made: Value = serde_json::from_slice(&made.1).unwrap();
    assert_eq!(ask(made["token"].as_str().unwrap(), "PUT /v1/files/a", "x").0, 201);
    assert_eq!(ask("", "GET /v1/files/a", "").0, 403);
    let line = format!("DELETE /v1/workspaces/one/tokens/{}", made["id"].as_str().unwrap());
    assert_eq!(ask("", &line, "").0, 200);
    assert_eq!(ask(made["token"].as_str().unwrap(), "GET /v1/files/a", "").0, 401);
    server.terminate();
}

#[test]
fn single_workspace_server_has_no_workspace_admin() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("socket");
    let server = server_process::ServerProcess::start(&["--socket", path.to_str().unwrap()]);
    let stream = UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(LINE_TIMEOUT)).unwrap();
    assert_eq!(exchange_http(stream, "localhost", "", "GET /v1/workspaces", b"").0, 404);
    server.terminate();
}
