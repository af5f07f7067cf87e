//! Tools that are answered in one go, telling or asking the client on the way.

use faces::mcp::{Client, Refusal};
use serde_json::{Value, json};

use super::catalogue::{picture, sound, text};

/// The protocol's number for a client that cannot do what is needed.
const MISSING_CAPABILITY: i32 = -32021;

/// Calls one; nothing when there is none of that name.
pub(crate) async fn call(
    name: &str,
    arguments: &Value,
    client: &Client<'_>,
) -> Option<Result<Value, Refusal>> {
    let said = |argument: &str| arguments[argument].as_str().unwrap_or_default().to_owned();
    let contents = match name {
        "test_simple_text" => vec![text("This is a simple text response for testing.")],
        "test_image_content" => vec![picture()],
        "test_audio_content" => vec![sound()],
        "test_embedded_resource" => {
            vec![resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
        }
        "test_multiple_content_types" => vec![
            text("Multiple content types test:"),
            picture(),
            resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ],
        "test_tool_with_logging" => log(client).await,
        // Says nothing to a client that did not ask for a level.
        "test_logging_tool" | "test_streaming_elicitation" => vec![text("done")],
        "test_tool_with_progress" => progress(client).await,
        "test_error_handling" => {
            return Some(Ok(json!({
                "content": [text("This tool intentionally returns an error for testing")],
                "isError": true
            })));
        }
        "test_sampling" => return Some(sample(&said("prompt"), client).await),
        "test_elicitation" => return Some(elicit(&said("message"), &person(), client).await),
        "test_elicitation_sep1034_defaults" => return Some(elicit("Defaults", &defaults(), client).await),
        "test_elicitation_sep1330_enums" => return Some(elicit("Choices", &choices(), client).await),
        "test_missing_capability" => return Some(sampling_needed(client)),
        "json_schema_2020_12_tool" | "test_custom_headers" => vec![text(&arguments.to_string())],
        _ => return None,
    };
    Some(Ok(json!({ "content": contents })))
}

fn resource(uri: &str, kind: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": text } })
}

async fn log(client: &Client<'_>) -> Vec<Value> {
    for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let params = json!({ "level": "info", "logger": "fixture", "data": message });
        client.tell("notifications/message", params).await;
    }
    vec![text("Three messages were logged.")]
}

async fn progress(client: &Client<'_>) -> Vec<Value> {
    let token = client.meta()["progressToken"].clone();
    for done in [0, 50, 100] {
        if !token.is_null() {
            let params = json!({ "progressToken": token, "progress": done, "total": 100 });
            client.tell("notifications/progress", params).await;
        }
    }
    vec![text(&token.to_string())]
}

async fn sample(prompt: &str, client: &Client<'_>) -> Result<Value, Refusal> {
    let messages = json!([{ "role": "user", "content": text(prompt) }]);
    let params = json!({ "messages": messages, "maxTokens": 100 });
    let answered = client.ask("sampling/createMessage", params).await?;
    let said = answered["content"]["text"].as_str().unwrap_or_default();
    Ok(json!({ "content": [text(&format!("LLM response: {said}"))] }))
}

async fn elicit(message: &str, schema: &Value, client: &Client<'_>) -> Result<Value, Refusal> {
    let params = json!({ "message": message, "requestedSchema": schema });
    let answered = client.ask("elicitation/create", params).await?;
    let action = answered["action"].as_str().unwrap_or_default();
    let said = format!("Elicitation completed: action={action}, content={}", answered["content"]);
    Ok(json!({ "content": [text(&said)] }))
}

fn sampling_needed(client: &Client<'_>) -> Result<Value, Refusal> {
    if client.capabilities()["sampling"].is_object() {
        return Ok(json!({ "content": [text("The client can sample.")] }));
    }
    Err(Refusal {
        code: MISSING_CAPABILITY,
        message: "the client cannot sample".to_owned(),
        facts: Some(json!({ "requiredCapabilities": { "sampling": {} } })),
    })
}

fn person() -> Value {
    json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" }
        },
        "required": ["username", "email"]
    })
}

fn defaults() -> Value {
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

fn choices() -> Value {
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
