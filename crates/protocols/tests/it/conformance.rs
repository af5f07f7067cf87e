//! The official MCP conformance suite against the HTTP server. The suite's fixtures are an `McpExtension`.

mod catalogue;
mod extension;
mod input_required;
mod tools;

use std::sync::Arc;

use stead_engine::{Caller, Engine, Principal};
use stead_protocols::{
    dialect::WorkspaceLocation,
    http::{
        AllowedHosts, AuthError, Authenticator, ClientIdentity, ClientScope, Credential, HttpListener,
        HttpServerConfig, HttpServerOptions, ServerState, opener_for, serve,
    },
    mcp::LoadedMcpExtension,
};
use testkit::{MemoryWorkspace, external_tools, socket_relay};
use tokio::net::UnixListener;

/// Prefix of the scenarios of the tasks extension.
const UNDECLARED_EXTENSION_PREFIX: &str = "tasks-";

/// Authenticates only the server's own user.
struct SameUserAuthenticator(Engine);

impl Authenticator for SameUserAuthenticator {
    fn authenticate(&self, credential: Credential<'_>) -> Result<ClientIdentity, AuthError> {
        match credential {
            Credential::Token(_) => Err(AuthError::UnknownToken),
            Credential::SameUser => Ok(ClientIdentity {
                client_key: "own".to_owned(),
                caller: Caller::new(Principal::Agent("suite".to_owned()), "suite".to_owned(), "http"),
                scope: ClientScope::Workspace {
                    id: "one".to_owned(),
                    location: test_location(),
                    opener: opener_for(self.0.clone()),
                },
            }),
        }
    }

    fn is_still_valid(&self, _key: &str) -> bool {
        true
    }
}

fn test_location() -> WorkspaceLocation {
    WorkspaceLocation { root: MemoryWorkspace::ROOT.to_owned() }
}

/// Runs the suite for one protocol revision.
async fn run_conformance_suite(revision: &'static str) -> external_tools::ProgramOutput {
    let scratch = tempfile::tempdir().unwrap();
    let socket = scratch.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let user = socket_relay::effective_user().unwrap();
    let settings = HttpServerConfig {
        location: test_location(),
        mcp_dialects: vec!["stead".to_owned()],
        rpc_dialects: vec!["stead".to_owned()],
        workspace_calls_max: 16,
    };
    let door = Arc::new(SameUserAuthenticator(Engine::new(Arc::new(MemoryWorkspace::new()))));
    let annex = LoadedMcpExtension::new(Arc::new(extension::ConformanceExtension)).unwrap();
    let keeping = HttpServerOptions { mcp_extension: Some(Arc::new(annex)), ..HttpServerOptions::default() };
    let state = ServerState::with_options(door, AllowedHosts::unix_socket(), settings, keeping);
    let serving = tokio::spawn(serve(state.clone(), HttpListener::Unix(listener, user)));
    let port = socket_relay::open_relay(&socket).unwrap();
    let said = tokio::task::spawn_blocking(move || {
        let mut suite = external_tools::node_program("conformance").unwrap();
        suite.args(["server", "--url", &format!("http://127.0.0.1:{port}/mcp"), "--requirements", revision]);
        external_tools::run_program(suite).unwrap()
    })
    .await
    .unwrap();
    state.shut_down();
    serving.await.unwrap();
    said
}

/// All scenarios pass except those of an extension that this server does not declare.
fn check_results(said: &external_tools::ProgramOutput) {
    assert_eq!(said.code, Some(0), "{}", said.full_text());
    let failed = said.stdout.lines().filter_map(|line| line.trim().strip_prefix("✗ "));
    let others: Vec<&str> = failed.filter(|scenario| !scenario.starts_with(UNDECLARED_EXTENSION_PREFIX)).collect();
    assert!(others.is_empty(), "{others:?}: {}", said.full_text());
    assert!(said.stdout.contains("✓ tools-call-with-progress: 2 passed"), "{}", said.full_text());
}

#[tokio::test]
async fn every_required_check_of_2025_11_25_passes() {
    check_results(&run_conformance_suite("2025-11-25").await);
}

#[tokio::test]
async fn every_required_check_of_2026_07_28_passes() {
    check_results(&run_conformance_suite("2026-07-28").await);
}
