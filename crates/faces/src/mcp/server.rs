//! The server side of MCP: what it is, which tools it has, and what becomes of a call.

use std::{collections::HashMap, sync::Arc};

use engine::{Answer, Caller, Failure};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
        CustomRequest, CustomResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
        JsonObject, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
        ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::Mutex;

use super::{
    Belonging, annex,
    blueprint::Blueprint,
    call,
    events::Events,
    question::{self, Brought},
    reply,
    resources::{self, Subscribed},
    span::CallSpan,
    transport::Closed,
};
use crate::{
    dialect::{self, Request, failure_text},
    http::KEY_HEADER,
    limits::SESSION_CHARS_MAX,
    notes,
    push::Watching,
    run::{Asked, Seat},
};

/// Where a request carries its idempotency key.
const KEY_MEMBER: &str = "stead/key";
/// How long a client may keep the list of tools; it changes only with the program.
const TOOLS_FRESH_MS: u64 = 60 * 60 * 1000;

/// One client's server.
pub(crate) struct Server {
    pub(super) made: Arc<Blueprint>,
    closed: Closed,
    seat: Seat,
    /// The session that it was started for.
    belonging: Option<Arc<dyn Belonging>>,
    pub(super) subscribed: Mutex<Subscribed>,
    pub(super) addresses: Addresses,
    pub(super) events: Events,
}

/// The address behind each watch of a subscription.
pub(super) type Addresses = Arc<Mutex<HashMap<String, String>>>;

impl Server {
    /// A server as the blueprint says, for a client that may close its side.
    pub(crate) fn of(made: Arc<Blueprint>, closed: Closed) -> Self {
        Self {
            made,
            closed,
            seat: Seat::default(),
            belonging: None,
            subscribed: Mutex::default(),
            addresses: Addresses::default(),
            events: Events::default(),
        }
    }

    /// The same for a client that was started for a session.
    pub(super) fn belonging(mut self, belonging: Option<Arc<dyn Belonging>>) -> Self {
        self.belonging = belonging;
        self
    }

    /// Whether the policy blocks a tool for this caller.
    fn is_blocked(&self, tool: &Tool) -> bool {
        let named = self.made.dialects.named(&tool.name);
        let declared =
            named.and_then(|(dialect, name)| Some((dialect, dialect.definition().operation(name)?)));
        declared.is_some_and(|(dialect, tool)| dialect.is_blocked(&self.made.engine, &self.made.caller, tool))
    }

