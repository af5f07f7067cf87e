//! Converts a dialect's reply to an MCP tool result: its object and its text.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use crate::dialect::{DialectReply, ReplyStatus};

pub(super) fn tool_result(reply: DialectReply) -> CallToolResult {
    let content = vec![ContentBlock::text(reply.text)];
    let mut result = match reply.status {
        ReplyStatus::Success => CallToolResult::success(content),
        ReplyStatus::Error => CallToolResult::error(content),
    };
    result.structured_content = Some(Value::Object(reply.json));
    result
}
