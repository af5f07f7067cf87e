//! An editor that tells over JSON-RPC what it has open, and an agent behind the proxy: two processes, one workspace.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use serde_json::{Value, json};

use super::puppet::Puppet;
use crate::bench::Bench;

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

/// A person's editor.
struct Editor {
    child: Child,
    says: ChildStdin,
    hears: BufReader<ChildStdout>,
}

impl Editor {
    fn start(bench: &Bench) -> Self {
        let mut command = bench.command(&["rpc", "--principal", "user:ann", "--durability", "fast"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (says, hears) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, says, hears }
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        writeln!(self.says, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
            .unwrap();
        let mut line = String::new();
        self.hears.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].clone()
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn typing_is_seen_until_it_is_closed_and_kept_when_the_editor_crashes() {
    let bench = Bench::new();
    let file = bench.workspace().join("a.txt");
    fs::write(&file, LINES).unwrap();
    let params = json!({ "cwd": bench.workspace(), "mcpServers": [] });
    let mut puppet = Puppet::with_session(&bench.state(), &["--durability", "fast"], &params);
    let mut editor = Editor::start(&bench);
    let typed = LINES.replace('9', "nine");
    editor.call("buffer.open", json!({ "path": "a.txt", "text": typed }));
    assert_eq!(puppet.read(&file)["result"]["content"], typed);
    // A write elsewhere goes to the disk without what is not saved, and into the buffer.
    assert!(puppet.write(&file, &typed.replace('1', "one")).get("result").is_some());
    assert_eq!(fs::read_to_string(&file).unwrap(), LINES.replace('1', "one"));
    let held = editor.call("buffer.list", json!({ "path": "a.txt" }));
    assert_eq!(held["buffers"][0]["text"], typed.replace('1', "one"), "{held}");
    // Where the person types it is refused, and both stay as they are.
    let refused = puppet.write(&file, &typed.replace("nine", "NINE"));
    assert!(refused["error"]["data"].as_str().unwrap().starts_with("conflict: "), "{refused}");
    assert_eq!(fs::read_to_string(&file).unwrap(), LINES.replace('1', "one"));
    // Closed without saving: what was typed is gone.
    editor.call("buffer.close", json!({ "path": "a.txt" }));
    assert_eq!(puppet.read(&file)["result"]["content"], LINES.replace('1', "one"));
    // A crash: what was typed is no longer read, and not lost.
    editor.call("buffer.open", json!({ "path": "a.txt", "text": LINES.replace('5', "five") }));
    assert_eq!(puppet.read(&file)["result"]["content"], LINES.replace('5', "five"));
    drop(editor);
    assert_eq!(puppet.read(&file)["result"]["content"], LINES.replace('1', "one"));
    let mut editor = Editor::start(&bench);
    editor.call("buffer.open", json!({ "path": "a.txt" }));
    assert_eq!(puppet.read(&file)["result"]["content"], LINES.replace('5', "five"));
}
