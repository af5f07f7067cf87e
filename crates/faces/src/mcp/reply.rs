//! What a call answered, in the shape of a tool result: the dialect's object as it is, and its text twin.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use crate::dialect::{Reply, Verdict};

/// The result of a tool call.
pub(super) fn result(reply: Reply) -> CallToolResult {
    let content = vec![ContentBlock::text(reply.text)];
    let mut result = match reply.verdict {
        Verdict::Fine => CallToolResult::success(content),
        Verdict::Error => CallToolResult::error(content),
    };
    result.structured_content = Some(Value::Object(reply.json));
    result
}
