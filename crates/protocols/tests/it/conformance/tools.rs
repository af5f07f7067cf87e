//! Conformance tools that answer with one result, some after sending notifications or requests to the client.

use serde_json::{Value, json};
use stead_protocols::mcp::{McpClientHandle, McpExtensionErrorResponse};

use super::catalogue::{audio_content, image_content, text_content};

const MISSING_CAPABILITY: i32 = -32021;

pub(crate) async fn call_tool(
    name: &str,
    arguments: &Value,
    client: &McpClientHandle<'_>,
) -> Option<Result<Value, McpExtensionErrorResponse>> {
    let text = |argument: &str| arguments[argument].as_str().unwrap_or_default().to_owned();
    let contents = match name {
        "test_simple_text" => vec![text_content("This is a simple text response for testing.")],
        "test_image_content" => vec![image_content()],
        "test_audio_content" => vec![audio_content()],
        "test_embedded_resource" => {
            vec![resource_content("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
        }
        "test_multiple_content_types" => vec![
            text_content("Multiple content types test:"),
            image_content(),
            resource_content("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ],
        "test_tool_with_logging" => send_log_messages(client).await,
        // These tools send no log messages, because the client did not set a log level.
        "test_logging_tool" | "test_streaming_elicitation" => vec![text_content("done")],
        "test_tool_with_progress" => send_progress(client).await,
        "test_error_handling" => {
            return Some(Ok(json!({
                "content": [text_content("This tool intentionally returns an error for testing")],
                "isError": true
            })));
        }
        "test_sampling" => return Some(request_sampling(&text("prompt"), client).await),
        "test_elicitation" => {
            return Some(request_elicitation(&text("message"), &person_schema(), client).await);
        }
        "test_elicitation_sep1034_defaults" => {
            return Some(request_elicitation("Defaults", &defaults_schema(), client).await);
        }
        "test_elicitation_sep1330_enums" => {
            return Some(request_elicitation("Choices", &choices_schema(), client).await);
        }
        "test_missing_capability" => return Some(require_sampling(client)),
        "json_schema_2020_12_tool" | "test_custom_headers" => vec![text_content(&arguments.to_string())],
        _ => return None,
    };
    Some(Ok(json!({ "content": contents })))
}

fn resource_content(uri: &str, kind: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": text } })
}

async fn send_log_messages(client: &McpClientHandle<'_>) -> Vec<Value> {
    for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let params = json!({ "level": "info", "logger": "fixture", "data": message });
        client.notify("notifications/message", params).await;
    }
    vec![text_content("Three messages were logged.")]
}

async fn send_progress(client: &McpClientHandle<'_>) -> Vec<Value> {
    let token = client.meta()["progressToken"].clone();
    for done in [0, 50, 100] {
        if !token.is_null() {
            let params = json!({ "progressToken": token, "progress": done, "total": 100 });
            client.notify("notifications/progress", params).await;
        }
    }
    vec![text_content(&token.to_string())]
}

async fn request_sampling(prompt: &str, client: &McpClientHandle<'_>) -> Result<Value, McpExtensionErrorResponse> {
    let messages = json!([{ "role": "user", "content": text_content(prompt) }]);
    let params = json!({ "messages": messages, "maxTokens": 100 });
    let response = client.request("sampling/createMessage", params).await?;
    let text = response["content"]["text"].as_str().unwrap_or_default();
    Ok(json!({ "content": [text_content(&format!("LLM response: {text}"))] }))
}

async fn request_elicitation(
    message: &str,
    schema: &Value,
    client: &McpClientHandle<'_>,
) -> Result<Value, McpExtensionErrorResponse> {
    let params = json!({ "message": message, "requestedSchema": schema });
    let response = client.request("elicitation/create", params).await?;
    let action = response["action"].as_str().unwrap_or_default();
    let text = format!("Elicitation completed: action={action}, content={}", response["content"]);
    Ok(json!({ "content": [text_content(&text)] }))
}

fn require_sampling(client: &McpClientHandle<'_>) -> Result<Value, McpExtensionErrorResponse> {
    if client.capabilities()["sampling"].is_object() {
        return Ok(json!({ "content": [text_content("The client can sample.")] }));
    }
    Err(McpExtensionErrorResponse {
        code: MISSING_CAPABILITY,
        message: "the client cannot sample".to_owned(),
        data: Some(json!({ "requiredCapabilities": { "sampling": {} } })),
    })
}

fn person_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" }
        },
        "required": ["username", "email"]
    })
}

fn defaults_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
            "verified": { "type": "boolean", "default": true }
        },
        "required": []
    })
}

fn choices_schema() -> Value {
    let titled = |what: &str| {
        json!([
            { "const": "value1", "title": format!("First {what}") },
            { "const": "value2", "title": format!("Second {what}") },
            { "const": "value3", "title": format!("Third {what}") }
        ])
    };
    let plain = json!(["option1", "option2", "option3"]);
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": plain },
            "titledSingle": { "type": "string", "oneOf": titled("Option") },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"]
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } }
        },
        "required": []
    })
}
