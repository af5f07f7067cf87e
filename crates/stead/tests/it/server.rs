//! `stead mcp` as a client starts it: over pipes, and over socket pairs as some clients make them.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Child, Stdio},
};

use serde_json::{Value, json};

use crate::bench::Bench;

struct Client<W, R> {
    child: Child,
    output: W,
    input: BufReader<R>,
    next_id: u64,
}

impl<W: Write, R: Read> Client<W, R> {
    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        writeln!(
            self.output,
            "{}",
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
        )
        .unwrap();
        let mut line = String::new();
        self.input.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).expect("only protocol on standard output");
        assert_eq!(answer["id"], id);
        answer["result"].clone()
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    fn converse(mut self, bench: &Bench) {
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
        assert_eq!(self.request("initialize", &hello)["serverInfo"]["name"], "stead");
        let definition = faces::definition::Definition::stead().unwrap();
        let listed = |one: &&faces::definition::Operation| one.listed == faces::definition::Listed::Yes;
        let shown = definition.operations.iter().filter(listed).count();
        assert_eq!(self.request("tools/list", &json!({}))["tools"].as_array().map(Vec::len), Some(shown));
        let written = self.call("write", &json!({ "path": "a.txt", "content": "a\n", "base": "" }));
        assert_eq!(written["isError"], false, "{written}");
        assert_eq!(std::fs::read(bench.workspace().join("a.txt")).unwrap(), b"a\n");
        assert_eq!(self.call("read", &json!({ "path": "a.txt" }))["structuredContent"]["content"], "a\n");
        let refused =
            self.call("write", &json!({ "path": ".git/hooks/pre-commit", "content": "x", "base": "" }));
        assert_eq!(refused["structuredContent"]["error"]["kind"], "approval_pending", "{refused}");
        let Self { mut child, output, mut input, .. } = self;
        drop(output);
        let mut rest = String::new();
        input.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        assert_eq!(child.wait().unwrap().code(), Some(0));
        let log = bench.ok(&["log", "--principal", "agent:mcp"]).text();
        assert_eq!(log.lines().count(), 3, "{log}");
    }
}

#[test]
fn it_serves_over_pipes() {
    let bench = Bench::new();
    let mut command = bench.command(&["mcp"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let output = child.stdin.take().unwrap();
    let input = BufReader::new(child.stdout.take().unwrap());
    Client { child, output, input, next_id: 0 }.converse(&bench);
}

#[test]
fn it_serves_over_sockets() {
    let bench = Bench::new();
    let (near_in, far_in) = UnixStream::pair().unwrap();
    let (near_out, far_out) = UnixStream::pair().unwrap();
    let mut command = bench.command(&["mcp"]);
    command.stdin(OwnedFd::from(far_in)).stdout(OwnedFd::from(far_out)).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    // The command holds the server's ends; without them the near ends see when the server is gone.
    drop(command);
    Client { child, output: near_in, input: BufReader::new(near_out), next_id: 0 }.converse(&bench);
}

#[test]
fn a_client_that_never_speaks_is_no_failure() {
    let bench = Bench::new();
    let ran = bench.run(&["mcp", "--durability", "fast"]);
    assert_eq!((ran.code, ran.text()), (0, String::new()), "{}", ran.err);
    assert!(ran.err.contains("durability fast"), "{}", ran.err);
}

#[test]
fn requests_from_a_file_are_answered() {
    let bench = Bench::new();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } } });
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "list", "arguments": {} } });
    let script = bench.place.path().join("script");
    std::fs::write(&script, format!("{hello}\n{list}\n")).unwrap();
    let output = bench.command(&["mcp"]).stdin(std::fs::File::open(&script).unwrap()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 2);
}
