//! The faces against a workspace in memory: what is declared, what is advertised, and what is said on the wire.
#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod acp;
mod client;
mod comma;
mod complete;
mod conformance;
mod conversation;
mod declared;
mod examples;
mod hostile;
mod http;
mod offered;
mod progress;
mod question;
mod resources;
mod rpc;
mod scenarios;
mod stories;
mod told;
mod weaver;
