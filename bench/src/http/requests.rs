//! The servers of the HTTP benchmark, each with the request that reads one kilobyte.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    http_client::{BenchHttpClientConnection, HttpServerProcess},
    workspace_files::{SMALL_FILE, generate_text},
};

/// The MCP version of the requests, which has no sessions.
const MCP_VERSION: &str = "2026-07-28";
const START_WAIT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The npm package and version of the published server that stead is compared with.
pub(super) const PUBLISHED_SERVER: (&str, &str) = ("@agent-infra/mcp-server-filesystem", "1.2.29");

/// An HTTP request of the benchmark, and a text that its response must contain.
pub(super) struct BenchHttpRequest {
    pub(super) name: &'static str,
    pub(super) address: String,
    pub(super) request: Vec<u8>,
    pub(super) expected_content: Vec<u8>,
}

pub(super) fn start_published_server(workspace: &Path) -> Result<HttpServerProcess, String> {
    let script = crate::reference_server::install_package(PUBLISHED_SERVER)?.join("dist").join("index.cjs");
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = free.map_err(|error| error.to_string())?.to_string();
    let port = address.rsplit(':').next().unwrap_or_default();
    let mut command = Command::new("node");
    command.arg(script).arg("--allowed-directories").arg(workspace);
    command.args(["--host", "127.0.0.1", "--port", port]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = HttpServerProcess::start(&mut command, address.clone())?;
    let deadline = Instant::now() + START_WAIT;
    while BenchHttpClientConnection::open(&server.address).is_err() {
        if Instant::now() > deadline {
            return Err("the published server does not listen".to_owned());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(server)
}

/// Starts a minimal HTTP server that uses the same libraries as stead.
pub(super) fn start_bare_server() -> Result<HttpServerProcess, String> {
    let build = ["build", "--release", "--locked", "-p", "stead-protocols", "--example", "bare"];
    crate::run_program(Command::new("cargo").args(build))?;
    let built: PathBuf = crate::needs::target_directory().join("release").join("examples").join("bare");
    HttpServerProcess::start_with_first_line_address(&mut Command::new(built))
}

pub(super) fn rest_request(server: &HttpServerProcess) -> BenchHttpRequest {
    let line = format!("GET /v1/files/{}", SMALL_FILE.name);
    build_request("stead, GET /v1/files", server, &line, "", "", generate_text(SMALL_FILE.bytes, 0).into_bytes())
}

/// The body of an MCP request that reads the small file, for a server without sessions.
pub(super) fn mcp_body() -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MCP_VERSION,
        "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    tool_call_body("read", &json!({ "path": SMALL_FILE.name }), Some(&meta))
}

pub(super) fn mcp_request(server: &HttpServerProcess) -> BenchHttpRequest {
    let headers = format!("MCP-Protocol-Version: {MCP_VERSION}\r\nMcp-Method: tools/call\r\nMcp-Name: read\r\n");
    build_request("stead, MCP", server, "POST /mcp", &headers, &mcp_body(), file_as_json())
}

pub(super) fn published_server_request(server: &HttpServerProcess, workspace: &Path) -> BenchHttpRequest {
    let path = workspace.join(SMALL_FILE.name);
    let body = tool_call_body("read_file", &json!({ "path": path.to_string_lossy() }), None);
    build_request("peer, MCP", server, "POST /mcp", "", &body, file_as_json())
}

pub(super) fn bare_get_request(server: &HttpServerProcess) -> BenchHttpRequest {
    build_request("bare axum, GET", server, "GET /", "", "", vec![b'x'; SMALL_FILE.bytes])
}

/// The same request as [`bare_get_request`], but as `POST` with a body that the server reads.
pub(super) fn bare_post_request(server: &HttpServerProcess) -> BenchHttpRequest {
    build_request("bare axum, POST", server, "POST /", "", &mcp_body(), vec![b'x'; SMALL_FILE.bytes])
}

fn build_request(
    name: &'static str,
    server: &HttpServerProcess,
    line: &str,
    headers: &str,
    body: &str,
    contains: Vec<u8>,
) -> BenchHttpRequest {
    let request = format!(
        "{}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{headers}\
         Content-Length: {}\r\n\r\n{body}",
        server.request_head(line),
        body.len()
    );
    BenchHttpRequest {
        name,
        address: server.address.clone(),
        request: request.into_bytes(),
        expected_content: contains,
    }
}

fn tool_call_body(tool: &str, arguments: &Value, meta: Option<&Value>) -> String {
    let mut params = json!({ "name": tool, "arguments": arguments });
    if let Some(meta) = meta {
        params["_meta"] = meta.clone();
    }
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

/// The content of the small file, escaped as in a JSON string.
fn file_as_json() -> Vec<u8> {
    let whole = Value::from(generate_text(SMALL_FILE.bytes, 0)).to_string();
    whole.trim_matches('"').as_bytes().to_vec()
}
