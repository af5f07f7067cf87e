//! Dispatches methods: those of JSON-RPC itself, and the tools of the served dialects.

use serde_json::{Map, Value, json};
use stead_engine::Error;

use super::{
    RpcServer, capabilities,
    connection::RpcPendingMessage,
    errors::{self, RpcError},
    message::RpcRequest,
    progress::{self, RpcProgressReporter},
};
use crate::{
    call_executor::CallRequest,
    dialect::{self, Dialect, DialectReply, ReplyStatus},
    event_pusher::WatchEffect,
};

const UNKNOWN_METHOD_HINT: &str = "call rpc.discover or capabilities.list for the available methods";
/// Parameter with data about the call that is not an argument.
const META_MEMBER: &str = "_meta";
/// How long the call may wait for an approval.
const APPROVAL_WAIT_MEMBER: &str = "stead/hold_ms";
const IDEMPOTENCY_KEY_MEMBER: &str = "stead/key";

/// The reply of a tool, and the error behind it.
struct RpcToolResult<'a> {
    dialect: &'a dyn Dialect,
    reply: DialectReply,
    error: Option<Error>,
}

/// The `_meta` of a call.
struct RpcCallMeta {
    id: Option<Value>,
    idempotency_key: Option<String>,
    approval_wait_ms: u64,
    progress_token: Option<Value>,
}

impl RpcCallMeta {
    /// Takes `_meta` out of the parameters. A key that is not a string becomes an empty key, which the engine rejects;
    /// ignoring it could apply a change twice.
    fn take_from_params(id: Option<Value>, params: &mut Map<String, Value>) -> Result<Self, RpcError> {
        let meta = match params.remove(META_MEMBER) {
            None => Map::new(),
            Some(Value::Object(meta)) => meta,
            Some(_) => return Err(RpcError::new(errors::INVALID_PARAMS, "_meta must be an object")),
        };
        let idempotency_key = meta
            .get(IDEMPOTENCY_KEY_MEMBER)
            .map(|idempotency_key| idempotency_key.as_str().unwrap_or_default().to_owned());
        let approval_wait_ms = meta.get(APPROVAL_WAIT_MEMBER).and_then(Value::as_u64).unwrap_or_default();
        Ok(Self { id, idempotency_key, approval_wait_ms, progress_token: progress::progress_token(&meta)? })
    }
}

impl RpcServer {
    pub(super) async fn dispatch(&self, request: RpcRequest, pending: &RpcPendingMessage) -> Result<Value, RpcError> {
        let RpcRequest { id, method, mut params } = request;
        let meta = RpcCallMeta::take_from_params(id, &mut params)?;
        match method.as_str() {
            "rpc.discover" => {
                let definitions = self.dialects.iter().map(|dialect| dialect.definition());
                let document = super::openrpc_document(definitions)
                    .map_err(|error| RpcError::new(errors::INTERNAL_ERROR, error.to_string()))?;
                Ok(self.without_blocked_methods(document))
            }
            "capabilities.list" => capabilities::list_capabilities(self, &params),
            "capabilities.describe" => capabilities::describe_capability(self, &params),
            "capabilities.invoke" => self.invoke_capability(&params, meta, pending).await,
            "$/cancelRequest" => {
                pending.connection().cancel_call(params.get("id").unwrap_or(&Value::Null));
                Ok(Value::Null)
            }
            tool => {
                let result = self.run_tool(tool, &params, meta, pending).await?;
                result.into_result()
            }
        }
    }

