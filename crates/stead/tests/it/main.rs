//! Tests of the binary, started as people and clients start it.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "tests start the binary and read the files it writes")]

mod acp;
mod administration;
mod approval_story;
mod approvals;
mod attacks;
mod cli_fixture;
mod commands;
mod config;
mod dialect_attacks;
mod dialects;
mod documents;
mod examples;
mod http;
mod journal;
#[cfg(feature = "tool-tests")]
mod mcp_conformance;
#[cfg(feature = "tool-tests")]
mod mcp_inspector;
mod mcp_stdio;
mod memory;
mod multi_workspace;
mod older;
#[cfg(feature = "tool-tests")]
mod openapi;
mod privilege_escalation;
#[cfg(feature = "tool-tests")]
mod python_client;
mod replay;
mod request_log;
mod resource_limits;
mod restart;
mod rpc;
mod scenarios;
mod server_process;
#[cfg(feature = "tool-tests")]
mod shutdown;
mod tls;
#[cfg(feature = "tool-tests")]
mod typescript_client;
