//! The real binary behind HTTP: `stead serve` on a port of its own, one process for each principal, asked by plain
//! requests, by JSON-RPC or by MCP; and at the end the journal that they left. A client of a few lines, because what is
//! attacked is the server.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    mcp::reply_of,
    subject::{Asked, Ledger, Opening, Reply, Running, Subject},
};

/// How long a reply may take before the server counts as hung.
const REPLY_WAIT: Duration = Duration::from_secs(30);
/// The revision of MCP that needs no session.
const MCP_VERSION: &str = "2026-07-28";

/// By which of its addresses the server is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpWay {
    /// `POST /v1/{operation}`.
    Rest,
    /// `POST /rpc`.
    Rpc,
    /// `POST /mcp`.
    Mcp,
}

/// Servers of one workspace.
pub struct HttpSubject {
    binary: PathBuf,
    opening: Opening,
    way: HttpWay,
    servers: BTreeMap<String, Server>,
}

impl HttpSubject {
    /// The binary at this path, serving what the opening says.
    pub fn open(binary: &Path, opening: &Opening, way: HttpWay) -> io::Result<Box<dyn Subject>> {
        let mut subject =
            Self { binary: binary.to_owned(), opening: opening.clone(), way, servers: BTreeMap::new() };
        // The state directory is there before a case begins, as it is with every other subject.
        subject.server("agent:tester")?;
        Ok(Box::new(subject))
    }

    fn server(&mut self, principal: &str) -> io::Result<&mut Server> {
        if !self.servers.contains_key(principal) {
            let server = Server::start(&self.binary, &self.opening, principal)?;
            self.servers.insert(principal.to_owned(), server);
        }
        self.servers.get_mut(principal).ok_or_else(|| io::Error::other("no server"))
    }
}

/// One process, and a connection to it.
struct Server {
    child: Running,
    connection: BufReader<TcpStream>,
    host: String,
    token: String,
}

impl Server {
    fn start(binary: &Path, opening: &Opening, principal: &str) -> io::Result<Self> {
        let mut command = opening.server(binary, "serve", principal);
        command.args(["--listen", "127.0.0.1:0", "--print-token"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = Running(command.spawn()?);
        let said = child.0.stderr.take().ok_or_else(|| io::Error::other("no output"))?;
        let (mut host, mut token) = (None, None);
        let mut lines = BufReader::new(said).lines();
        while host.is_none() || token.is_none() {
            let line = lines.next().ok_or_else(|| io::Error::other("the server ended"))??;
            let word = |after: &str| {
                let (_, rest) = line.split_once(after)?;
                rest.split([' ', ',']).next().map(|word| word.trim_end_matches(':').to_owned())
            };
            host = host.or_else(|| word("on http://"));
            token = token.or_else(|| word("(ends with it): "));
        }
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let (host, token) = (host.unwrap_or_default(), token.unwrap_or_default());
        let stream = TcpStream::connect(&host)?;
        stream.set_read_timeout(Some(REPLY_WAIT))?;
        stream.set_nodelay(true)?;
        Ok(Self { child, connection: BufReader::new(stream), host, token })
    }

    /// Posts a body and reads the answer's.
    fn post(&mut self, path: &str, headers: &str, body: &[u8]) -> io::Result<Vec<u8>> {
        let (host, token, length) = (&self.host, &self.token, body.len());
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n{headers}\r\n"
        );
        let stream = self.connection.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        stream.flush()?;
        let mut length = Some(0);
        loop {
            let line = self.line()?;
            let (name, value) = line.split_once(": ").unwrap_or((&line, ""));
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = Some(value.parse().map_err(io::Error::other)?),
                "transfer-encoding" => length = None,
                "" => break,
                _ => {}
            }
        }
        match length {
            Some(length) => self.bytes(length),
            None => self.chunks(),
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.connection.read_line(&mut line)? == 0 {
            return Err(io::Error::other("the server closed"));
        }
        Ok(line.trim_end().to_owned())
    }

    fn bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.connection.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// A body in chunks: the answer is the last event of its stream.
    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let length = usize::from_str_radix(&self.line()?, 16).map_err(io::Error::other)?;
            body.extend(self.bytes(length)?);
            self.line()?;
            if length == 0 {
                break;
            }
        }
        let text = String::from_utf8(body).map_err(io::Error::other)?;
        let mut events = text.lines().filter_map(|line| line.strip_prefix("data: "));
        events.next_back().map(|event| event.as_bytes().to_vec()).ok_or_else(|| io::Error::other("no event"))
    }

    /// Tells it to end and waits until it has.
    fn end(mut self) -> io::Result<()> {
        // A connection that stays open would be waited for.
        self.connection.get_ref().shutdown(Shutdown::Both)?;
        let told = Command::new("kill").arg(self.child.0.id().to_string()).status()?;
        if !told.success() {
            return Err(io::Error::other("the server cannot be told to end"));
        }
        self.child.ended()
    }
}

