//! The binary over HTTP as a subject of attacks, with one `stead serve` process per principal.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::{
    mcp::reply_from_answer,
    subject::{AttackSubject, AttackSubjectReply, AttackSubjectRequest, ServerChild, SubjectJournal, SubjectOptions},
};
use crate::http_client::TestHttpClient;

/// The MCP revision of attack requests over HTTP, which needs no MCP session.
const MCP_VERSION: &str = "2026-07-28";

/// The kind of HTTP endpoint to which attack requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttackHttpEndpointKind {
    /// Attack requests are sent to `POST /v1/{operation}`.
    Rest,
    /// Attack requests are sent to `POST /rpc`.
    Rpc,
    /// Attack requests are sent to `POST /mcp`.
    Mcp,
}

/// The `stead serve` processes of one workspace, one per principal.
pub struct HttpAttackSubject {
    binary: PathBuf,
    options: SubjectOptions,
    api: AttackHttpEndpointKind,
    servers: BTreeMap<String, AttackHttpServer>,
}

impl HttpAttackSubject {
    /// Starts the binary at this path as a server of the given workspace.
    pub fn open(
        binary: &Path,
        opening: &SubjectOptions,
        way: AttackHttpEndpointKind,
    ) -> io::Result<Box<dyn AttackSubject>> {
        let mut subject =
            Self { binary: binary.to_owned(), options: opening.clone(), api: way, servers: BTreeMap::new() };
        // The state directory must exist before a case begins, as with every other subject.
        subject.server_for("agent:tester")?;
        Ok(Box::new(subject))
    }

    fn server_for(&mut self, principal: &str) -> io::Result<&mut AttackHttpServer> {
        if !self.servers.contains_key(principal) {
            let server = AttackHttpServer::start(&self.binary, &self.options, principal)?;
            self.servers.insert(principal.to_owned(), server);
        }
        self.servers.get_mut(principal).ok_or_else(|| io::Error::other("no server"))
    }
}

struct AttackHttpServer {
    child: ServerChild,
    client: TestHttpClient,
    token: String,
}

impl AttackHttpServer {
    fn start(binary: &Path, opening: &SubjectOptions, principal: &str) -> io::Result<Self> {
        let mut command = opening.server_command(binary, "serve", principal);
        command.args(["--listen", "127.0.0.1:0", "--print-token"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = ServerChild(command.spawn()?);
        let stderr = child.0.stderr.take().ok_or_else(|| io::Error::other("no output"))?;
        let (mut host, mut token) = (None, None);
        let mut lines = BufReader::new(stderr).lines();
        while host.is_none() || token.is_none() {
            let line = lines.next().ok_or_else(|| io::Error::other("the server ended"))??;
            let word = |after: &str| {
                let (_, rest) = line.split_once(after)?;
                rest.split([' ', ',']).next().map(|word| word.trim_end_matches(':').to_owned())
            };
            host = host.or_else(|| word("on http://"));
            token = token.or_else(|| word("(valid until the server stops): "));
        }
        // The rest of the output is read, so that it cannot fill the pipe.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let (host, token) = (host.unwrap_or_default(), token.unwrap_or_default());
        Ok(Self { child, client: TestHttpClient::new(&host), token })
    }

    fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<Vec<u8>> {
        let headers = [headers, &[("Accept", "application/json, text/event-stream")]].concat();
        let (_, answer) = self.client.send_request(&self.token, &format!("POST {path}"), &headers, body)?;
        let mut events = answer.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: "));
        Ok(events.next_back().map_or_else(|| answer.clone(), <[u8]>::to_vec))
    }

    fn terminate(mut self) -> io::Result<()> {
        // The server would wait for an open connection.
        drop(self.client);
        let killed = Command::new("kill").arg(self.child.0.id().to_string()).status()?;
        if !killed.success() {
            return Err(io::Error::other("cannot send SIGTERM to the server"));
        }
        self.child.wait_for_exit()
    }
}

fn wrap_arguments(method: &str, before: &str, arguments: &[u8], after: &str) -> Vec<u8> {
    let mut message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":{method},"params":{before}"#).into_bytes();
    message.extend_from_slice(arguments);
    message.extend_from_slice(after.as_bytes());
    message.push(b'}');
    message
}

impl AttackSubject for HttpAttackSubject {
    fn send(&mut self, request: &AttackSubjectRequest) -> io::Result<AttackSubjectReply> {
        let arguments = match &request.raw {
            Some(raw) => raw.clone(),
            None => serde_json::to_vec(&request.arguments)?,
        };
        let operation = serde_json::to_string(&request.operation)?;
        let way = self.api;
        let server = self.server_for(&request.principal)?;
        match way {
            AttackHttpEndpointKind::Rest => {
                let answer = server.post(&format!("/v1/{}", request.operation), &[], &arguments)?;
                Ok(reply_from_object(&serde_json::from_slice(&answer)?))
            }
            AttackHttpEndpointKind::Rpc => {
                let answer = server.post("/rpc", &[], &wrap_arguments(&operation, "", &arguments, ""))?;
                let answer: Value = serde_json::from_slice(&answer)?;
                Ok(reply_from_object(answer.get("result").or_else(|| answer.pointer("/error/data")).unwrap_or(&answer)))
            }
            AttackHttpEndpointKind::Mcp => {
                let meta = json!({
                    "io.modelcontextprotocol/protocolVersion": MCP_VERSION,
                    "io.modelcontextprotocol/clientInfo": { "name": "attack", "version": "1" },
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
                let before = format!(r#"{{"_meta":{meta},"name":{operation},"arguments":"#);
                let headers = [
                    ("MCP-Protocol-Version", MCP_VERSION),
                    ("Mcp-Method", "tools/call"),
                    ("Mcp-Name", request.operation.as_str()),
                ];
                let message = wrap_arguments("\"tools/call\"", &before, &arguments, "}");
                let answer = server.post("/mcp", &headers, &message)?;
                Ok(reply_from_answer(&serde_json::from_slice(&answer)?))
            }
        }
    }

    fn finish(self: Box<Self>, workspace: &Path) -> io::Result<Option<SubjectJournal>> {
        let Self { options: opening, servers, .. } = *self;
        for (_, server) in servers {
            server.terminate()?;
        }
        opening.read_journal(workspace).map(Some)
    }
}

fn reply_from_object(object: &Value) -> AttackSubjectReply {
    let refused = object.get("error").map(|error| {
        let kind = error.get("kind").and_then(Value::as_str).unwrap_or("protocol");
        // The error kind `refused` means that the request was rejected before it became a call.
        if kind == "refused" { "protocol".to_owned() } else { kind.to_owned() }
    });
    // A plain HTTP response has no text for people except the detail of an error.
    let text = object.pointer("/error/detail").and_then(Value::as_str).unwrap_or_default().to_owned();
    AttackSubjectReply { refusal: refused, json: object.clone(), text }
}
