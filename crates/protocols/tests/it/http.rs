//! Tests of the HTTP server with clients, browsers and attackers over a real connection.

mod attacks;
mod event_stream;
mod fairness;
mod files;
mod oauth_metadata;
mod pins;
mod tls;
mod websocket;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::Value;
use stead_engine::{Caller, CallerAccessMode, Engine, Grants, Principal};
use stead_protocols::{
    dialect::DialectWorkspaceRootPath,
    http::{
        AllowedHosts, AuthError, AuthenticatedClientIdentity, Authenticator, Credential, HttpListener,
        HttpServerConfig, HttpServerOptions, HttpServerState, UnauthenticatedPerAddressLimit, opener_for,
    },
};
use testkit::MemoryWorkspace;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

const TEST_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

/// Authenticates test tokens. The test token `two` opens the second workspace, `reader` can only read, and `ann`
/// belongs to a person.
pub(crate) struct TestAuthenticator {
    pub(crate) workspaces: [Arc<MemoryWorkspace>; 2],
    pub(crate) is_revoked: AtomicBool,
}

impl Authenticator for TestAuthenticator {
    fn authenticate(&self, credential: Credential<'_>) -> Result<AuthenticatedClientIdentity, AuthError> {
        let Credential::Token(token) = credential else { return Err(AuthError::UnknownToken) };
        let (index, grants) = match token {
            "one" if !self.is_revoked.load(Ordering::Relaxed) => (0, Grants::default()),
            "two" => (1, Grants::default()),
            // These tokens are another principal in the first workspace, a second token of the first principal, and a
            // person.
            "other" | "one-more" | "ann" => (0, Grants::default()),
            "reader" => (0, Grants { access: CallerAccessMode::ReadOnly, ..Grants::default() }),
            _ => return Err(AuthError::UnknownToken),
        };
        let name = token.trim_end_matches("-more").to_owned();
        let principal = if name == "ann" { Principal::User(name) } else { Principal::Agent(name) };
        let mut caller = Caller::new(principal, format!("http-{token}"), "http");
        caller.grants = grants;
        let engine = Engine::new(self.workspaces[index].clone());
        let location = DialectWorkspaceRootPath { root: MemoryWorkspace::ROOT.to_owned() };
        let (client_key, workspace_id, opener) = (token.to_owned(), index.to_string(), opener_for(engine));
        Ok(AuthenticatedClientIdentity { client_key, caller, workspace_id, location, opener })
    }

    fn is_still_valid(&self, key: &str) -> bool {
        key != "one" || !self.is_revoked.load(Ordering::Relaxed)
    }
}

pub(crate) struct TestHttpServer {
    pub(crate) authenticator: Arc<TestAuthenticator>,
    pub(crate) state: Arc<HttpServerState>,
    pub(crate) port: u16,
    serve_task: JoinHandle<()>,
}

#[derive(Debug)]
pub(crate) struct TestHttpResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl TestHttpResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl TestHttpServer {
    pub(crate) async fn start() -> Self {
        Self::start_with_listener(HttpListener::Tcp, AllowedHosts::loopback).await
    }

    pub(crate) async fn start_with_listener(
        kind: impl FnOnce(TcpListener) -> HttpListener,
        names: impl FnOnce(u16) -> AllowedHosts,
    ) -> Self {
        Self::start_with_options(kind, names, HttpServerOptions::default()).await
    }

    pub(crate) async fn start_with_options(
        kind: impl FnOnce(TcpListener) -> HttpListener,
        names: impl FnOnce(u16) -> AllowedHosts,
        options: HttpServerOptions,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let authenticator = Arc::new(TestAuthenticator {
            workspaces: [Arc::new(MemoryWorkspace::new()), Arc::new(MemoryWorkspace::new())],
            is_revoked: AtomicBool::new(false),
        });
        let config = HttpServerConfig {
            location: DialectWorkspaceRootPath { root: MemoryWorkspace::ROOT.to_owned() },
            mcp_dialects: vec!["stead".to_owned()],
            rpc_dialects: vec!["stead".to_owned(), "krux".to_owned()],
            workspace_calls_max: 64,
        };
        let state = HttpServerState::with_options(authenticator.clone(), names(port), config, options);
        let serve_task = tokio::spawn(stead_protocols::http::serve(state.clone(), kind(listener)));
        Self { authenticator, state, port, serve_task }
    }

    /// Starts a server without a limit on unauthenticated connections per address. Tests with many connections could
    /// exceed the limit on unauthenticated connections under load.
    pub(crate) async fn start_without_address_limit() -> Self {
        let per_address_limit = UnauthenticatedPerAddressLimit::Unlimited;
        let options = HttpServerOptions { per_address_limit, ..HttpServerOptions::default() };
        Self::start_with_options(HttpListener::Tcp, AllowedHosts::loopback, options).await
    }

    pub(crate) async fn connect(&self) -> BufReader<TcpStream> {
        BufReader::new(TcpStream::connect(("127.0.0.1", self.port)).await.unwrap())
    }

    pub(crate) async fn send_raw(&self, bytes: &[u8]) -> TestHttpResponse {
        let mut connection = self.connect().await;
        connection.get_mut().write_all(bytes).await.unwrap();
        read_response(&mut connection).await
    }

    pub(crate) async fn request(&self, token: &str, line: &str, headers: &[&str], body: &[u8]) -> TestHttpResponse {
        let mut head = format!("{line} HTTP/1.1\r\nHost: localhost:{}\r\n", self.port);
        if !token.is_empty() {
            head.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        for header in headers {
            head.push_str(&format!("{header}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        self.send_raw(&[head.as_bytes(), body].concat()).await
    }

    pub(crate) async fn wait_for_metric(&self, line: &str) {
        let line = format!("{line}\n");
        let found = async {
            while !String::from_utf8_lossy(&self.request("reader", "GET /metrics", &[], b"").await.body).contains(&line)
            {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, found).await.expect("the metric is reached");
    }

    pub(crate) async fn call_operation(&self, token: &str, operation: &str, arguments: &Value) -> TestHttpResponse {
        let line = format!("POST /v1/{operation}");
        self.request(token, &line, &["Content-Type: application/json"], arguments.to_string().as_bytes()).await
    }

    pub(crate) async fn shut_down(self) {
        self.state.shut_down();
        tokio::time::timeout(TEST_TIMEOUT, self.serve_task).await.expect("the server shuts down").unwrap();
    }
}

pub(crate) async fn read_head(connection: &mut BufReader<TcpStream>) -> TestHttpResponse {
    let mut response = TestHttpResponse { status: 0, headers: Vec::new(), body: Vec::new() };
    loop {
        let mut line = String::new();
        let read = tokio::time::timeout(TEST_TIMEOUT, connection.read_line(&mut line));
        assert!(read.await.expect("a response").unwrap() > 0, "the server closed after {response:?}");
        let line = line.trim_end();
        match (line.split_once(' '), line.split_once(": ")) {
            (Some(("HTTP/1.1", rest)), _) => response.status = rest[..3].parse().unwrap(),
            (_, Some((name, value))) => response.headers.push((name.to_ascii_lowercase(), value.to_owned())),
            _ if line.is_empty() => return response,
            _ => panic!("{line}"),
        }
    }
}

pub(crate) async fn read_response(connection: &mut BufReader<TcpStream>) -> TestHttpResponse {
    let mut response = read_head(connection).await;
    let length = response.header("content-length").map_or(0, |length| length.parse().unwrap());
    if response.status != 304 {
        response.body = vec![0; length];
        connection.read_exact(&mut response.body).await.unwrap();
    }
    response
}
