//! The binary between an editor and an agent, both played by the test: the agent that is started is a pair of pipes.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// What says what it is told and tells what it is said. Its number goes to the third place, so that it can be ended.
const AGENT_SHELL_SCRIPT: &str = r#"echo $$ > "$2"; cat "$0" & exec cat > "$1""#;

pub(crate) struct AcpProcess {
    pub(crate) child: Child,
    pub(crate) editor_input: Option<ChildStdin>,
    pub(crate) editor_output: BufReader<ChildStdout>,
    pub(crate) agent_input: Option<File>,
    pub(crate) agent_output: BufReader<File>,
    pipes: TempDir,
    next_id: i64,
}

impl AcpProcess {
    /// Starts the binary with these flags. State goes to a place of the caller's.
    pub(crate) fn start(state: &Path, flags: &[&str]) -> Self {
        let pipes = tempfile::tempdir().unwrap();
        let pipe = |name: &str| pipes.path().join(name);
        let (said, heard) = (pipe("said"), pipe("heard"));
        for place in [&said, &heard] {
            assert!(Command::new("mkfifo").arg(place).status().unwrap().success());
        }
        let mut child = Command::new(env!("CARGO_BIN_EXE_stead"))
            .arg("acp")
            .args(flags)
            .args(["--", "sh", "-c", AGENT_SHELL_SCRIPT])
            .args([&said, &heard, &pipe("number")])
            .env("XDG_STATE_HOME", state)
            .env("USER", "tester")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let agent_says = OpenOptions::new().write(true).open(&said).unwrap();
        let agent_hears = File::open(&heard).unwrap();
        Self {
            editor_input: child.stdin.take(),
            editor_output: BufReader::new(child.stdout.take().unwrap()),
            child,
            agent_input: Some(agent_says),
            agent_output: BufReader::new(agent_hears),
            pipes,
            next_id: 100,
        }
    }

    /// The same, opened, with a session `s1`.
    pub(crate) fn with_session(state: &Path, flags: &[&str], params: &Value) -> Self {
        let mut puppet = Self::start(state, flags);
        puppet.initialize();
        puppet.new_session("s1", params);
        puppet
    }

    pub(crate) fn initialize(&mut self) {
        self.initialize_with(&json!({}));
    }

    /// Opens for an editor that offers this.
    pub(crate) fn initialize_with(&mut self, offers: &Value) {
        let params = json!({ "protocolVersion": 1, "clientCapabilities": offers });
        self.send_from_editor(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
        assert_eq!(self.receive_at_agent()["params"]["clientCapabilities"]["fs"]["readTextFile"], true);
        self.send_from_agent(&json!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": 1 } }));
        self.receive_at_editor();
    }

    /// Begins a session; what the agent heard.
    pub(crate) fn new_session(&mut self, id: &str, params: &Value) -> Value {
        self.send_from_editor(&json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params }));
        let heard = self.receive_at_agent();
        self.send_from_agent(&json!({ "jsonrpc": "2.0", "id": 1, "result": { "sessionId": id } }));
        self.receive_at_editor();
        heard
    }

    /// The answer to the editor's own try to begin a session, which goes no further.
    pub(crate) fn new_session_error(&mut self, params: &Value) -> Value {
        self.send_from_editor(&json!({ "jsonrpc": "2.0", "id": 2, "method": "session/new", "params": params }));
        self.receive_at_editor()
    }

    pub(crate) fn send_from_editor(&mut self, message: &Value) {
        writeln!(self.editor_input.as_mut().unwrap(), "{message}").unwrap();
    }

    pub(crate) fn send_from_agent(&mut self, message: &Value) {
        writeln!(self.agent_input.as_mut().unwrap(), "{message}").unwrap();
    }

    pub(crate) fn receive_at_editor(&mut self) -> Value {
        read_json_line(&mut self.editor_output)
    }

    pub(crate) fn receive_at_agent(&mut self) -> Value {
        read_json_line(&mut self.agent_output)
    }

    /// The agent calls a method, in the session `s1` where none is named.
    pub(crate) fn send_agent_request(&mut self, method: &str, mut params: Value) -> i64 {
        self.next_id += 1;
        if params.get("sessionId").is_none() {
            params["sessionId"] = "s1".into();
        }
        let id = self.next_id;
        self.send_from_agent(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub(crate) fn call_from_agent(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_agent_request(method, params);
        let answer = self.receive_at_agent();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub(crate) fn read_text_file(&mut self, path: &Path) -> Value {
        self.call_from_agent("fs/read_text_file", json!({ "path": path }))
    }

    pub(crate) fn write_text_file(&mut self, path: &Path, content: &str) -> Value {
        self.call_from_agent("fs/write_text_file", json!({ "path": path, "content": content }))
    }

    /// Ends the agent as nobody expects it.
    pub(crate) fn kill_agent(&self) {
        let number = std::fs::read_to_string(self.pipes.path().join("number")).unwrap();
        assert!(Command::new("kill").args(["-9", number.trim()]).status().unwrap().success());
    }
}

impl Drop for AcpProcess {
    fn drop(&mut self) {
        // A test that failed leaves nothing running.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn read_json_line(from: &mut impl BufRead) -> Value {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    serde_json::from_str(&line).expect(&line)
}
