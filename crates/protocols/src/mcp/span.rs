//! One tracing span per MCP call, with attribute names of the OpenTelemetry conventions for MCP. Without the feature
//! `spans` this does nothing. A span holds our own names and numbers, no arguments and no results; of client data only
//! a well-formed trace parent.

use rmcp::{RoleServer, service::RequestContext};

/// The span of a running call.
pub(super) struct CallSpan {
    #[cfg(feature = "spans")]
    span: tracing::Span,
}

#[cfg(not(feature = "spans"))]
impl CallSpan {
    pub(super) fn begin(_method: &str, _tool: Option<&str>, _context: &RequestContext<RoleServer>) -> Self {
        Self {}
    }

    pub(super) fn failed(&self) {}
}

#[cfg(feature = "spans")]
impl CallSpan {
    pub(super) fn begin(method: &str, tool: Option<&str>, context: &RequestContext<RoleServer>) -> Self {
        let name = tool.map_or_else(|| method.to_owned(), |tool| format!("{method} {tool}"));
        let is_http = context.extensions.get::<axum::http::request::Parts>().is_some();
        let version = context.protocol_version().map(|version| version.to_string());
        let span = tracing::info_span!(
            target: crate::SPAN_TARGET,
            "mcp",
            otel.name = name,
            mcp.method.name = method,
            gen_ai.tool.name = tool,
            gen_ai.operation.name = tool.map(|_| "execute_tool"),
            mcp.protocol.version = version.as_deref().and_then(form::protocol_version),
            jsonrpc.request.id = form::numeric_id(&context.id),
            network.transport = if is_http { "tcp" } else { "pipe" },
            traceparent = context.meta.get("traceparent").and_then(|parent| form::valid_traceparent(parent.as_str()?)),
            "error.type" = tracing::field::Empty,
        );
        Self { span }
    }

    pub(super) fn failed(&self) {
        self.span.record("error.type", "tool_error");
    }
}

/// Validates client values before they enter a span.
#[cfg(feature = "spans")]
mod form {
    use rmcp::model::RequestId;

    /// Lengths of the parts of a `traceparent`: version, trace id, span id, flags.
    const TRACEPARENT_PART_LENGTHS: [usize; 4] = [2, 32, 16, 2];

    /// Accepts a revision that is a date.
    pub(super) fn protocol_version(text: &str) -> Option<&str> {
        let is_date = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        is_date.then_some(text)
    }

    /// Numeric ids only, because a string may hold anything.
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
