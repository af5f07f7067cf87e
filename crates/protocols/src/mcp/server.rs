//! The MCP request handler, which answers tool requests and dispatches all other requests.

use std::sync::Arc;

use rmcp::{
    ErrorData, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult, CustomRequest,
        CustomResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, GetPromptResult, JsonObject,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerConfig, SubscribeRequestParams,
        SubscriptionFilter, Tool, UnsubscribeRequestParams,
    },
    service::SubscriptionContext,
};
use serde::Serialize;
use serde_json::Value;
use stead_engine::Caller;
use tokio::sync::Mutex;

use super::{
    AssignedSessionNameProvider, McpRequestContext,
    elicitation::{self, ElicitationNextStep, ElicitationReply},
    extension, resources,
    shared_state::McpSharedState,
    subscriptions::{McpSubscriptions, McpWatchEventNotifier, WatchedUris},
    tool_call::{self, McpCallSpan},
    transport::ClientClosedSignal,
};
use crate::{
    call_executor::{CallRequest, ConnectionCurrentSession},
    call_recorder,
    dialect::{self, DialectReply, error_text},
    http::IDEMPOTENCY_KEY_HEADER,
    limits::CLIENT_NAME_CHARS_MAX,
    native::CallStyle,
    prepared_call::{FinishedCall, PreparedCall},
};

const IDEMPOTENCY_KEY_MEMBER: &str = "stead/key";
/// The time in milliseconds for which a client may cache lists, which never change while the server runs.
const LISTS_CACHE_MS: u64 = 60 * 60 * 1000;

pub(crate) struct McpClientRequestHandler {
    pub(super) shared: Arc<McpSharedState>,
    close_signal: ClientClosedSignal,
    session: ConnectionCurrentSession,
    pub(super) session_resolver: Option<Arc<dyn AssignedSessionNameProvider>>,
    pub(super) subscriptions: Mutex<McpSubscriptions>,
    pub(super) watched_uris: WatchedUris,
    pub(super) watch_notifier: McpWatchEventNotifier,
}

impl McpClientRequestHandler {
    pub(crate) fn new(shared: Arc<McpSharedState>, close_signal: ClientClosedSignal) -> Self {
        Self {
            shared,
            close_signal,
            session: ConnectionCurrentSession::default(),
            session_resolver: None,
            subscriptions: Mutex::default(),
            watched_uris: WatchedUris::default(),
            watch_notifier: McpWatchEventNotifier::default(),
        }
    }

    fn is_blocked(&self, tool: &Tool) -> bool {
        let found = self.shared.dialects.find_tool(&tool.name);
        let declared = found.and_then(|(dialect, name)| Some((dialect, dialect.definition().find_tool(name)?)));
        declared.is_some_and(|(dialect, tool)| dialect.is_blocked(&self.shared.engine, &self.shared.caller, tool))
    }

    async fn call_operation(
        &self,
        tool: &str,
        arguments: &JsonObject,
        context: &McpRequestContext,
    ) -> Result<FinishedCall<DialectReply>, ErrorData> {
        let found = self.shared.dialects.find_tool(tool);
        let translated = match found {
            Some((dialect, tool)) => dialect.translate_with_tier(tool, arguments),
            None => self.unknown_tool_call(tool),
        };
        let request = CallRequest {
            idempotency_key: idempotency_key(context),
            ..CallRequest::new(self.caller_in_session(context), translated)
        };
        let span = McpCallSpan::begin("tools/call", found.map(|(_, tool)| tool), context);
        let finished = tool_call::run_call(&self.shared.executor, &self.close_signal, request, context).await?;
        if finished.error.is_some() {
            span.failed();
        }
        if let (Some(watch), Some((dialect, _))) = (&finished.watch, found) {
            let (caller, dialect_name) = (self.caller_in_session(context), dialect.definition().dialect.as_str());
            self.watch_notifier.apply_call(
                watch,
                (&self.shared.engine, &caller),
                (&self.shared.dialects, dialect_name),
                context,
            );
        }
        Ok(finished)
    }

