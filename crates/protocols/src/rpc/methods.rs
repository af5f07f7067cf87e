//! Dispatches a JSON-RPC request to a method of the server itself or to a tool of a dialect.

use serde_json::{Map, Value, json};
use stead_engine::{CallProgress, Error};

use super::{
    RpcServer, capabilities,
    connection::RpcPendingMessageGuard,
    errors,
    message::{self, RpcError, RpcRequest, echoable_id},
};
use crate::{
    call_executor::{CallRequest, ClientDisconnectedError, progress_channel},
    dialect::{self, Dialect, DialectReply, ReplyStatus},
    lines::into_line,
    native::{CallStyle, without_nulls},
};

const UNKNOWN_METHOD_HINT: &str = "call rpc.discover or capabilities.list for the available methods";
/// The JSON-RPC parameter for data about a call, such as its idempotency key.
const META_MEMBER: &str = "_meta";
/// The member of `_meta` that says how many milliseconds the call may wait for an approval.
const APPROVAL_WAIT_MEMBER: &str = "stead/hold_ms";
const IDEMPOTENCY_KEY_MEMBER: &str = "stead/key";
const PROGRESS_TOKEN_MEMBER: &str = "progressToken";
const PROGRESS_METHOD: &str = "$/progress";

struct RpcToolReplyAndError<'a> {
    dialect: &'a dyn Dialect,
    reply: DialectReply,
    error: Option<Error>,
}

struct RpcCallMeta {
    id: Option<Value>,
    idempotency_key: Option<String>,
    approval_wait_ms: u64,
    progress_token: Option<Value>,
}

impl RpcCallMeta {
    /// Takes `_meta` out of the parameters. An idempotency key that is not a string becomes an empty key, which the
    /// engine rejects. Ignoring an invalid idempotency key could apply a repeated change twice.
    fn take_from_params(id: Option<Value>, params: &mut Map<String, Value>) -> Result<Self, RpcError> {
        let meta = match params.remove(META_MEMBER) {
            None => Map::new(),
            Some(Value::Object(meta)) => meta,
            Some(_) => return Err(RpcError::new(errors::INVALID_PARAMS, "_meta must be an object")),
        };
        let idempotency_key = meta.get(IDEMPOTENCY_KEY_MEMBER).map(|key| key.as_str().unwrap_or_default().to_owned());
        let approval_wait_ms = meta.get(APPROVAL_WAIT_MEMBER).and_then(Value::as_u64).unwrap_or_default();
        Ok(Self { id, idempotency_key, approval_wait_ms, progress_token: progress_token(&meta)? })
    }
}

impl RpcServer {
    pub(super) async fn dispatch(
        &self,
        request: RpcRequest,
        pending: &RpcPendingMessageGuard,
    ) -> Result<String, RpcError> {
        let RpcRequest { id, method, mut params } = request;
        let meta = RpcCallMeta::take_from_params(id, &mut params)?;
        match method.as_str() {
            "rpc.discover" => {
                let definitions = self.dialects.iter().map(|dialect| dialect.definition());
                let document = super::openrpc_document(definitions)
                    .map_err(|error| RpcError::new(errors::INTERNAL_ERROR, error.to_string()))?;
                Ok(self.without_blocked_methods(document).to_string())
            }
            "capabilities.list" => capabilities::list_capabilities(self, &params).map(|list| list.to_string()),
            "capabilities.describe" => capabilities::describe_capability(self, &params).map(|found| found.to_string()),
            "capabilities.invoke" => self.invoke_capability(&params, meta, pending).await,
            "$/cancelRequest" => {
                pending.connection().cancel_call(params.get("id").unwrap_or(&Value::Null));
                Ok("null".to_owned())
            }
            tool => {
                let result = self.run_tool(tool, &params, meta, pending).await?;
                result.into_result()
            }
        }
    }

    async fn invoke_capability(
        &self,
        params: &Map<String, Value>,
        meta: RpcCallMeta,
        pending: &RpcPendingMessageGuard,
    ) -> Result<String, RpcError> {
        let usage = "capabilities.invoke takes {\"capability\": string, \"arguments\"?: object}";
        let invalid_params = || RpcError::new(errors::INVALID_PARAMS, usage);
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
        let result = self.run_tool(capability, arguments, meta, pending).await.map_err(|error| match error.code {
            errors::METHOD_NOT_FOUND => RpcError { code: errors::INVALID_PARAMS, ..error },
            _ => error,
        })?;
        result.into_envelope()
    }

