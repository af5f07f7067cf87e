//! What a call answered, in the shape of a tool result: the object as it is, and its text twin.

use engine::{Answer, Failure};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

/// The answer of a call that went well.
pub(super) fn answer(answer: Answer) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text)]);
    result.structured_content = Some(Value::Object(answer.json));
    result
}

/// The answer of a call that failed: the model reads what happened and what to do next.
pub(super) fn failure(failure: &Failure) -> CallToolResult {
    let mut result = CallToolResult::error(vec![ContentBlock::text(failure_text(failure))]);
    result.structured_content = Some(failure.to_json());
    result
}

/// What happened, and below it what to do next.
pub(super) fn failure_text(failure: &Failure) -> String {
    let happened = format!("{}: {}", failure.kind.code(), failure.detail);
    match &failure.hint {
        Some(hint) => format!("{happened}\nNext step: {hint}"),
        None => happened,
    }
}
