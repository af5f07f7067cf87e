//! The binary over MCP as a subject of attacks, with one `stead mcp` process per principal.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{ChildStdin, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::subject::{
    AttackSubject, AttackSubjectReply, AttackSubjectRequest, ServerChild, SubjectJournal, SubjectOptions,
};

const REPLY_WAIT: Duration = Duration::from_secs(30);
/// A protocol error means that the message was rejected before it became a call.
const PROTOCOL_ERROR_KIND: &str = "protocol";

/// The `stead mcp` processes of one workspace, one per principal.
pub struct McpAttackSubject {
    binary: PathBuf,
    options: SubjectOptions,
    servers: BTreeMap<String, AttackMcpServer>,
}

struct AttackMcpServer {
    child: ServerChild,
    input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    next_id: u64,
}

impl McpAttackSubject {
    /// Starts the binary at this path as an MCP server of the given workspace.
    pub fn open(binary: &Path, opening: &SubjectOptions) -> io::Result<Box<dyn AttackSubject>> {
        let mut subject = Self { binary: binary.to_owned(), options: opening.clone(), servers: BTreeMap::new() };
        // The state directory must exist before a case begins, as with every other subject.
        subject.server_for("agent:tester")?;
        Ok(Box::new(subject))
    }

    fn server_for(&mut self, principal: &str) -> io::Result<&mut AttackMcpServer> {
        if !self.servers.contains_key(principal) {
            let server = AttackMcpServer::start(&self.binary, &self.options, principal)?;
            self.servers.insert(principal.to_owned(), server);
        }
        self.servers.get_mut(principal).ok_or_else(|| io::Error::other("no server"))
    }
}

impl AttackMcpServer {
    fn start(binary: &Path, opening: &SubjectOptions, principal: &str) -> io::Result<Self> {
        let mut command = opening.server_command(binary, "mcp", principal);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let output = child.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n') {
                let Ok(line) = line else { break };
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take();
        let mut server = Self { child: ServerChild(child), input, lines, next_id: 0 };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "attack", "version": "1" },
        });
        let answer = server.request("initialize", hello.to_string().as_bytes())?;
        if answer.get("result").is_none() {
            return Err(io::Error::other(format!("initialize: {answer}")));
        }
        server.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        Ok(server)
    }

    fn send(&mut self, line: &[u8]) -> io::Result<()> {
        let input = self.input.as_mut().ok_or_else(|| io::Error::other("closed"))?;
        input.write_all(line)?;
        input.write_all(b"\n")?;
        input.flush()
    }

    /// Sends one MCP request, with its parameters byte for byte, and waits for the response.
    fn request(&mut self, method: &str, params: &[u8]) -> io::Result<Value> {
        self.next_id += 1;
        let id = self.next_id;
        let mut line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":"#).into_bytes();
        line.extend_from_slice(params);
        line.push(b'}');
        self.send(&line)?;
        let deadline = Instant::now() + REPLY_WAIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).map_err(io::Error::other)?;
            let answer: Value = serde_json::from_slice(&line)?;
            // The response to a message that could not be parsed has no id.
            let unread = answer.get("id").is_none_or(Value::is_null) && answer.get("error").is_some();
            if unread || answer.get("id") == Some(&Value::from(id)) {
                return Ok(answer);
            }
        }
    }

    fn close(mut self) -> io::Result<()> {
        drop(self.input.take());
        self.child.wait_for_exit()
    }
}

impl AttackSubject for McpAttackSubject {
    fn send(&mut self, request: &AttackSubjectRequest) -> io::Result<AttackSubjectReply> {
        let arguments = match &request.raw {
            Some(raw) => raw.clone(),
            None => serde_json::to_vec(&request.arguments)?,
        };
        let mut params = b"{\"name\":".to_vec();
        params.extend(serde_json::to_vec(&request.operation)?);
        params.extend_from_slice(b",\"arguments\":");
        params.extend_from_slice(&arguments);
        params.push(b'}');
        let answer = self.server_for(&request.principal)?.request("tools/call", &params)?;
        Ok(reply_from_answer(&answer))
    }

    fn finish(self: Box<Self>, workspace: &Path) -> io::Result<Option<SubjectJournal>> {
        let Self { options: opening, servers, .. } = *self;
        for (_, server) in servers {
            server.close()?;
        }
        opening.read_journal(workspace).map(Some)
    }
}

pub(super) fn reply_from_answer(answer: &Value) -> AttackSubjectReply {
    if let Some(error) = answer.get("error") {
        let kind = error.pointer("/data/error/kind").and_then(Value::as_str).unwrap_or(PROTOCOL_ERROR_KIND);
        let text = error.get("message").and_then(Value::as_str).unwrap_or_default();
        return AttackSubjectReply { refusal: Some(kind.to_owned()), json: error.clone(), text: text.to_owned() };
    }
    let part = |pointer: &str| answer.pointer(pointer).cloned().unwrap_or(Value::Null);
    let json = part("/result/structuredContent");
    let text = part("/result/content/0/text").as_str().unwrap_or_default().to_owned();
    let failed = part("/result/isError") == Value::Bool(true);
    let kind = json.pointer("/error/kind").and_then(Value::as_str).unwrap_or("unnamed");
    AttackSubjectReply { refusal: failed.then(|| kind.to_owned()), json, text }
}