    async fn run_tool(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        meta: RpcCallMeta,
        pending: &RpcPendingMessageGuard,
    ) -> Result<RpcToolReplyAndError<'_>, RpcError> {
        let found = self.dialects.find_tool(tool);
        let translated = match found {
            Some((dialect, tool)) => dialect.translate_with_tier(tool, arguments),
            None => dialect::unknown_tool_call(tool, "method", UNKNOWN_METHOD_HINT),
        };
        let request = CallRequest {
            idempotency_key: meta.idempotency_key.or_else(|| pending.connection().idempotency_key.clone()),
            approval_wait_ms: meta.approval_wait_ms,
            ..CallRequest::new(pending.caller_in_session(&self.caller), translated)
        };
        let running_call = pending.register_call(meta.id.as_ref());
        let progress_target = pending.connection().sink.clone().zip(meta.progress_token);
        let (sender, receiver) = progress_target.as_ref().map(|_| progress_channel()).unzip();
        let report = async {
            let (Some((sink, token)), Some(receiver)) = (progress_target, receiver) else { return };
            let notify = |progress: CallProgress| {
                let line = into_line(progress_notification(&token, progress).to_string());
                let sink = &sink;
                async move { sink.send(line).await.map_err(|_| ClientDisconnectedError) }
            };
            receiver.report_until_done(notify).await;
        };
        let call = self
            .executor
            .run(request, pending.other_requests(), sender, |cost_class| running_call.until_cancelled(cost_class));
        let (finished, ()) = tokio::join!(call, report);
        let finished = finished.map_err(|error| RpcError::new(errors::INTERNAL_ERROR, error.to_string()))?;
        pending.connection().session.track_session_switch(&finished);
        let Some((dialect, _)) = found else {
            let unknown = RpcError::new(errors::INTERNAL_ERROR, "internal error: an unknown method returned a result");
            return Err(finished
                .error
                .map_or(unknown, |error| RpcError::from_error(&error, CallStyle::ToolCall.error_to_json(&error))));
        };
        if let (Some(watch), Some(pusher)) = (&finished.watch, &pending.connection().event_pusher) {
            let caller = pending.caller_in_session(&self.caller);
            pusher.apply_call(watch, self.executor.engine(), &caller, &dialect.definition().dialect);
        }
        Ok(RpcToolReplyAndError { dialect: &**dialect, reply: finished.reply, error: finished.error })
    }
}

/// Returns the client's progress token, which must be an integer or a short string so that notifications can repeat it
/// exactly.
fn progress_token(meta: &Map<String, Value>) -> Result<Option<Value>, RpcError> {
    let Some(given) = meta.get(PROGRESS_TOKEN_MEMBER) else { return Ok(None) };
    match echoable_id(given) {
        Some(token) if !token.is_null() => Ok(Some(token)),
        Some(_) | None => {
            let message = format!("_meta.{PROGRESS_TOKEN_MEMBER} must be an integer or a short string");
            Err(RpcError::new(errors::INVALID_PARAMS, message))
        }
    }
}

fn progress_notification(token: &Value, progress: CallProgress) -> Value {
    let CallProgress { entries_done: done, found, .. } = progress;
    let params =
        without_nulls(json!({ "token": token, "done": done, "message": progress.to_string(), "found": found }));
    json!({ "jsonrpc": "2.0", "method": PROGRESS_METHOD, "params": params })
}

impl RpcToolReplyAndError<'_> {
    fn into_result(self) -> Result<String, RpcError> {
        match (self.reply.status, &self.error) {
            (ReplyStatus::Success, _) => Ok(self.reply.json),
            (ReplyStatus::Error, Some(error)) => Err(RpcError::from_error(error, self.reply.json_fields())),
            (ReplyStatus::Error, None) => {
                let fields = self.reply.json_fields();
                Err(RpcError::new(errors::CALL_FAILED, self.reply.text).with_data(fields))
            }
        }
    }

    fn into_envelope(self) -> Result<String, RpcError> {
        match (self.reply.status, &self.error) {
            (ReplyStatus::Success, _) => Ok(format!("{{\"success\":true,\"data\":{}}}", self.reply.json)),
            (ReplyStatus::Error, Some(error)) if message::has_protocol_code(error.kind) => {
                Err(RpcError::from_error(error, self.reply.json_fields()))
            }
            (ReplyStatus::Error, error) => {
                let error = self.dialect.error_object(&self.reply, error.as_ref());
                Ok(json!({ "success": false, "error": error }).to_string())
            }
        }
    }
}
