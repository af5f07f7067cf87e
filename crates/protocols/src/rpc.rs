//! JSON-RPC 2.0, independent of the transport: the bytes of one message in, the response out, if there is one. Standard
//! input and output use it line by line; HTTP, WebSocket and sockets use it as it is.
//!
//! A malformed, ambiguous, oversized or too deeply nested message gets the error that the protocol defines, and the
//! next message is served. Ids are echoed as given, batches run and are answered in order, notifications run without a
//! response. Makes no access decisions.

use std::sync::Arc;

use serde_json::Value;
use stead_engine::{Caller, Engine};

use crate::{
    call_executor::CallExecutor,
    definition::ToolDefinition,
    dialect::{Dialect, DialectSet},
};

mod batch;
mod capabilities;
mod connection;
pub mod errors;
mod framed_connection;
mod line_server;
mod message;
mod methods;
mod openrpc;
mod progress;
pub(crate) mod strict_json;

pub use connection::{RpcConnection, RpcPendingMessage};
pub(crate) use framed_connection::FramedRpcConnection;
pub use line_server::serve;
pub use openrpc::openrpc_document;

/// A JSON-RPC server for any number of connections of one caller.
pub struct RpcServer {
    caller: Caller,
    dialects: DialectSet,
    executor: Arc<CallExecutor>,
}

/// The embedded OpenRPC document cannot be parsed: the build is broken.
#[derive(Debug, thiserror::Error)]
#[error("the embedded OpenRPC document cannot be parsed: {0}")]
pub struct OpenRpcError(#[from] serde_json::Error);

impl RpcServer {
    /// A server for these dialects that makes every call for `caller`.
    pub fn new(engine: Engine, caller: Caller, dialects: DialectSet) -> Arc<Self> {
        Self::with_executor(Arc::new(CallExecutor::new(engine)), caller, dialects)
    }

    /// A server that shares its executor with other protocols.
    pub(crate) fn with_executor(executor: Arc<CallExecutor>, mut caller: Caller, dialects: DialectSet) -> Arc<Self> {
        caller = caller.starting_session_now(executor.engine().workspace());
        for dialect in dialects.iter() {
            dialect.restrict_grants(&mut caller);
        }
        Arc::new(Self { caller, dialects, executor })
    }

    /// Whether the policy blocks a tool for the caller on every path.
    fn is_blocked(&self, dialect: &dyn Dialect, tool: &ToolDefinition) -> bool {
        dialect.is_blocked(self.executor.engine(), &self.caller, tool)
    }

    /// Removes the methods that the policy blocks.
    fn without_blocked_methods(&self, mut document: Value) -> Value {
        let blocked = |name: &str| {
            let found = self.dialects.find_tool(name);
            let tool = found.and_then(|(dialect, tool)| Some((dialect, dialect.definition().find_tool(tool)?)));
            tool.is_some_and(|(dialect, tool)| self.is_blocked(dialect, tool))
        };
        if let Some(methods) = document["methods"].as_array_mut() {
            methods.retain(|method| !method["name"].as_str().is_some_and(blocked));
        }
        document
    }

    /// Answers one message: an object or a batch. `None` if it held only notifications.
    pub async fn answer_message(&self, message: &[u8], pending: &RpcPendingMessage) -> Option<Value> {
        match strict_json::parse_strict(message) {
            Ok(Value::Array(requests)) => self.answer_batch(requests, pending).await,
            Ok(request) => self.answer_request(request, pending).await,
            Err(error) => Some(error.into_response()),
        }
    }
}
