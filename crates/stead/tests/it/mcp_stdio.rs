//! Tests `stead mcp` over pipes, and over the socket pairs that some clients use.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Child, Stdio},
};

use serde_json::{Value, json};

use crate::cli_fixture::CliFixture;

struct McpStdioClient<W, R> {
    child: Child,
    output: W,
    input: BufReader<R>,
    next_id: u64,
}

impl<W: Write, R: Read> McpStdioClient<W, R> {
    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        writeln!(self.output, "{}", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).unwrap();
        let mut line = String::new();
        self.input.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).expect("standard output has only protocol messages");
        assert_eq!(answer["id"], id);
        answer["result"].clone()
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    fn run_conversation(mut self, fixture: &CliFixture) {
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
        assert_eq!(self.request("initialize", &hello)["serverInfo"]["name"], "stead");
        let definition = stead_protocols::definition::DialectDefinition::native().unwrap();
        let listed = |one: &&stead_protocols::definition::ToolDefinition| {
            one.listed == stead_protocols::definition::ToolVisibility::Listed
        };
        let shown = definition.operations.iter().filter(listed).count();
        assert_eq!(self.request("tools/list", &json!({}))["tools"].as_array().map(Vec::len), Some(shown));
        let written = self.call("write", &json!({ "path": "a.txt", "content": "a\n", "base": "" }));
        assert_eq!(written["isError"], false, "{written}");
        assert_eq!(std::fs::read(fixture.workspace().join("a.txt")).unwrap(), b"a\n");
        assert_eq!(self.call("read", &json!({ "path": "a.txt" }))["structuredContent"]["content"], "a\n");
        let refused = self.call("write", &json!({ "path": ".git/hooks/pre-commit", "content": "x", "base": "" }));
        assert_eq!(refused["structuredContent"]["error"]["kind"], "approval_pending", "{refused}");
        let Self { mut child, output, mut input, .. } = self;
        drop(output);
        let mut rest = String::new();
        input.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        assert_eq!(child.wait().unwrap().code(), Some(0));
        let log = fixture.run_successfully(&["log", "--principal", "agent:mcp"]).text();
        assert_eq!(log.lines().count(), 3, "{log}");
    }
}

#[test]
fn mcp_is_served_over_pipes() {
    let fixture = CliFixture::new();
    let mut command = fixture.command(&["mcp"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let output = child.stdin.take().unwrap();
    let input = BufReader::new(child.stdout.take().unwrap());
    McpStdioClient { child, output, input, next_id: 0 }.run_conversation(&fixture);
}

#[test]
fn mcp_is_served_over_sockets() {
    let fixture = CliFixture::new();
    let (near_in, far_in) = UnixStream::pair().unwrap();
    let (near_out, far_out) = UnixStream::pair().unwrap();
    let mut command = fixture.command(&["mcp"]);
    command.stdin(OwnedFd::from(far_in)).stdout(OwnedFd::from(far_out)).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    // Dropping the command closes its copies of the server's ends, so the client notices when the server exits.
    drop(command);
    McpStdioClient { child, output: near_in, input: BufReader::new(near_out), next_id: 0 }.run_conversation(&fixture);
}

#[test]
fn silent_client_is_not_an_error() {
    let fixture = CliFixture::new();
    let ran = fixture.run(&["mcp", "--durability", "fast"]);
    assert_eq!((ran.code, ran.text()), (0, String::new()), "{}", ran.stderr);
    assert!(ran.stderr.contains("--durability fast"), "{}", ran.stderr);
}

#[test]
fn requests_redirected_from_a_file_are_answered() {
    let fixture = CliFixture::new();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } } });
    let list =
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "list", "arguments": {} } });
    let script = fixture.directory.path().join("script");
    std::fs::write(&script, format!("{hello}\n{list}\n")).unwrap();
    let output = fixture.command(&["mcp"]).stdin(std::fs::File::open(&script).unwrap()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 2);
}