    /// `capabilities.invoke`: a result in an envelope. Errors that have a protocol code stay JSON-RPC errors.
    async fn invoke_capability(
        &self,
        params: &Map<String, Value>,
        meta: RpcCallMeta,
        pending: &RpcPendingMessage,
    ) -> Result<Value, RpcError> {
        let invalid_params = || {
            RpcError::new(
                errors::INVALID_PARAMS,
                "capabilities.invoke takes {\"capability\": string, \"arguments\"?: object}",
            )
        };
        let none = Map::new();
        let capability = params.get("capability").and_then(Value::as_str).ok_or_else(invalid_params)?;
        let arguments = match params.get("arguments") {
            None => &none,
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(invalid_params()),
        };
        if params.keys().any(|name| !["capability", "arguments"].contains(&name.as_str())) {
            return Err(invalid_params());
        }
        let result = self.run_tool(capability, arguments, meta, pending).await;
        result
            .map_err(|error| match error.code {
                errors::METHOD_NOT_FOUND => RpcError { code: errors::INVALID_PARAMS, ..error },
                _ => error,
            })?
            .into_envelope()
    }

    /// Runs one tool. An unknown tool is rejected and recorded like any other call.
    async fn run_tool(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        meta: RpcCallMeta,
        pending: &RpcPendingMessage,
    ) -> Result<RpcToolResult<'_>, RpcError> {
        let found = self.dialects.find_tool(tool);
        let dialect::TranslatedCall { operation, arguments: native, options } = match found {
            Some((dialect, tool)) => dialect.translate_with_tier(tool, arguments),
            None => dialect::unknown_tool_call(tool, "method", UNKNOWN_METHOD_HINT),
        };
        let watch_effect = WatchEffect::for_operation(&operation);
        let request = CallRequest {
            caller: pending.caller_in_session(&self.caller),
            operation,
            arguments: native,
            options,
            idempotency_key: meta.idempotency_key.or_else(|| pending.connection().idempotency_key().cloned()),
            approval_wait_ms: meta.approval_wait_ms,
        };
        let cost_class = self.executor.cost_class(&request);
        let running_call = pending.register_call(meta.id.as_ref());
        let (sender, reporter) = RpcProgressReporter::new(pending.connection().sink(), meta.progress_token);
        let call = self.executor.run(
            request,
            cost_class,
            pending.other_requests(),
            sender,
            running_call.until_cancelled(cost_class),
        );
        let (result, ()) = tokio::join!(call, reporter.report_until_done());
        let result = result.map_err(|error| RpcError::new(errors::INTERNAL_ERROR, error.to_string()))?;
        pending.session().track_session_switch(&result);
        if let (Ok(outcome), Some(pusher), Some((dialect, _))) = (&result, pending.connection().event_pusher(), found) {
            let caller = pending.caller_in_session(&self.caller);
            pusher.apply_call(&watch_effect, outcome, self.executor.engine(), &caller, &dialect.definition().dialect);
        }
        match (result, found) {
            (result, Some((dialect, tool))) => {
                let error = result.as_ref().err().cloned();
                Ok(RpcToolResult { dialect, reply: dialect.render_reply(tool, arguments, result), error })
            }
            (Err(error), None) => Err(RpcError::from_error(&error, error.to_json())),
            (Ok(_), None) => Err(RpcError::new(errors::INTERNAL_ERROR, "an unknown method returned a result")),
        }
    }
}

impl RpcToolResult<'_> {
    /// The result of a direct call: the dialect's object, or an error that carries it.
    fn into_result(self) -> Result<Value, RpcError> {
        match (self.reply.status, &self.error) {
            (ReplyStatus::Success, _) => Ok(Value::Object(self.reply.json)),
            (ReplyStatus::Error, Some(error)) => Err(RpcError::from_error(error, self.reply.json)),
            (ReplyStatus::Error, None) => {
                Err(RpcError::new(errors::CALL_FAILED, self.reply.text).with_data(self.reply.json))
            }
        }
    }

    fn into_envelope(self) -> Result<Value, RpcError> {
        match (self.reply.status, &self.error) {
            (ReplyStatus::Success, _) => Ok(json!({ "success": true, "data": self.reply.json })),
            (ReplyStatus::Error, Some(error)) if errors::has_protocol_code(error.kind) => {
                Err(RpcError::from_error(error, self.reply.json))
            }
            (ReplyStatus::Error, error) => {
                let error = self.dialect.error_object(&self.reply, error.as_ref());
                Ok(json!({ "success": false, "error": error }))
            }
        }
    }
}
