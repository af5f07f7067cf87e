//! Lets an embedding program add tools, prompts and resources to the MCP server. An extension gets only requests that
//! the MCP server does not handle itself, and has no access to the engine.

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

/// An extension that adds tools, prompts and resources to the MCP server.
pub trait McpExtension: Send + Sync + 'static {
    /// Returns the capabilities that the extension adds to the MCP server, as protocol JSON.
    fn capabilities(&self) -> Map<String, Value>;

    /// Returns the items that an extension adds to one list; the MCP server asks only once for each list.
    fn list_items(&self, list: McpListKind) -> Vec<Value>;

    /// Handles an MCP request, or returns `None` if the extension has no item that the request names.
    fn handle_request<'a>(
        &'a self,
        request: McpRequestForExtension<'a>,
        client: McpClientHandle<'a>,
    ) -> McpExtensionFuture<'a>;
}

/// The future that [`McpExtension::handle_request`] returns.
pub type McpExtensionFuture<'a> =
    Pin<Box<dyn Future<Output = Option<Result<Value, McpExtensionErrorResponse>>> + Send + 'a>>;

/// A list of the MCP server to which an extension can add items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpListKind {
    Tools,
    Prompts,
    Resources,
    ResourceTemplates,
}

/// An MCP request that the server passes to an extension.
#[derive(Debug)]
pub struct McpRequestForExtension<'a> {
    pub method: &'a str,
    pub params: Value,
}

/// The error with which an extension answers an MCP request.
#[derive(Debug, Clone, PartialEq)]
pub struct McpExtensionErrorResponse {
    pub code: i32,
    pub message: String,
    pub data: Option<Value>,
}

/// The error for an item of an MCP extension that does not match the types of the protocol.
#[derive(Debug, thiserror::Error)]
#[error("invalid item in an MCP extension: {0}")]
pub struct InvalidMcpExtensionItemError(#[from] serde_json::Error);

/// A handle to the MCP client whose request an extension handles.
pub struct McpClientHandle<'a>(pub(super) &'a McpRequestContext);

impl McpClientHandle<'_> {
    /// Returns the capabilities that the MCP client declared.
    pub fn capabilities(&self) -> Value {
        to_json(&self.0.client_capabilities())
    }

    /// Returns the `_meta` object of the MCP client's request.
    pub fn meta(&self) -> Value {
        to_json(&self.0.meta)
    }

    /// Sends a notification to the MCP client while the client's request runs, and ignores send errors.
    pub async fn notify(&self, method: &str, params: Value) {
        if let Ok(notice) = serde_json::from_value::<ServerNotification>(json!({ "method": method, "params": params }))
        {
            // A send error means that the client has disconnected, which also ends its request.
            drop(self.0.peer.send_notification(notice).await);
        }
    }

    /// Sends a request to the MCP client while the client's own request runs. Only MCP clients that started with
    /// `initialize` answer requests of the server.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, McpExtensionErrorResponse> {
        let internal_error =
            |message: String| McpExtensionErrorResponse { code: ErrorCode::INTERNAL_ERROR.0, message, data: None };
        let request: ServerRequest = serde_json::from_value(json!({ "method": method, "params": params }))
            .map_err(|error| internal_error(error.to_string()))?;
        let response = self.0.peer.send_request(request).await.map_err(|error| internal_error(error.to_string()))?;
        Ok(to_json(&response))
    }
}

fn to_json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// An MCP extension whose tools, prompts and resources have been parsed.
pub struct McpExtensionWithParsedItems {
    extension: Arc<dyn McpExtension>,
    pub(super) tools: Vec<Tool>,
    pub(super) prompts: Vec<Prompt>,
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<ResourceTemplate>,
}

impl McpExtensionWithParsedItems {
    /// Parses the tools, prompts and resources of an extension.
    pub fn new(extension: Arc<dyn McpExtension>) -> Result<Self, InvalidMcpExtensionItemError> {
        Ok(Self {
            tools: parse_items(extension.list_items(McpListKind::Tools))?,
            prompts: parse_items(extension.list_items(McpListKind::Prompts))?,
            resources: parse_items(extension.list_items(McpListKind::Resources))?,
            templates: parse_items(extension.list_items(McpListKind::ResourceTemplates))?,
            extension,
        })
    }

    pub(super) fn merged_capabilities(&self, server: &ServerCapabilities) -> ServerCapabilities {
        let mut all = to_json(server);
        if let Some(all) = all.as_object_mut() {
            all.extend(self.extension.capabilities());
        }
        serde_json::from_value(all).unwrap_or_else(|_| server.clone())
    }

    pub(super) async fn call(
        &self,
        method: &str,
        params: &impl Serialize,
        context: &McpRequestContext,
    ) -> Option<Result<Value, ErrorData>> {
        let request = McpRequestForExtension { method, params: to_json(params) };
        let outcome = self.extension.handle_request(request, McpClientHandle(context)).await?;
        let outcome = outcome.map(|mut result| {
            // Later protocol versions require this field, and clients of earlier versions ignore it.
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

/// Parses the response of an extension, which is a result or a request for more input from the client.
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
