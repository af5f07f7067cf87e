//! Runs the engine call of an MCP request, reports progress, and converts the reply to an MCP tool result. Every MCP
//! call gets a tracing span.

use std::sync::Arc;

use axum::http::request::Parts;
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, ProgressNotificationParam},
};
use serde_json::Value;
use stead_engine::CallProgress;

use super::{
    McpRequestContext,
    transport::{ClientClosedSignal, is_only_request, is_over_lines},
};
use crate::{
    call_executor::{
        CallExecutor, CallRequest, ClientDisconnectedError, OtherRequestsPending, progress_channel, until_disconnected,
    },
    call_recorder::{self, RequestLogCallRecorder},
    dialect::{DialectReply, ReplyStatus},
    prepared_call::FinishedCall,
};

pub(super) async fn run_call(
    executor: &CallExecutor,
    closed: &ClientClosedSignal,
    request: CallRequest<DialectReply>,
    context: &McpRequestContext,
) -> Result<FinishedCall<DialectReply>, ErrorData> {
    let other_requests =
        if is_only_request(&context.extensions) { OtherRequestsPending::None } else { OtherRequestsPending::Waiting };
    let token = context.meta.get_progress_token();
    let (sender, receiver) = token.as_ref().map(|_| progress_channel()).unzip();
    let report = async {
        let (Some(token), Some(receiver)) = (token, receiver) else { return };
        let notify = |progress: CallProgress| {
            #[expect(clippy::cast_precision_loss, reason = "the protocol counts in floating point")]
            let mut params = ProgressNotificationParam::new(token.clone(), progress.entries_done as f64);
            params.message = Some(progress.to_string());
            async { context.peer.notify_progress(params).await.map_err(|_| ClientDisconnectedError) }
        };
        receiver.report_until_done(notify).await;
    };
    let call = executor.run(request, other_requests, sender, |cost_class| async move {
        tokio::select! {
            () = context.ct.cancelled() => {}
            () = until_disconnected(cost_class, closed.clone()) => {}
        }
    });
    let call = call_recorder::record_during(request_recorder(context), call);
    let (finished, ()) = tokio::join!(call, report);
    finished.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Returns the call recorder of the HTTP request that contained an MCP message. The MCP library handles each message in
/// its own task, in which a task-local recorder is not available.
pub(super) fn request_recorder(context: &McpRequestContext) -> Option<Arc<RequestLogCallRecorder>> {
    context.extensions.get::<Parts>()?.extensions.get::<Arc<RequestLogCallRecorder>>().cloned()
}

pub(super) fn tool_result(reply: DialectReply, context: &McpRequestContext) -> CallToolResult {
    let content = vec![ContentBlock::text(reply.text)];
    let mut result = match reply.status {
        ReplyStatus::Success => CallToolResult::success(content),
        ReplyStatus::Error => CallToolResult::error(content),
    };
    result.structured_content = Some(structured_content(reply.json, context));
    result
}

/// Over lines, a structured result is passed to the transport as the text of its JSON, which the transport writes as it
/// is. The MCP library writes HTTP responses itself, so that they need the parsed value.
pub(super) fn structured_content(json: String, context: &McpRequestContext) -> Value {
    match is_over_lines(&context.extensions) {
        true => Value::String(json),
        false => serde_json::from_str(&json).unwrap_or_default(),
    }
}

/// The tracing span of an MCP call, whose attribute names follow the OpenTelemetry conventions for MCP. A span contains
/// no arguments, no results, and only client data that `span_values` accepts.
pub(super) struct McpCallSpan {
    #[cfg(feature = "spans")]
    span: tracing::Span,
}

#[cfg(not(feature = "spans"))]
impl McpCallSpan {
    pub(super) fn begin(_method: &str, _tool: Option<&str>, _context: &McpRequestContext) -> Self {
        Self {}
    }

    pub(super) fn failed(&self) {}
}

#[cfg(feature = "spans")]
impl McpCallSpan {
    pub(super) fn begin(method: &str, tool: Option<&str>, context: &McpRequestContext) -> Self {
        let name = tool.map_or_else(|| method.to_owned(), |tool| format!("{method} {tool}"));
        let is_http = context.extensions.get::<Parts>().is_some();
        let version = context.protocol_version().map(|version| version.to_string());
        let span = tracing::info_span!(
            target: crate::SPAN_TARGET,
            "mcp",
            otel.name = name,
            mcp.method.name = method,
            gen_ai.tool.name = tool,
            gen_ai.operation.name = tool.map(|_| "execute_tool"),
            mcp.protocol.version = version.as_deref().and_then(span_values::protocol_version),
            jsonrpc.request.id = span_values::numeric_id(&context.id),
            network.transport = if is_http { "tcp" } else { "pipe" },
            traceparent = context.meta.get("traceparent").and_then(|parent| span_values::valid_traceparent(parent.as_str()?)),
            "error.type" = tracing::field::Empty,
        );
        Self { span }
    }

    pub(super) fn failed(&self) {
        self.span.record("error.type", "tool_error");
    }
}

/// Checks values from the client before they are added to a span.
#[cfg(feature = "spans")]
mod span_values {
    use rmcp::model::RequestId;

    /// The lengths of the parts of a `traceparent`: version, trace id, span id and flags.
    const TRACEPARENT_PART_LENGTHS: [usize; 4] = [2, 32, 16, 2];

    pub(super) fn protocol_version(text: &str) -> Option<&str> {
        let is_date = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        is_date.then_some(text)
    }

    /// Returns a numeric request id. A tracing span omits string ids, because they may contain any client data.
    pub(super) fn numeric_id(id: &RequestId) -> Option<i64> {
        match id {
            RequestId::Number(number) => Some(*number),
            RequestId::String(_) => None,
        }
    }

    pub(super) fn valid_traceparent(text: &str) -> Option<&str> {
        let parts: Vec<&str> = text.split('-').collect();
        let is_hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        let fits =
            parts.iter().map(|part| part.len()).eq(TRACEPARENT_PART_LENGTHS) && parts.iter().all(|part| is_hex(part));
        fits.then_some(text)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn accepts_only_well_formed_values() {
            let parent_text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
            assert_eq!(valid_traceparent(parent_text), Some(parent_text));
            for odd in ["", "00-x-y-01", "secret", &parent_text.to_uppercase(), &format!("{parent_text}-1")] {
                assert_eq!(valid_traceparent(odd), None, "{odd}");
            }
            assert_eq!((protocol_version("2026-07-28"), protocol_version("secret")), (Some("2026-07-28"), None));
        }
    }
}