    async fn call_extension(
        &self,
        method: &str,
        params: &impl Serialize,
        context: &McpRequestContext,
    ) -> Option<Result<Value, ErrorData>> {
        match &self.shared.extension {
            Some(extension) => extension.call(method, params, context).await,
            None => None,
        }
    }

    fn unknown_tool_call(&self, tool: &str) -> PreparedCall<DialectReply> {
        let known: Vec<&str> = self.shared.tools.iter().map(|tool| tool.name.as_ref()).collect();
        dialect::unknown_tool_call(tool, "tool", format!("tools: {}", known.join(", ")))
    }

    /// The session that a client has switched to takes precedence over the session for which the client was started. A
    /// client without an assigned session gets a session named after the client program.
    pub(super) fn caller_in_session(&self, context: &McpRequestContext) -> Caller {
        let mut caller = self.shared.caller.clone();
        if let Some(session) = self.session_resolver.as_ref().and_then(|resolver| resolver.current_session()) {
            caller.session = session;
        } else if let Some(client) = context.client_info() {
            let plain = client.name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
            caller.session = plain.take(CLIENT_NAME_CHARS_MAX).collect();
        }
        self.session.apply_to(caller)
    }
}

/// Returns the idempotency key of an MCP message or its HTTP header. An idempotency key that is not a string becomes an
/// empty key, which the engine rejects. Ignoring an invalid key could apply a repeated change twice.
fn idempotency_key(context: &McpRequestContext) -> Option<String> {
    let from_header = || {
        let parts = context.extensions.get::<axum::http::request::Parts>()?;
        parts.headers.get(IDEMPOTENCY_KEY_HEADER).map(|key| key.to_str().unwrap_or_default().to_owned())
    };
    context.meta.get(IDEMPOTENCY_KEY_MEMBER).map(|key| key.as_str().unwrap_or_default().to_owned()).or_else(from_header)
}

