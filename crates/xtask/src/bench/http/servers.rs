//! The servers that are measured, each with the requests that read one kilobyte from it.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    bench::files::{SMALL, text},
    web::{Connection, Server},
};

/// The protocol version of requests that need no session.
const MCP_VERSION: &str = "2026-07-28";
/// How long a server may take until it listens.
const START_WAIT: Duration = Duration::from_secs(30);
/// How often it is looked whether it does.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The published server that is measured beside ours, by name and version.
pub(super) const PEER: (&str, &str) = ("@agent-infra/mcp-server-filesystem", "1.2.29");

/// One request, and what its answer must contain.
pub(super) struct Reading {
    pub(super) name: &'static str,
    pub(super) address: String,
    pub(super) request: Vec<u8>,
    pub(super) contains: Vec<u8>,
}

/// The published one, on a workspace of its own.
pub(super) fn peer(workspace: &Path) -> Result<Server, String> {
    let script = crate::bench::reference::package(PEER)?.join("dist").join("index.cjs");
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = free.map_err(|error| error.to_string())?.to_string();
    let port = address.rsplit(':').next().unwrap_or_default();
    let mut command = Command::new("node");
    command.arg(script).arg("--allowed-directories").arg(workspace);
    command.args(["--host", "127.0.0.1", "--port", port]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Server::start(&mut command, address.clone())?;
    let deadline = Instant::now() + START_WAIT;
    while Connection::open(&server.address).is_err() {
        if Instant::now() > deadline {
            return Err("the published server does not listen".to_owned());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(server)
}

/// The least that the same libraries do.
pub(super) fn bare() -> Result<Server, String> {
    let build = ["build", "--release", "--locked", "-p", "faces", "--example", "bare"];
    crate::succeed(Command::new("cargo").args(build))?;
    let built: PathBuf = crate::needs::target_directory().join("release").join("examples").join("bare");
    Server::saying(&mut Command::new(built))
}

/// A plain request for a file.
pub(super) fn plain(server: &Server) -> Reading {
    let line = format!("GET /v1/files/{}", SMALL.name);
    reading("stead, GET /v1/files", server, &line, "", "", text(SMALL.bytes, 0).into_bytes())
}

/// The body of the same over MCP, without a session.
pub(super) fn asked() -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MCP_VERSION,
        "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    call("read", &json!({ "path": SMALL.name }), Some(&meta))
}

/// The same over MCP.
pub(super) fn mcp(server: &Server) -> Reading {
    let headers =
        format!("MCP-Protocol-Version: {MCP_VERSION}\r\nMcp-Method: tools/call\r\nMcp-Name: read\r\n");
    reading("stead, MCP", server, "POST /mcp", &headers, &asked(), escaped())
}

/// What the published server is asked.
pub(super) fn published(server: &Server, workspace: &Path) -> Reading {
    let path = workspace.join(SMALL.name);
    let body = call("read_file", &json!({ "path": path.to_string_lossy() }), None);
    reading("peer, MCP", server, "POST /mcp", "", &body, escaped())
}

/// A kilobyte for nothing.
pub(super) fn fetched(server: &Server) -> Reading {
    reading("bare axum, GET", server, "GET /", "", "", vec![b'x'; SMALL.bytes])
}

/// A kilobyte for a body that is read.
pub(super) fn posted(server: &Server) -> Reading {
    reading("bare axum, POST", server, "POST /", "", &asked(), vec![b'x'; SMALL.bytes])
}

fn reading(
    name: &'static str,
    server: &Server,
    line: &str,
    headers: &str,
    body: &str,
    contains: Vec<u8>,
) -> Reading {
    let request = format!(
        "{}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{headers}\
         Content-Length: {}\r\n\r\n{body}",
        server.head(line),
        body.len()
    );
    Reading { name, address: server.address.clone(), request: request.into_bytes(), contains }
}

/// A call of a tool.
fn call(tool: &str, arguments: &Value, meta: Option<&Value>) -> String {
    let mut params = json!({ "name": tool, "arguments": arguments });
    if let Some(meta) = meta {
        params["_meta"] = meta.clone();
    }
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

/// The file as it stands in JSON.
fn escaped() -> Vec<u8> {
    let whole = Value::from(text(SMALL.bytes, 0)).to_string();
    whole.trim_matches('"').as_bytes().to_vec()
}
