//! One span for each call of an MCP client, with the names that OpenTelemetry's conventions for MCP give its parts. Built with
//! the feature `spans`; without it nothing happens here. A span holds names that are ours and numbers: no argument, no
//! answer, and of what a client wrote nothing but the trace it belongs to, when that has the form of one.

use rmcp::{RoleServer, service::RequestContext};

/// A call that is under way.
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
    /// Begins with a method, and the tool where it is one of ours.
    pub(super) fn begin(method: &str, tool: Option<&str>, context: &RequestContext<RoleServer>) -> Self {
        let name = tool.map_or_else(|| method.to_owned(), |tool| format!("{method} {tool}"));
        let is_http = context.extensions.get::<axum::http::request::Parts>().is_some();
        let version = context.protocol_version().map(|version| version.to_string());
        let span = tracing::info_span!(
            target: crate::SPANS,
            "mcp",
            otel.name = name,
            mcp.method.name = method,
            gen_ai.tool.name = tool,
            gen_ai.operation.name = tool.map(|_| "execute_tool"),
            mcp.protocol.version = version.as_deref().and_then(form::version),
            jsonrpc.request.id = form::number(&context.id),
            network.transport = if is_http { "tcp" } else { "pipe" },
            traceparent = context.meta.get("traceparent").and_then(|parent| form::parent(parent.as_str()?)),
            "error.type" = tracing::field::Empty,
        );
        Self { span }
    }

    /// What was asked for was not done.
    pub(super) fn failed(&self) {
        self.span.record("error.type", "tool_error");
    }
}

/// What a client may write into a span.
#[cfg(feature = "spans")]
mod form {
    use rmcp::model::RequestId;

    /// The parts of a trace's parent: a version, a trace, a span, flags.
    const PARENT: [usize; 4] = [2, 32, 16, 2];

    /// A revision is a date.
    pub(super) fn version(text: &str) -> Option<&str> {
        let is_date = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        is_date.then_some(text)
    }

    /// An id that is a number: texts may be anything.
    pub(super) fn number(id: &RequestId) -> Option<i64> {
        match id {
            RequestId::Number(number) => Some(*number),
            RequestId::String(_) => None,
        }
    }

    /// A parent that has the form of one.
    pub(super) fn parent(text: &str) -> Option<&str> {
        let parts: Vec<&str> = text.split('-').collect();
        let is_hex =
            |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        let fits = parts.iter().map(|part| part.len()).eq(PARENT) && parts.iter().all(|part| is_hex(part));
        fits.then_some(text)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn only_what_has_the_form_is_taken() {
            let parent_text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
            assert_eq!(parent(parent_text), Some(parent_text));
            for odd in ["", "00-x-y-01", "secret", &parent_text.to_uppercase(), &format!("{parent_text}-1")] {
                assert_eq!(parent(odd), None, "{odd}");
            }
            assert_eq!((version("2026-07-28"), version("secret")), (Some("2026-07-28"), None));
        }
    }
}
