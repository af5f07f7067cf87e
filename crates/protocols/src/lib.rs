//! The protocols (MCP, JSON-RPC, HTTP, ACP) and the dialects translate client messages into calls of one engine. Only
//! the engine decides about access and reads or writes files.

pub mod acp;
mod call_executor;
mod call_recorder;
pub mod definition;
pub mod dialect;
pub mod error_rows;
mod event_pusher;
pub mod http;
mod json_string;
pub mod limits;
mod lines;
pub mod mcp;
pub mod native;
pub mod prepared_call;
pub mod rpc;
mod strict_json;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose value stays consistent if a thread panics while it holds the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The tracing target of the spans that record MCP calls.
#[cfg(feature = "spans")]
pub const SPAN_TARGET: &str = "stead::spans";
