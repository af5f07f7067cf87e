//! Conformance tools and prompts that need input from the client. The request state of a test tool has a checksum
//! without a secret, which is enough to detect changes.

use serde_json::{Map, Value, json};
use stead_protocols::mcp::{McpClientHandle, McpExtensionErrorResponse};

use super::{INVALID_PARAMS, catalogue::text_content};

type McpTestRequestForClientInput = (&'static str, &'static str, Value);

pub(crate) fn call_tool(
    name: &str,
    params: &Value,
    client: &McpClientHandle<'_>,
) -> Option<Result<Value, McpExtensionErrorResponse>> {
    let state = params["requestState"].as_str();
    let round = match name {
        "test_input_required_result_elicitation" => ask_one(params, name_question("user_name"), None),
        "test_input_required_result_sampling" => {
            ask_one(params, sampling_question("capital_question", "What is the capital of France?"), None)
        }
        "test_input_required_result_list_roots" => ask_one(params, roots_question(), None),
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            if state.is_some_and(|state| state != state_with_checksum("only")) {
                return Some(Err(tampered_state_error()));
            }
            ask_one(params, confirm_question(), Some("only"))
        }
        "test_input_required_result_multiple_inputs" => {
            let questions = vec![
                name_question("user_name"),
                sampling_question("greeting", "Generate a greeting"),
                roots_question(),
            ];
            ask_all(params, questions, Some("only"))
        }
        "test_input_required_result_multi_round" => ask_two_rounds(params, state),
        "test_input_required_result_capabilities" => ask_all(params, supported_questions(client), None),
        _ => return None,
    };
    Some(Ok(round.unwrap_or_else(|| final_result(params))))
}

pub(crate) fn get_prompt(name: &str, params: &Value) -> Option<Result<Value, McpExtensionErrorResponse>> {
    if name != "test_input_required_result_prompt" {
        return None;
    }
    let question = elicitation_question("user_context", "What context should the prompt use?", "context", "string");
    let round = ask_one(params, question, None);
    let context = params["inputResponses"]["user_context"]["content"]["context"].to_string();
    Some(Ok(round.unwrap_or_else(
        || json!({ "messages": [{ "role": "user", "content": text_content(&format!("In the context of {context}.")) }] }),
    )))
}

fn final_result(params: &Value) -> Value {
    let name = params["inputResponses"]["user_name"]["content"]["name"].as_str().unwrap_or("you");
    json!({ "content": [text_content(&format!("Hello, {name}! state-ok"))] })
}

fn ask_one(params: &Value, question: McpTestRequestForClientInput, state: Option<&str>) -> Option<Value> {
    ask_all(params, vec![question], state)
}

fn ask_all(params: &Value, questions: Vec<McpTestRequestForClientInput>, state: Option<&str>) -> Option<Value> {
    let responses = &params["inputResponses"];
    if !questions.is_empty() && questions.iter().all(|(name, method, _)| is_answer(&responses[*name], method)) {
        return None;
    }
    let requests: Map<String, Value> = questions
        .into_iter()
        .map(|(name, method, params)| (name.to_owned(), json!({ "method": method, "params": params })))
        .collect();
    let mut round = json!({ "resultType": "input_required", "inputRequests": requests });
    if let Some(state) = state {
        round["requestState"] = json!(state_with_checksum(state));
    }
    Some(round)
}

fn is_answer(response: &Value, method: &str) -> bool {
    match method {
        "elicitation/create" => {
            response["action"] == "accept" && response["content"].as_object().is_some_and(|content| !content.is_empty())
        }
        "sampling/createMessage" => response["content"].is_object(),
        _ => response["roots"].is_array(),
    }
}

fn ask_two_rounds(params: &Value, state: Option<&str>) -> Option<Value> {
    let second = elicitation_question("step2", "Step 2: What is your favorite color?", "color", "string");
    match state {
        Some(state) if state == state_with_checksum("second") => ask_one(params, second, Some("second")),
        Some(_) => ask_all(&Value::Null, vec![second], Some("second")),
        None => ask_one(
            params,
            elicitation_question("step1", "Step 1: What is your name?", "name", "string"),
            Some("first"),
        ),
    }
}

fn supported_questions(client: &McpClientHandle<'_>) -> Vec<McpTestRequestForClientInput> {
    let capabilities = client.capabilities();
    let questions = [
        ("elicitation", name_question("user_name")),
        ("sampling", sampling_question("greeting", "Generate a greeting")),
        ("roots", roots_question()),
    ];
    questions.into_iter().filter(|(name, _)| capabilities[*name].is_object()).map(|(_, question)| question).collect()
}

fn name_question(question: &'static str) -> McpTestRequestForClientInput {
    elicitation_question(question, "What is your name?", "name", "string")
}

fn confirm_question() -> McpTestRequestForClientInput {
    elicitation_question("confirm", "Please confirm", "ok", "boolean")
}

fn elicitation_question(
    question: &'static str,
    message: &str,
    member: &str,
    kind: &str,
) -> McpTestRequestForClientInput {
    let schema = json!({ "type": "object", "properties": { member: { "type": kind } }, "required": [member] });
    (question, "elicitation/create", json!({ "message": message, "requestedSchema": schema }))
}

fn sampling_question(question: &'static str, prompt: &str) -> McpTestRequestForClientInput {
    let messages = json!([{ "role": "user", "content": text_content(prompt) }]);
    (question, "sampling/createMessage", json!({ "messages": messages, "maxTokens": 100 }))
}

fn roots_question() -> McpTestRequestForClientInput {
    ("client_roots", "roots/list", json!({}))
}

fn state_with_checksum(state: &str) -> String {
    let sum = state.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("{state}.{sum:08x}")
}

fn tampered_state_error() -> McpExtensionErrorResponse {
    McpExtensionErrorResponse {
        code: INVALID_PARAMS,
        message: "the request state was changed: its checksum does not match".to_owned(),
        data: None,
    }
}
