//! A client that is connected to a server process and speaks JSON-RPC, with one message per line.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
};

use serde_json::{Value, json};

use crate::wait::WAIT_TIMEOUT;

/// A server process and the client's end of its connection. A method panics if the server does not answer as the name
/// of the method says; dropping the fixture kills the server.
pub struct SessionFixture {
    /// The server process.
    pub child: Child,
    /// Returns the client's result for a request of the server, by method; `None` leaves the request unanswered.
    pub answer_server: fn(&str) -> Option<Value>,
    output: Option<Box<dyn Write + Send>>,
    lines: Receiver<String>,
    other_messages: Vec<Value>,
    next_id: u64,
}

impl SessionFixture {
    /// Starts a server with pipes as its standard input and output.
    pub fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the server starts");
        let (output, input) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        Self::over_streams(child, output, input)
    }

    /// Connects to a server by these streams.
    pub fn over_streams(child: Child, output: impl Write + Send + 'static, input: impl Read + Send + 'static) -> Self {
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(input).lines().map_while(Result::ok);
            lines.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
        });
        let output: Box<dyn Write + Send> = Box::new(output);
        let answer_server = |_: &str| None;
        Self { child, answer_server, output: Some(output), lines, other_messages: Vec::new(), next_id: 0 }
    }

    /// Initializes an MCP session, and returns the server's result.
    #[track_caller]
    pub fn initialize(&mut self, capabilities: &Value) -> Value {
        let client = json!({ "name": "c", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": client });
        let result = self.request_ok("initialize", &params);
        self.notify("notifications/initialized", &json!({}));
        result
    }

    /// Sends a message.
    #[track_caller]
    pub fn send(&mut self, message: &Value) {
        self.send_raw(&message.to_string());
    }

    /// Sends a line that need not be a message.
    #[track_caller]
    pub fn send_raw(&mut self, line: &str) {
        writeln!(self.output.as_mut().expect("an open connection"), "{line}").expect("the server reads");
    }

    /// Sends a notification.
    #[track_caller]
    pub fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Waits for the next message of the server.
    #[track_caller]
    pub fn receive(&mut self) -> Value {
        let line = self.lines.recv_timeout(WAIT_TIMEOUT).expect("the server sends a message in time");
        serde_json::from_str(&line).expect("every line is a message")
    }

    /// Sends a request, and returns the whole response.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.receive();
            match message["method"].as_str() {
                None if message["id"] == id => return message,
                None => {}
                Some(method) => {
                    if let Some(result) = (self.answer_server)(method) {
                        self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
                        continue;
                    }
                }
            }
            self.other_messages.push(message);
        }
    }

    /// Sends a request that succeeds, and returns its result.
    #[track_caller]
    pub fn request_ok(&mut self, method: &str, params: &Value) -> Value {
        let mut response = self.request(method, params);
        assert!(response.get("result").is_some(), "{method} {params}: {response}");
        response["result"].take()
    }

    /// Calls a tool over MCP, and returns the whole response.
    #[track_caller]
    pub fn call_tool(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// Ends the session, after which the server must exit with success. Returns the messages that neither a request nor
    /// [`SessionFixture::receive`] returned.
    #[track_caller]
    pub fn close(mut self) -> Vec<Value> {
        drop(self.output.take());
        assert_eq!(self.child.wait().expect("the server exits").code(), Some(0));
        let rest = self.lines.iter().map(|line| serde_json::from_str(&line).expect("every line is a message"));
        let mut messages = std::mem::take(&mut self.other_messages);
        messages.extend(rest);
        messages
    }
}

impl Drop for SessionFixture {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
