//! The suite's fixtures as an `McpExtension`: dispatches requests.

use serde_json::{Map, Value, json};
use stead_protocols::mcp::{
    McpClientHandle, McpExtension, McpExtensionError, McpExtensionFuture, McpExtensionRequest, McpListKind,
};

use super::{catalogue, input_required, tools};

/// JSON-RPC code for invalid params.
pub(crate) const INVALID_PARAMS: i32 = -32602;

pub(crate) struct ConformanceExtension;

impl McpExtension for ConformanceExtension {
    fn capabilities(&self) -> Map<String, Value> {
        let said = json!({ "logging": {}, "prompts": {}, "completions": {} });
        said.as_object().unwrap().clone()
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
        asked: McpExtensionRequest<'a>,
        client: McpClientHandle<'a>,
    ) -> McpExtensionFuture<'a> {
        Box::pin(async move {
            let params = asked.params;
            match asked.method {
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

async fn call_tool(params: &Value, client: &McpClientHandle<'_>) -> Option<Result<Value, McpExtensionError>> {
    let name = params["name"].as_str()?;
    if let Some(round) = input_required::call_tool(name, params, client) {
        return Some(round);
    }
    tools::call_tool(name, &params["arguments"], client).await
}

fn get_prompt(params: &Value) -> Option<Result<Value, McpExtensionError>> {
    let name = params["name"].as_str()?;
    input_required::get_prompt(name, params).or_else(|| catalogue::get_prompt(name, &params["arguments"]).map(Ok))
}

/// Completions for the prompt with arguments.
fn complete_argument(params: &Value) -> Option<Result<Value, McpExtensionError>> {
    if params["ref"]["name"] != "test_prompt_with_arguments" {
        return None;
    }
    let begun = params["argument"]["value"].as_str()?;
    let words = ["paris", "park", "party", "test", "testing"];
    let values: Vec<&str> = words.into_iter().filter(|word| word.starts_with(begun)).collect();
    Some(Ok(json!({ "completion": { "values": values, "total": values.len(), "hasMore": false } })))
}