impl ServerHandler for McpClientRequestHandler {
    fn get_info(&self) -> ServerConfig {
        self.shared.config.clone()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: McpRequestContext,
    ) -> Result<ListToolsResult, ErrorData> {
        let offered = self.shared.tools.iter().filter(|tool| !self.is_blocked(tool)).cloned().collect();
        Ok(ListToolsResult::with_all_items(offered).with_ttl_ms(LISTS_CACHE_MS))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shared.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: McpRequestContext,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.shared.dialects.find_tool(&request.name).is_none()
            && let Some(outcome) = self.call_extension("tools/call", &request, &context).await
        {
            let mut response = extension::parse_response::<CallToolResult, CallToolResponse>(outcome)?;
            if let CallToolResponse::Complete(result) = &mut response {
                let structured = result.structured_content.take();
                result.structured_content =
                    structured.map(|value| tool_call::structured_content(value.to_string(), &context));
            }
            return Ok(response);
        }
        let reply = ElicitationReply { responses: request.input_responses, state: request.request_state };
        let (tool, arguments) = (request.name.into_owned(), request.arguments.unwrap_or_default());
        let found = self.shared.dialects.find_tool(&tool);
        let mut finished = self.call_operation(&tool, &arguments, &context).await?;
        if let Some(error) = &finished.error {
            let caller = self.caller_in_session(&context);
            let elicitations = (&reply, &self.shared.pending_elicitations);
            match elicitation::elicit_approval(&self.shared.engine, &caller, error, elicitations, &context).await {
                ElicitationNextStep::Retry => finished = self.call_operation(&tool, &arguments, &context).await?,
                ElicitationNextStep::InputRequired(input) => return Ok(input.into()),
                ElicitationNextStep::Refused => {}
            }
        }
        self.session.track_session_switch(&finished);
        match (finished.error, found) {
            // For an unknown tool, the protocol requires an error response instead of a tool result.
            (Some(error), None) => {
                Err(ErrorData::invalid_params(error_text(&error), Some(CallStyle::ToolCall.error_to_json(&error))))
            }
            (Some(_) | None, _) => Ok(tool_call::tool_result(finished.reply, &context).into()),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: McpRequestContext,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut listed = resources::list_resources();
        listed.resources.extend(self.shared.extension.iter().flat_map(|extension| extension.resources.clone()));
        Ok(listed.with_ttl_ms(LISTS_CACHE_MS))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: McpRequestContext,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut listed = resources::list_templates();
        listed
            .resource_templates
            .extend(self.shared.extension.iter().flat_map(|extension| extension.templates.clone()));
        Ok(listed.with_ttl_ms(LISTS_CACHE_MS))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: McpRequestContext,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if !resources::is_workspace_uri(&request.uri)
            && let Some(outcome) = self.call_extension("resources/read", &request, &context).await
        {
            return extension::parse_response::<ReadResourceResult, _>(outcome);
        }
        let span = McpCallSpan::begin("resources/read", None, &context);
        let recorder = tool_call::request_recorder(&context);
        let read = call_recorder::record_during(recorder, self.read_resource_at(&request.uri, &context)).await;
        if read.is_err() {
            span.failed();
        }
        read.map(Into::into)
    }

    async fn subscribe(&self, request: SubscribeRequestParams, context: McpRequestContext) -> Result<(), ErrorData> {
        if !resources::is_workspace_uri(&request.uri)
            && let Some(outcome) = self.call_extension("resources/subscribe", &request, &context).await
        {
            return outcome.map(drop);
        }
        self.subscribe_to_uri(&request.uri, &context).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: McpRequestContext,
    ) -> Result<(), ErrorData> {
        if !resources::is_workspace_uri(&request.uri)
            && let Some(outcome) = self.call_extension("resources/unsubscribe", &request, &context).await
        {
            return outcome.map(drop);
        }
        self.unsubscribe_from_uri(&request.uri, &context).await;
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: McpRequestContext,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut prompts = self.list_guides();
        prompts.extend(self.shared.extension.iter().flat_map(|extension| extension.prompts.clone()));
        Ok(ListPromptsResult::with_all_items(prompts).with_ttl_ms(LISTS_CACHE_MS))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: McpRequestContext,
    ) -> Result<GetPromptResponse, ErrorData> {
        if let Some(guide) = self.get_guide(&request, &context).await {
            return guide.map(Into::into);
        }
        match self.call_extension("prompts/get", &request, &context).await {
            Some(outcome) => extension::parse_response::<GetPromptResult, _>(outcome),
            None => Err(ErrorData::invalid_params(format!("unknown prompt '{}'", request.name), None)),
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: McpRequestContext,
    ) -> Result<CompleteResult, ErrorData> {
        if let Some(completed) = self.complete_path(&request, &context).await {
            return Ok(completed);
        }
        match self.call_extension("completion/complete", &request, &context).await {
            Some(outcome) => extension::parse_result(outcome),
            None => Ok(CompleteResult::default()),
        }
    }

    #[expect(deprecated, reason = "clients of earlier versions still send it to servers that declare logging")]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        context: McpRequestContext,
    ) -> Result<(), ErrorData> {
        match self.call_extension("logging/setLevel", &request, &context).await {
            Some(outcome) => outcome.map(drop),
            None => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "logging/setLevel", None)),
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(self.known_subscriptions(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.serve_subscription(&context).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: McpRequestContext,
    ) -> Result<CustomResult, ErrorData> {
        if let Some(outcome) = self.handle_extension_method(&request, &context).await {
            return outcome;
        }
        // The protocol library does not recognize a tool call with invalid parameters as a tool call.
        if request.method == "tools/call" {
            return Err(ErrorData::invalid_params("tools/call takes {\"name\": string, \"arguments\": object}", None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }
}
