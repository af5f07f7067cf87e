//! Protocols and dialects as thin translations of one engine. A face carries a call in and an answer out; it decides
//! nothing, touches no file, and adds no rule of its own.

pub mod acp;
pub mod definition;
pub mod dialect;
pub mod http;
pub mod limits;
mod lines;
pub mod mcp;
mod notes;
mod progress;
mod push;
pub mod rpc;
mod run;

/// What spans of calls are marked with, for whoever collects them.
#[cfg(feature = "spans")]
pub const SPANS: &str = "stead::spans";
