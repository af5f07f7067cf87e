//! Runs `stead acp` between an editor and an agent, both played by the test. The agent process only copies data between
//! the proxy and two pipes of the test.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The agent's shell script writes its process id to a file, so that a test can kill the agent.
const AGENT_SHELL_SCRIPT: &str = r#"echo $$ > "$2"; cat "$0" & exec cat > "$1""#;

pub(crate) struct AcpProxyTestProcess {
    pub(crate) child: Child,
    pub(crate) editor_input: Option<ChildStdin>,
    pub(crate) editor_output: BufReader<ChildStdout>,
    pub(crate) agent_input: Option<File>,
    pub(crate) agent_output: BufReader<File>,
    pipes: TempDir,
    next_id: i64,
}

impl AcpProxyTestProcess {
    pub(crate) fn start(state: &Path, flags: &[&str]) -> Self {
        let pipes = tempfile::tempdir().unwrap();
        let pipe = |name: &str| pipes.path().join(name);
        let (agent_out, agent_in) = (pipe("out"), pipe("in"));
        for path in [&agent_out, &agent_in] {
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        }
        let mut child = Command::new(env!("CARGO_BIN_EXE_stead"))
            .arg("acp")
            .args(flags)
            .args(["--", "sh", "-c", AGENT_SHELL_SCRIPT])
            .args([&agent_out, &agent_in, &pipe("pid")])
            .env("XDG_STATE_HOME", state)
            .env("USER", "tester")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let agent_input = OpenOptions::new().write(true).open(&agent_out).unwrap();
        let agent_output = File::open(&agent_in).unwrap();
        Self {
            editor_input: child.stdin.take(),
            editor_output: BufReader::new(child.stdout.take().unwrap()),
            child,
            agent_input: Some(agent_input),
            agent_output: BufReader::new(agent_output),
            pipes,
            next_id: 100,
        }
    }

    pub(crate) fn with_session(state: &Path, flags: &[&str], params: &Value) -> Self {
        let mut proxy = Self::start(state, flags);
        proxy.initialize();
        proxy.new_session("s1", params);
        proxy
    }

    pub(crate) fn initialize(&mut self) {
        self.initialize_with(&json!({}));
    }

    pub(crate) fn initialize_with(&mut self, capabilities: &Value) {
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        self.send_from_editor(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
        assert_eq!(self.receive_at_agent()["params"]["clientCapabilities"]["fs"]["readTextFile"], true);
        self.send_from_agent(&json!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": 1 } }));
        self.receive_at_editor();
    }

    pub(crate) fn new_session(&mut self, id: &str, params: &Value) -> Value {
        self.send_from_editor(&json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params }));
        let received = self.receive_at_agent();
        self.send_from_agent(&json!({ "jsonrpc": "2.0", "id": 1, "result": { "sessionId": id } }));
        self.receive_at_editor();
        received
    }

    /// Requests an ACP session with parameters that the proxy rejects, and returns the error.
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

    /// Sends an ACP request of the agent, in the session `s1` if `params` names no session.
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

    pub(crate) fn kill_agent(&self) {
        let pid = std::fs::read_to_string(self.pipes.path().join("pid")).unwrap();
        assert!(Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success());
    }
}

impl Drop for AcpProxyTestProcess {
    fn drop(&mut self) {
        // A failed test must not leave the proxy process running.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn read_json_line(from: &mut impl BufRead) -> Value {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    serde_json::from_str(&line).expect(&line)
}