    /// Makes one call.
    async fn ask(
        &self,
        tool: &str,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<Result<Answer, Failure>, ErrorData> {
        let Request { operation, arguments: native, terms } = match self.made.dialects.named(tool) {
            Some((dialect, tool)) => dialect.ask(tool, arguments),
            None => self.unknown(tool),
        };
        let watching = Watching::of(&operation);
        let asked = Asked {
            caller: self.caller(context),
            operation,
            arguments: native,
            terms,
            key: key(context),
            hold_ms: 0,
        };
        let span =
            CallSpan::begin("tools/call", self.made.dialects.named(tool).map(|(_, tool)| tool), context);
        let outcome = call::run(&self.made.runner, &self.closed, asked, context).await?;
        outcome.as_ref().err().iter().for_each(|_| span.failed());
        if let (Ok(answer), Some((dialect, _))) = (&outcome, self.made.dialects.named(tool)) {
            let (caller, words) = (self.caller(context), dialect.definition().dialect.as_str());
            self.events.follow(
                &watching,
                answer,
                (&self.made.engine, &caller),
                (&self.made.dialects, words),
                context,
            );
        }
        Ok(outcome)
    }

    /// What the annex says; nothing where there is none, or the request is not about anything of its own.
    async fn annexed(
        &self,
        method: &str,
        params: &impl Serialize,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<Value, ErrorData>> {
        match &self.made.annex {
            Some(annex) => annex.ask(method, params, context).await,
            None => None,
        }
    }

    /// A call of a tool that is not there.
    fn unknown(&self, tool: &str) -> Request {
        let known: Vec<&str> = self.made.tools.iter().map(|tool| tool.name.as_ref()).collect();
        dialect::unknown(tool, "tool", &format!("tools: {}", known.join(", ")))
    }

    /// Who asks: the principal is given, the session is the one that the client was started for, or else what it calls
    /// itself.
    pub(super) fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        let mut caller = self.made.caller.clone();
        if let Some(session) = self.belonging.as_ref().and_then(|belonging| belonging.session()) {
            caller.session = session;
        } else if let Some(client) = context.client_info() {
            let plain = client.name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
            caller.session = plain.take(SESSION_CHARS_MAX).collect();
        }
        self.seat.take(caller)
    }
}

/// The idempotency key, in the message or beside it. One that is no text is passed on as an empty one, which the engine
/// refuses: ignoring it could make a change twice.
fn key(context: &RequestContext<RoleServer>) -> Option<String> {
    let beside = || {
        let head = context.extensions.get::<axum::http::request::Parts>()?;
        head.headers.get(KEY_HEADER).map(|key| key.to_str().unwrap_or_default().to_owned())
    };
    context.meta.get(KEY_MEMBER).map(|key| key.as_str().unwrap_or_default().to_owned()).or_else(beside)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        self.made.config.clone()
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let offered = self.made.tools.iter().filter(|tool| !self.is_blocked(tool)).cloned().collect();
        Ok(ListToolsResult::with_all_items(offered).with_ttl_ms(TOOLS_FRESH_MS))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.made.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.made.dialects.named(&request.name).is_none()
            && let Some(outcome) = self.annexed("tools/call", &request, &context).await
        {
            return annex::response::<CallToolResult, _>(outcome);
        }
        let brought = Brought { responses: request.input_responses, state: request.request_state };
        let (tool, arguments) = (request.name.into_owned(), request.arguments.unwrap_or_default());
        let named = self.made.dialects.named(&tool);
        let mut outcome = self.ask(&tool, &arguments, &context).await?;
        if let Err(failure) = &outcome {
            let caller = self.caller(&context);
            let asking = (&brought, &self.made.issued);
            match question::put(&self.made.engine, &caller, failure, asking, &context).await {
                question::Asked::Again => outcome = self.ask(&tool, &arguments, &context).await?,
                question::Asked::First(input) => return Ok(input.into()),
                question::Asked::Refused => {}
            }
        }
        self.seat.follow(&outcome);
        match (outcome, named) {
            (outcome, Some((dialect, tool))) => {
                Ok(reply::result(dialect.reply(tool, &arguments, outcome)).into())
            }
            // The protocol has its own answer for a tool that is not there; the engine has recorded the attempt.
            (Err(failure), None) => {
                Err(ErrorData::invalid_params(failure_text(&failure), Some(failure.to_json())))
            }
            (Ok(_), None) => Err(ErrorData::internal_error("a tool that is not there answered", None)),
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut listed = resources::list();
        listed.resources.extend(self.made.annex.iter().flat_map(|annex| annex.resources.clone()));
        Ok(listed.with_ttl_ms(TOOLS_FRESH_MS))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut listed = resources::templates();
        listed.resource_templates.extend(self.made.annex.iter().flat_map(|annex| annex.templates.clone()));
        Ok(listed.with_ttl_ms(TOOLS_FRESH_MS))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if !resources::is_own(&request.uri)
            && let Some(outcome) = self.annexed("resources/read", &request, &context).await
        {
            return annex::response::<ReadResourceResult, _>(outcome);
        }
        let span = CallSpan::begin("resources/read", None, &context);
        let read = notes::taking(call::noted(&context), self.read_at(&request.uri, &context)).await;
        read.as_ref().err().iter().for_each(|_| span.failed());
        read.map(Into::into)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if !resources::is_own(&request.uri)
            && let Some(outcome) = self.annexed("resources/subscribe", &request, &context).await
        {
            return outcome.map(drop);
        }
        self.subscribe_to(&request.uri, &context).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if !resources::is_own(&request.uri)
            && let Some(outcome) = self.annexed("resources/unsubscribe", &request, &context).await
        {
            return outcome.map(drop);
        }
        self.unsubscribe_from(&request.uri, &context).await;
        Ok(())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut prompts = self.guides();
        prompts.extend(self.made.annex.iter().flat_map(|annex| annex.prompts.clone()));
        Ok(ListPromptsResult::with_all_items(prompts).with_ttl_ms(TOOLS_FRESH_MS))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if let Some(guide) = self.guide(&request, &context).await {
            return guide.map(Into::into);
        }
        match self.annexed("prompts/get", &request, &context).await {
            Some(outcome) => annex::response::<GetPromptResult, _>(outcome),
            None => Err(ErrorData::invalid_params(format!("there is no prompt '{}'", request.name), None)),
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        if let Some(completed) = self.completed(&request, &context).await {
            return Ok(completed);
        }
        match self.annexed("completion/complete", &request, &context).await {
            Some(outcome) => annex::result(outcome),
            None => Ok(CompleteResult::default()),
        }
    }

    #[expect(deprecated, reason = "clients of the earlier era still send it to whoever declares logging")]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match self.annexed("logging/setLevel", &request, &context).await {
            Some(outcome) => outcome.map(drop),
            None => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "logging/setLevel", None)),
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(self.meant(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.listen_for(&context).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if let Some(outcome) = self.extended(&request, &context).await {
            return outcome;
        }
        // A call whose parameters do not fit arrives here too, because it matches no known request.
        if request.method == "tools/call" {
            return Err(ErrorData::invalid_params(
                "tools/call takes {\"name\": string, \"arguments\": object}",
                None,
            ));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }
}
