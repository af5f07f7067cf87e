//! Runs the official MCP conformance suite against the HTTP server. A test extension provides the tools, prompts and
//! resources that the conformance suite expects.

mod catalogue;
mod input_required;
mod tools;

use std::sync::Arc;

use serde_json::{Map, Value, json};
use stead_engine::{Caller, Engine, Principal};
use stead_protocols::{
    dialect::DialectWorkspaceRootPath,
    http::{
        AllowedHosts, AuthError, AuthenticatedClientIdentity, Authenticator, Credential, HttpListener,
        HttpServerConfig, HttpServerOptions, HttpServerState, opener_for, serve,
    },
    mcp::{
        McpClientHandle, McpExtension, McpExtensionErrorResponse, McpExtensionFuture, McpExtensionWithParsedItems,
        McpListKind, McpRequestForExtension,
    },
};
use testkit::{MemoryWorkspace, external_tools, socket_relay};
use tokio::net::UnixListener;

/// The prefix of the scenarios for the tasks extension of MCP, which this server does not declare.
const UNDECLARED_EXTENSION_PREFIX: &str = "tasks-";

const INVALID_PARAMS: i32 = -32602;

struct ConformanceTestMcpExtension;

impl McpExtension for ConformanceTestMcpExtension {
    fn capabilities(&self) -> Map<String, Value> {
        let capabilities = json!({ "logging": {}, "prompts": {}, "completions": {} });
        capabilities.as_object().unwrap().clone()
    }

    fn list_items(&self, list: McpListKind) -> Vec<Value> {
        match list {
            McpListKind::Tools => catalogue::tool_list(),
            McpListKind::Prompts => catalogue::prompt_list(),
            McpListKind::Resources => catalogue::resource_list(),
            McpListKind::ResourceTemplates => catalogue::template_list(),
        }
    }

    fn handle_request<'a>(
        &'a self,
        request: McpRequestForExtension<'a>,
        client: McpClientHandle<'a>,
    ) -> McpExtensionFuture<'a> {
        Box::pin(async move {
            let params = request.params;
            match request.method {
                "tools/call" => call_tool(&params, &client).await,
                "prompts/get" => get_prompt(&params),
                "resources/read" => catalogue::read_resource(params["uri"].as_str()?).map(Ok),
                "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" => Some(Ok(json!({}))),
                "completion/complete" => complete_argument(&params),
                _ => None,
            }
        })
    }
}

async fn call_tool(params: &Value, client: &McpClientHandle<'_>) -> Option<Result<Value, McpExtensionErrorResponse>> {
    let name = params["name"].as_str()?;
    if let Some(result) = input_required::call_tool(name, params, client) {
        return Some(result);
    }
    tools::call_tool(name, &params["arguments"], client).await
}

fn get_prompt(params: &Value) -> Option<Result<Value, McpExtensionErrorResponse>> {
    let name = params["name"].as_str()?;
    input_required::get_prompt(name, params).or_else(|| catalogue::get_prompt(name, &params["arguments"]).map(Ok))
}

fn complete_argument(params: &Value) -> Option<Result<Value, McpExtensionErrorResponse>> {
    if params["ref"]["name"] != "test_prompt_with_arguments" {
        return None;
    }
    let prefix = params["argument"]["value"].as_str()?;
    let words = ["paris", "park", "party", "test", "testing"];
    let values: Vec<&str> = words.into_iter().filter(|word| word.starts_with(prefix)).collect();
    Some(Ok(json!({ "completion": { "values": values, "total": values.len(), "hasMore": false } })))
}

struct SameUserOnlyTestAuthenticator(Engine);

impl Authenticator for SameUserOnlyTestAuthenticator {
    fn authenticate(&self, credential: Credential<'_>) -> Result<AuthenticatedClientIdentity, AuthError> {
        match credential {
            Credential::Token(_) => Err(AuthError::UnknownToken),
            Credential::SameUser => Ok(AuthenticatedClientIdentity {
                client_key: "own".to_owned(),
                caller: Caller::new(Principal::Agent("suite".to_owned()), "suite".to_owned(), "http"),
                workspace_id: "one".to_owned(),
                location: test_location(),
                opener: opener_for(self.0.clone()),
            }),
        }
    }

    fn is_still_valid(&self, _key: &str) -> bool {
        true
    }
}

fn test_location() -> DialectWorkspaceRootPath {
    DialectWorkspaceRootPath { root: MemoryWorkspace::ROOT.to_owned() }
}

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
    let authenticator = Arc::new(SameUserOnlyTestAuthenticator(Engine::new(Arc::new(MemoryWorkspace::new()))));
    let extension = McpExtensionWithParsedItems::new(Arc::new(ConformanceTestMcpExtension)).unwrap();
    let options = HttpServerOptions { mcp_extension: Some(Arc::new(extension)), ..HttpServerOptions::default() };
    let state = HttpServerState::with_options(authenticator, AllowedHosts::unix_socket(), settings, options);
    let serving = tokio::spawn(serve(state.clone(), HttpListener::Unix(listener, user)));
    let port = socket_relay::open_relay(&socket).unwrap();
    let output = tokio::task::spawn_blocking(move || {
        let mut suite = external_tools::node_program("conformance").unwrap();
        suite.args(["server", "--url", &format!("http://127.0.0.1:{port}/mcp"), "--requirements", revision]);
        external_tools::run_program(suite).unwrap()
    })
    .await
    .unwrap();
    state.shut_down();
    serving.await.unwrap();
    output
}

fn check_results(output: &external_tools::ProgramOutput) {
    assert_eq!(output.code, Some(0), "{}", output.full_text());
    let failed = output.stdout.lines().filter_map(|line| line.trim().strip_prefix("✗ "));
    let others: Vec<&str> = failed.filter(|scenario| !scenario.starts_with(UNDECLARED_EXTENSION_PREFIX)).collect();
    assert!(others.is_empty(), "{others:?}: {}", output.full_text());
    assert!(output.stdout.contains("✓ tools-call-with-progress: 2 passed"), "{}", output.full_text());
}

#[tokio::test]
async fn every_required_check_of_2025_11_25_passes() {
    check_results(&run_conformance_suite("2025-11-25").await);
}

#[tokio::test]
async fn every_required_check_of_2026_07_28_passes() {
    check_results(&run_conformance_suite("2026-07-28").await);
}
