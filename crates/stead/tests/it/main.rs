//! The binary as people and clients start it.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "tests start the binary and look at the files it leaves")]

mod acp;
mod approvals;
mod attacks;
mod bench;
mod bounded;
mod channels;
mod commands;
mod config;
mod dialect_attacks;
mod dialects;
mod ending;
mod estate;
mod examples;
mod http;
mod inspector;
mod journal;
mod logged;
mod memory;
mod openapi;
mod python;
mod replay;
mod restart;
mod rpc;
mod scenarios;
mod served;
mod server;
mod story;
mod suite;
mod tls;
mod typescript;
