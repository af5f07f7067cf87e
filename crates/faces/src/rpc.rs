//! JSON-RPC 2.0. A handler that knows no transport: bytes of one message in, the answer out, if it has one. Standard
//! input and output use it line by line; HTTP, WebSocket and sockets can use it as it is.
//!
//! Promises: what is malformed, ambiguous, too long or too deep is answered with the error the protocol names, and the
//! next message is served; ids come back as they were given; a batch is done and answered in its order; a notification is
//! done and never answered. Never decides whether something may be done.

use std::sync::Arc;

use engine::{Caller, Engine};
use serde_json::Value;

use crate::{
    definition::Operation,
    dialect::{Dialect, Dialects},
    run::Runner,
};

mod batch;
mod capabilities;
pub mod code;
mod conversation;
mod discover;
mod invoke;
mod message;
mod messages;
mod notice;
mod serve;
pub(crate) mod strict;

pub use conversation::{Admitted, Conversation};
pub use discover::document;
pub(crate) use messages::Messages;
pub use serve::serve;

/// One server of JSON-RPC, for any number of conversations with the same caller.
pub struct Rpc {
    caller: Caller,
    dialects: Dialects,
    runner: Arc<Runner>,
}

/// Why the methods cannot be described.
#[derive(Debug, thiserror::Error)]
#[error("the embedded document of methods is broken: {0}")]
pub struct Broken(#[from] serde_json::Error);

impl Rpc {
    /// A server of these dialects. The caller is who every call is made for.
    pub fn new(engine: Engine, caller: Caller, dialects: Dialects) -> Arc<Self> {
        Self::of(Arc::new(Runner::new(engine)), caller, dialects)
    }

    /// The same with calls that run beside those of other faces.
    pub(crate) fn of(runner: Arc<Runner>, mut caller: Caller, dialects: Dialects) -> Arc<Self> {
        caller = caller.beginning(runner.engine().workspace());
        for dialect in dialects.iter() {
            dialect.narrow(&mut caller);
        }
        Arc::new(Self { caller, dialects, runner })
    }

    /// Whether the policy blocks a tool for the caller, wherever it points.
    fn is_blocked(&self, dialect: &dyn Dialect, tool: &Operation) -> bool {
        dialect.is_blocked(self.runner.engine(), &self.caller, tool)
    }

    /// The document of methods without what the policy blocks.
    fn offered(&self, mut document: Value) -> Value {
        let blocked = |name: &str| {
            let named = self.dialects.named(name);
            let tool =
                named.and_then(|(dialect, tool)| Some((dialect, dialect.definition().operation(tool)?)));
            tool.is_some_and(|(dialect, tool)| self.is_blocked(dialect, tool))
        };
        if let Some(methods) = document["methods"].as_array_mut() {
            methods.retain(|method| !method["name"].as_str().is_some_and(blocked));
        }
        document
    }

    /// The answer to one message: one object, or a batch of them; nothing where only notifications came.
    pub async fn answer(&self, message: &[u8], admitted: &Admitted) -> Option<Value> {
        match strict::read(message) {
            Ok(Value::Array(several)) => self.batch(several, admitted).await,
            Ok(one) => self.one(one, admitted).await,
            Err(refused) => Some(refused.answer()),
        }
    }
}