/// The parameters of a call by a protocol that wraps them, arguments as they are.
fn wrapped(method: &str, before: &str, arguments: &[u8], after: &str) -> Vec<u8> {
    let mut message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":{method},"params":{before}"#).into_bytes();
    message.extend_from_slice(arguments);
    message.extend_from_slice(after.as_bytes());
    message.push(b'}');
    message
}

impl Subject for HttpSubject {
    fn ask(&mut self, asked: &Asked) -> io::Result<Reply> {
        let arguments = match &asked.raw {
            Some(raw) => raw.clone(),
            None => serde_json::to_vec(&asked.arguments)?,
        };
        let operation = serde_json::to_string(&asked.operation)?;
        let way = self.way;
        let server = self.server(&asked.principal)?;
        match way {
            HttpWay::Rest => {
                let answer = server.post(&format!("/v1/{}", asked.operation), "", &arguments)?;
                Ok(plain(&serde_json::from_slice(&answer)?))
            }
            HttpWay::Rpc => {
                let answer = server.post("/rpc", "", &wrapped(&operation, "", &arguments, ""))?;
                let answer: Value = serde_json::from_slice(&answer)?;
                Ok(plain(answer.get("result").or_else(|| answer.pointer("/error/data")).unwrap_or(&answer)))
            }
            HttpWay::Mcp => {
                let meta = json!({
                    "io.modelcontextprotocol/protocolVersion": MCP_VERSION,
                    "io.modelcontextprotocol/clientInfo": { "name": "attack", "version": "1" },
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
                let before = format!(r#"{{"_meta":{meta},"name":{operation},"arguments":"#);
                let headers = format!(
                    "MCP-Protocol-Version: {MCP_VERSION}\r\nMcp-Method: tools/call\r\nMcp-Name: {}\r\n",
                    asked.operation
                );
                let message = wrapped("\"tools/call\"", &before, &arguments, "}");
                let answer = server.post("/mcp", &headers, &message)?;
                Ok(reply_of(&serde_json::from_slice(&answer)?))
            }
        }
    }

    fn finish(self: Box<Self>, workspace: &Path) -> io::Result<Option<Ledger>> {
        let Self { opening, servers, .. } = *self;
        for (_, server) in servers {
            server.end()?;
        }
        opening.ledger(workspace).map(Some)
    }
}

/// The engine's own object, or its failure.
fn plain(object: &Value) -> Reply {
    let refused = object.get("error").map(|error| {
        let kind = error.get("kind").and_then(Value::as_str).unwrap_or("protocol");
        // What was refused before it became a call.
        if kind == "refused" { "protocol".to_owned() } else { kind.to_owned() }
    });
    // Plain requests have no text twin; what people read is the detail.
    let text = object.pointer("/error/detail").and_then(Value::as_str).unwrap_or_default().to_owned();
    Reply { refused, json: object.clone(), text }
}
