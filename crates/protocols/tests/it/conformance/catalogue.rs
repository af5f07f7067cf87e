//! The tools, prompts and resources that the MCP conformance suite expects.

use serde_json::{Value, json};

const PIXEL_PNG_BASE64: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SILENT_WAV_BASE64: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const TOOLS_WITHOUT_ARGUMENTS: &[&str] = &[
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_tool_with_progress",
    "test_error_handling",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
];

pub(crate) fn tool_list() -> Vec<Value> {
    let tool = |name: &str, schema: Value| json!({ "name": name, "description": format!("A fixture: {name}."), "inputSchema": schema });
    let plain = TOOLS_WITHOUT_ARGUMENTS.iter().map(|name| tool(name, json!({ "type": "object", "properties": {} })));
    let one = |argument: &str| json!({ "type": "object", "properties": { argument: { "type": "string" } }, "required": [argument] });
    let mut tools: Vec<Value> = plain.collect();
    tools.push(tool("test_sampling", one("prompt")));
    tools.push(tool("test_elicitation", one("message")));
    tools.push(tool("json_schema_2020_12_tool", schema_with_all_keywords()));
    tools.push(tool("test_custom_headers", header_argument_schema()));
    tools
}

/// A JSON Schema with keywords that the server must pass on unchanged.
fn schema_with_all_keywords() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } }
            }
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" }
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false
    })
}

/// The schema of a tool whose argument `region` is also sent as an HTTP header.
fn header_argument_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
        "required": ["region"]
    })
}

pub(crate) fn resource_list() -> Vec<Value> {
    let resource = |uri: &str, kind: &str| json!({ "uri": uri, "name": uri, "mimeType": kind });
    vec![
        resource("test://static-text", "text/plain"),
        resource("test://static-binary", "image/png"),
        resource("test://watched-resource", "text/plain"),
    ]
}

pub(crate) fn template_list() -> Vec<Value> {
    vec![json!({
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "mimeType": "application/json"
    })]
}

pub(crate) fn read_resource(uri: &str) -> Option<Value> {
    let mut content = match uri {
        "test://static-text" => text_resource("text/plain", "This is the content of the static text resource."),
        "test://watched-resource" => text_resource("text/plain", "Watched resource content."),
        "test://static-binary" => json!({ "mimeType": "image/png", "blob": PIXEL_PNG_BASE64 }),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let text = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            text_resource("application/json", &text.to_string())
        }
    };
    content["uri"] = json!(uri);
    Some(json!({ "contents": [content] }))
}

fn text_resource(kind: &str, text: &str) -> Value {
    json!({ "mimeType": kind, "text": text })
}

pub(crate) fn prompt_list() -> Vec<Value> {
    let argument = |name: &str| json!({ "name": name, "required": true });
    let prompt = |name: &str, arguments: &[&str]| {
        let arguments: Vec<Value> = arguments.iter().map(|name| argument(name)).collect();
        json!({ "name": name, "description": format!("A fixture: {name}."), "arguments": arguments })
    };
    vec![
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ]
}

pub(crate) fn get_prompt(name: &str, arguments: &Value) -> Option<Value> {
    let text = |argument: &str| arguments[argument].as_str().unwrap_or_default().to_owned();
    let contents = match name {
        "test_simple_prompt" => vec![text_content("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (text("arg1"), text("arg2"));
            vec![text_content(&format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let mut resource = text_resource("text/plain", "Embedded resource content for testing.");
            resource["uri"] = json!(text("resourceUri"));
            vec![
                json!({ "type": "resource", "resource": resource }),
                text_content("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => vec![image_content(), text_content("Please analyze the image above.")],
        _ => return None,
    };
    let message = |content: Value| json!({ "role": "user", "content": content });
    Some(json!({ "messages": contents.into_iter().map(message).collect::<Vec<_>>() }))
}

pub(crate) fn text_content(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

pub(crate) fn image_content() -> Value {
    json!({ "type": "image", "data": PIXEL_PNG_BASE64, "mimeType": "image/png" })
}

pub(crate) fn audio_content() -> Value {
    json!({ "type": "audio", "data": SILENT_WAV_BASE64, "mimeType": "audio/wav" })
}
