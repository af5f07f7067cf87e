//! Calls with JSON arguments, whose outcome is a JSON object that tests can look into.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use serde_json::{Map, Value};
use stead_engine::{
    BeforeAfterContentInclusion, CallControl, CallMetadata, CallOptions, CallReply, Caller, ConversationSessionSwitch,
    Engine, Error, ops::OperationWithDefinition,
};
pub use stead_protocols::native::*;

use crate::operation_schemas::check_result;

/// The outcome of a call as a JSON object for programs and as text for models and people.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedOutcome {
    /// The result of the call as a JSON object.
    pub json: Map<String, Value>,
    /// The result of the call as compact text for models and people.
    pub text: String,
    /// The session to which later calls belong, if the call switched to another session.
    pub session_switch: Option<ConversationSessionSwitch>,
}

/// Runs calls with JSON arguments.
pub trait EngineJsonCalls {
    /// Runs the call, and parses its outcome. An outcome in which a field occurs twice makes the test fail.
    fn call(&self, call: &JsonCall<'_>) -> Result<RenderedOutcome, Error>;
}

impl EngineJsonCalls for Engine {
    fn call(&self, call: &JsonCall<'_>) -> Result<RenderedOutcome, Error> {
        let finished = call.run(self);
        let session_switch = finished.session_switch.clone();
        let reply = finished.into_result()?;
        let json = reply.json_fields();
        if serde_json::to_string(&json).unwrap_or_default() != reply.json {
            panic!("{}: a field occurs twice in {}", call.operation, reply.json);
        }
        // Only dialects ask for the contents before and after, and for the fields that come with them.
        if call.options.before_after == BeforeAfterContentInclusion::Omit {
            check_result(call.operation, &json);
        }
        Ok(RenderedOutcome { json, text: reply.text, session_switch })
    }
}

/// Runs an operation with arguments that no client can give.
pub fn run_operation<O: OperationWithDefinition>(
    engine: &Engine,
    caller: &Caller,
    operation: O,
) -> Result<O::Result, Error> {
    let (options, control) = (CallOptions::default(), CallControl::default());
    let call = CallMetadata { caller, idempotency_key: None, options: &options, control: &control };
    engine.run(operation, &call).and_then(CallReply::into_outcome)
}
