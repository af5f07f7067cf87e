//! Tests of the protocols over a workspace in memory: definitions, advertised tools, and messages.
#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod acp;
mod comma;
#[cfg(feature = "tool-tests")]
mod conformance;
mod definitions;
mod elicitation;
mod examples;
mod http;
mod krux_coverage;
mod krux_events;
mod malformed_messages;
mod mcp_client;
mod pins;
mod progress;
mod prompts_and_completions;
mod resources;
mod rpc;
mod rpc_stories;
mod scenarios;
mod test_client;
mod weaver;
