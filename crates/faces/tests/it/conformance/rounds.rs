//! Requests that need something from the client first, asked for in the result of one round and brought along in the next.
//! What a client carries between rounds is checked: here by a sum that is no secret, because only the check is tried.

use faces::mcp::{Client, Refusal};
use serde_json::{Map, Value, json};

use super::{catalogue::text, fixtures::INVALID_PARAMS};

/// What one round asks for: the name of the question, the method, and its parameters.
type Question = (&'static str, &'static str, Value);

/// A tool that takes rounds; nothing when it is none.
pub(crate) fn tool(name: &str, params: &Value, client: &Client<'_>) -> Option<Result<Value, Refusal>> {
    let state = params["requestState"].as_str();
    let round = match name {
        "test_input_required_result_elicitation" => one(params, ask_name("user_name"), None),
        "test_input_required_result_sampling" => {
            one(params, sample("capital_question", "What is the capital of France?"), None)
        }
        "test_input_required_result_list_roots" => one(params, roots(), None),
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            if state.is_some_and(|state| state != sealed("only")) {
                return Some(Err(tampered()));
            }
            one(params, confirm(), Some("only"))
        }
        "test_input_required_result_multiple_inputs" => {
            let questions = vec![ask_name("user_name"), sample("greeting", "Generate a greeting"), roots()];
            all(params, questions, Some("only"))
        }
        "test_input_required_result_multi_round" => multi(params, state),
        "test_input_required_result_capabilities" => all(params, possible(client), None),
        _ => return None,
    };
    Some(Ok(round.unwrap_or_else(|| done(params))))
}

/// A prompt that takes rounds; nothing when it is none.
pub(crate) fn prompt(name: &str, params: &Value) -> Option<Result<Value, Refusal>> {
    if name != "test_input_required_result_prompt" {
        return None;
    }
    let question = elicit("user_context", "What context should the prompt use?", "context", "string");
    let round = one(params, question, None);
    let said = params["inputResponses"]["user_context"]["content"]["context"].to_string();
    Some(Ok(round.unwrap_or_else(|| {
        json!({ "messages": [{ "role": "user", "content": text(&format!("In the context of {said}.")) }] })
    })))
}

/// The end of every tool here.
fn done(params: &Value) -> Value {
    let name = params["inputResponses"]["user_name"]["content"]["name"].as_str().unwrap_or("you");
    json!({ "content": [text(&format!("Hello, {name}! state-ok"))] })
}

fn one(params: &Value, question: Question, state: Option<&str>) -> Option<Value> {
    all(params, vec![question], state)
}

/// The questions, unless all of them are answered as they must be.
fn all(params: &Value, questions: Vec<Question>, state: Option<&str>) -> Option<Value> {
    let responses = &params["inputResponses"];
    if !questions.is_empty() && questions.iter().all(|(name, method, _)| answers(&responses[*name], method)) {
        return None;
    }
    let requests: Map<String, Value> = questions
        .into_iter()
        .map(|(name, method, asked)| (name.to_owned(), json!({ "method": method, "params": asked })))
        .collect();
    let mut round = json!({ "resultType": "input_required", "inputRequests": requests });
    if let Some(state) = state {
        round["requestState"] = json!(sealed(state));
    }
    Some(round)
}

/// Whether something is an answer to a question of this kind.
fn answers(response: &Value, method: &str) -> bool {
    match method {
        "elicitation/create" => {
            response["action"] == "accept"
                && response["content"].as_object().is_some_and(|said| !said.is_empty())
        }
        "sampling/createMessage" => response["content"].is_object(),
        _ => response["roots"].is_array(),
    }
}

/// Two questions, one after the other.
fn multi(params: &Value, state: Option<&str>) -> Option<Value> {
    let second = elicit("step2", "Step 2: What is your favorite color?", "color", "string");
    match state {
        Some(state) if state == sealed("second") => one(params, second, Some("second")),
        Some(_) => all(&Value::Null, vec![second], Some("second")),
        None => one(params, elicit("step1", "Step 1: What is your name?", "name", "string"), Some("first")),
    }
}

/// What this client says that it can answer.
fn possible(client: &Client<'_>) -> Vec<Question> {
    let can = client.capabilities();
    let questions = [
        ("elicitation", ask_name("user_name")),
        ("sampling", sample("greeting", "Generate a greeting")),
        ("roots", roots()),
    ];
    questions.into_iter().filter(|(what, _)| can[*what].is_object()).map(|(_, question)| question).collect()
}

fn ask_name(question: &'static str) -> Question {
    elicit(question, "What is your name?", "name", "string")
}

fn confirm() -> Question {
    elicit("confirm", "Please confirm", "ok", "boolean")
}

fn elicit(question: &'static str, message: &str, member: &str, kind: &str) -> Question {
    let schema =
        json!({ "type": "object", "properties": { member: { "type": kind } }, "required": [member] });
    (question, "elicitation/create", json!({ "message": message, "requestedSchema": schema }))
}

fn sample(question: &'static str, said: &str) -> Question {
    let messages = json!([{ "role": "user", "content": text(said) }]);
    (question, "sampling/createMessage", json!({ "messages": messages, "maxTokens": 100 }))
}

fn roots() -> Question {
    ("client_roots", "roots/list", json!({}))
}

/// A state with its sum.
fn sealed(state: &str) -> String {
    let sum = state.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("{state}.{sum:08x}")
}

fn tampered() -> Refusal {
    Refusal {
        code: INVALID_PARAMS,
        message: "the state is not one that was given out".to_owned(),
        facts: None,
    }
}
