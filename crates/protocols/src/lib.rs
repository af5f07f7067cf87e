//! Protocols (MCP, JSON-RPC, HTTP, ACP) and dialects: they translate calls for one engine. They make no decisions, touch
//! no files and add no rules.

pub mod acp;
mod call_executor;
mod call_recorder;
pub mod definition;
pub mod dialect;
mod event_pusher;
pub mod http;
pub mod limits;
mod lines;
pub mod mcp;
mod progress;
pub mod rpc;

/// Tracing target of the spans that record calls.
#[cfg(feature = "spans")]
pub const SPAN_TARGET: &str = "stead::spans";
