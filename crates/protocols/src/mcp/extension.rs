//! Tools, prompts and resources that an embedding program adds to the server, as JSON of the protocol.
//!
//! The tools and resources of the dialects take precedence, so the extension gets only requests that the server does
//! not handle itself. The results of the extension are checked against the protocol's types before they are sent. An
//! extension has no access to the engine.

use std::{pin::Pin, sync::Arc};

use rmcp::{
    ErrorData,
    model::{
        ErrorCode, InputRequiredResult, Prompt, Resource, ResourceTemplate, ServerCapabilities, ServerNotification,
        ServerRequest, Tool,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::McpRequestContext;

/// Adds tools, prompts and resources to the MCP server.
pub trait McpExtension: Send + Sync + 'static {
    /// The capabilities that the extension adds to those of the MCP server, as JSON of the protocol.
    fn capabilities(&self) -> Map<String, Value>;

    /// The items that the extension adds to one of the server's lists, such as its tools. The server asks for each list
    /// once.
    fn list_items(&self, list: McpListKind) -> Vec<Value>;

    /// Handles an MCP request. The future resolves to `None` if the request is not about an item of the extension.
    fn handle_request<'a>(
        &'a self,
        request: McpRequestForExtension<'a>,
        client: McpClientHandle<'a>,
    ) -> McpExtensionFuture<'a>;
}

/// The future of [`McpExtension::handle_request`].
pub type McpExtensionFuture<'a> =
    Pin<Box<dyn Future<Output = Option<Result<Value, McpExtensionErrorResponse>>> + Send + 'a>>;

/// A list of the MCP server that an extension can add items to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpListKind {
    /// `tools/list`.
    Tools,
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    ResourceTemplates,
}

/// An MCP request that the server passes to an extension.
#[derive(Debug)]
pub struct McpRequestForExtension<'a> {
    /// JSON-RPC method.
    pub method: &'a str,
    /// JSON-RPC parameters.
    pub params: Value,
}

/// The error with which an extension answers an MCP request.
#[derive(Debug, Clone, PartialEq)]
pub struct McpExtensionErrorResponse {
    /// The JSON-RPC error code.
    pub code: i32,
    /// The error message, for people.
    pub message: String,
    /// The `data` of the JSON-RPC error, for programs.
    pub data: Option<Value>,
}

/// A tool, prompt or resource of an extension does not match the protocol's types.
#[derive(Debug, thiserror::Error)]
#[error("invalid item in an MCP extension: {0}")]
pub struct InvalidMcpExtensionItemError(#[from] serde_json::Error);

/// The MCP client whose request an extension handles.
pub struct McpClientHandle<'a>(pub(super) &'a McpRequestContext);

impl McpClientHandle<'_> {
    /// The capabilities that the client declared.
    pub fn capabilities(&self) -> Value {
        to_json(&self.0.client_capabilities())
    }

    /// The `_meta` object of the request.
    pub fn meta(&self) -> Value {
        to_json(&self.0.meta)
    }

    /// Sends a notification to the client while its request runs, and ignores send errors.
    pub async fn notify(&self, method: &str, params: Value) {
        if let Ok(notice) = serde_json::from_value::<ServerNotification>(json!({ "method": method, "params": params }))
        {
            // A send error means that the client has disconnected; its request ends anyway.
            drop(self.0.peer.send_notification(notice).await);
        }
    }

    /// Sends a request to the client while the client's own request runs. Only clients that started with `initialize`
    /// answer requests of the server.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, McpExtensionErrorResponse> {
        let internal_error =
            |message: String| McpExtensionErrorResponse { code: ErrorCode::INTERNAL_ERROR.0, message, data: None };
        let request: ServerRequest = serde_json::from_value(json!({ "method": method, "params": params }))
            .map_err(|error| internal_error(error.to_string()))?;
        let response = self.0.peer.send_request(request).await.map_err(|error| internal_error(error.to_string()))?;
        Ok(to_json(&response))
    }
}

/// A value of the protocol as JSON, or null if it cannot be serialized.
fn to_json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// An MCP extension whose tools, prompts and resources have been parsed.
pub struct LoadedMcpExtension {
    extension: Arc<dyn McpExtension>,
    pub(super) tools: Vec<Tool>,
    pub(super) prompts: Vec<Prompt>,
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<ResourceTemplate>,
}

impl LoadedMcpExtension {
    /// Loads an extension and parses its tools, prompts and resources.
    pub fn new(extension: Arc<dyn McpExtension>) -> Result<Self, InvalidMcpExtensionItemError> {
        Ok(Self {
            tools: parse_items(extension.list_items(McpListKind::Tools))?,
            prompts: parse_items(extension.list_items(McpListKind::Prompts))?,
            resources: parse_items(extension.list_items(McpListKind::Resources))?,
            templates: parse_items(extension.list_items(McpListKind::ResourceTemplates))?,
            extension,
        })
    }

    /// The capabilities of the MCP server and of the extension, merged.
    pub(super) fn merged_capabilities(&self, server: &ServerCapabilities) -> ServerCapabilities {
        let mut all = to_json(server);
        if let Some(all) = all.as_object_mut() {
            all.extend(self.extension.capabilities());
        }
        serde_json::from_value(all).unwrap_or_else(|_| server.clone())
    }

    /// Passes a request to the extension. Returns `None` if the extension does not handle the request.
    pub(super) async fn call(
        &self,
        method: &str,
        params: &impl Serialize,
        context: &McpRequestContext,
    ) -> Option<Result<Value, ErrorData>> {
        let request = McpRequestForExtension { method, params: to_json(params) };
        let outcome = self.extension.handle_request(request, McpClientHandle(context)).await?;
        let outcome = outcome.map(|mut result| {
            // Later protocol versions require this field. Clients of earlier versions ignore it.
            if let Some(result) = result.as_object_mut() {
                result.entry("resultType").or_insert_with(|| json!("complete"));
            }
            result
        });
        Some(outcome.map_err(|error| ErrorData::new(ErrorCode(error.code), error.message, error.data)))
    }
}

fn parse_items<T: DeserializeOwned>(entries: Vec<Value>) -> Result<Vec<T>, InvalidMcpExtensionItemError> {
    entries.into_iter().map(|entry| serde_json::from_value(entry).map_err(InvalidMcpExtensionItemError)).collect()
}

pub(super) fn parse_result<T: DeserializeOwned>(outcome: Result<Value, ErrorData>) -> Result<T, ErrorData> {
    serde_json::from_value(outcome?).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Parses a result that may ask the client for more input.
pub(super) fn parse_response<T, R>(outcome: Result<Value, ErrorData>) -> Result<R, ErrorData>
where
    T: DeserializeOwned + Into<R>,
    InputRequiredResult: Into<R>,
{
    if outcome.as_ref().is_ok_and(|result| result["resultType"] == "input_required") {
        parse_result::<InputRequiredResult>(outcome).map(Into::into)
    } else {
        parse_result::<T>(outcome).map(Into::into)
    }
}
