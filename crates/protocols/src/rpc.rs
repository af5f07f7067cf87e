//! The JSON-RPC 2.0 server, which is independent of the transport. A malformed message gets the error that JSON-RPC
//! defines, and the JSON-RPC server continues. The requests of a batch run in order, and notifications get no response.

use std::sync::Arc;

use serde_json::Value;
use stead_engine::{Caller, Engine};

use crate::{
    call_executor::CallExecutor,
    definition::{DialectDefinition, ToolDefinition},
    dialect::{Dialect, DialectSet},
    limits::BATCH_REQUESTS_MAX,
};

mod capabilities;
mod connection;
mod message;
mod methods;
mod transport;

pub use connection::{RpcConnection, RpcPendingMessageGuard};
pub use message::errors;
pub(crate) use transport::FramedRpcConnection;
pub use transport::serve;

use message::RpcMessageError;

/// The generated parts of the OpenRPC document, with the methods of the server and of every dialect.
const OPENRPC_JSON: &str = include_str!("generated/openrpc.json");

/// A JSON-RPC server for any number of connections of one caller.
pub struct RpcServer {
    caller: Caller,
    dialects: DialectSet,
    executor: Arc<CallExecutor>,
}

/// An error because the generated OpenRPC document in this program cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[error("the embedded OpenRPC document cannot be parsed: {0}")]
pub struct OpenRpcParseError(#[from] serde_json::Error);

impl RpcServer {
    /// Creates a JSON-RPC server that offers the methods of `dialects` and runs every call as `caller`.
    pub fn new(engine: Engine, caller: Caller, dialects: DialectSet) -> Arc<Self> {
        Self::with_executor(Arc::new(CallExecutor::new(engine)), caller, dialects)
    }

    pub(crate) fn with_executor(executor: Arc<CallExecutor>, mut caller: Caller, dialects: DialectSet) -> Arc<Self> {
        caller = caller.starting_session_now(executor.engine().workspace());
        for dialect in dialects.iter() {
            dialect.restrict_grants(&mut caller);
        }
        Arc::new(Self { caller, dialects, executor })
    }

    fn find_definition(&self, name: &str) -> Option<(&Arc<dyn Dialect>, &ToolDefinition)> {
        let (dialect, tool) = self.dialects.find_tool(name)?;
        Some((dialect, dialect.definition().find_tool(tool)?))
    }

    /// Returns whether the policy blocks a tool for the caller on every path.
    fn is_blocked(&self, dialect: &dyn Dialect, tool: &ToolDefinition) -> bool {
        dialect.is_blocked(self.executor.engine(), &self.caller, tool)
    }

    fn without_blocked_methods(&self, mut document: Value) -> Value {
        let blocked =
            |name: &str| self.find_definition(name).is_some_and(|(dialect, tool)| self.is_blocked(&**dialect, tool));
        if let Some(methods) = document["methods"].as_array_mut() {
            methods.retain(|method| !method["name"].as_str().is_some_and(blocked));
        }
        document
    }

    /// Answers one JSON-RPC message, which is a request, a notification or a batch, with the text of a JSON value. Returns
    /// `None` if the JSON-RPC message contains only notifications.
    pub async fn answer_message(&self, message: &[u8], pending: &RpcPendingMessageGuard) -> Option<String> {
        match message::parse_message(message) {
            Ok(Value::Array(requests)) => self.answer_batch(requests, pending).await,
            Ok(request) => self.answer_request(request, pending).await,
            Err(error) => Some(error.into_response()),
        }
    }

    /// Answers the requests of a batch in order, so that a later request sees the effects of an earlier request.
    async fn answer_batch(&self, requests: Vec<Value>, pending: &RpcPendingMessageGuard) -> Option<String> {
        let reject = |reason| Some(RpcMessageError::invalid_request(None, reason).into_response());
        if requests.is_empty() {
            return reject("the batch is empty; send at least one request");
        }
        if requests.len() > BATCH_REQUESTS_MAX {
            return reject("the batch contains too many requests; send several batches");
        }
        if pending.connection().idempotency_key.is_some() {
            return reject("an Idempotency-Key header cannot cover a batch; set _meta[\"stead/key\"] on each request");
        }
        let mut responses = Vec::new();
        for request in requests {
            responses.extend(self.answer_request(request, pending).await);
        }
        (!responses.is_empty()).then(|| format!("[{}]", responses.join(",")))
    }

    async fn answer_request(&self, value: Value, pending: &RpcPendingMessageGuard) -> Option<String> {
        let request = match message::parse_request(value) {
            Ok(request) => request,
            Err(error) => return Some(error.into_response()),
        };
        let id = request.id.clone();
        let outcome = self.dispatch(request, pending).await;
        id.map(|id| message::response(&id, outcome))
    }
}

/// Builds the OpenRPC document of the given dialects, which the method `rpc.discover` returns.
pub fn openrpc_document<'a>(
    definitions: impl Iterator<Item = &'a DialectDefinition>,
) -> Result<Value, OpenRpcParseError> {
    let mut generated: Value = serde_json::from_str(OPENRPC_JSON)?;
    let mut methods = take_array(&mut generated["face"]);
    for definition in definitions {
        methods.extend(take_array(&mut generated["dialects"][definition.dialect.as_str()]));
    }
    let mut document = generated["frame"].take();
    document["methods"] = methods.into();
    Ok(document)
}

fn take_array(methods: &mut Value) -> Vec<Value> {
    methods.as_array_mut().map(std::mem::take).unwrap_or_default()
}
