//! The server side of MCP: what it is, which tools it has, and what becomes of a call.

use std::{collections::HashMap, sync::Arc};

use engine::{Answer, Caller, Engine, Failure, Kind, Terms};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, Implementation,
        JsonObject, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, MetaObject,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
        ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool, ToolAnnotations,
        UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde_json::Map;
use tokio::sync::Mutex;

use super::{
    call,
    events::Events,
    question::{self, Brought, Issued},
    reply,
    resources::{self, Subscribed},
    transport::Closed,
};
use crate::{
    definition::{Definition, Listed, Operation},
    dialect::{Dialects, Request, failure_text},
    limits::SESSION_CHARS_MAX,
    push::Watching,
    run::{Asked, Runner, Seat},
};

/// How much of a wrong tool's name is shown back.
const SHOWN_CHARS_MAX: usize = 64;
/// Where a tool carries its tier.
const TIER_MEMBER: &str = "stead/tier";
/// Where a request carries its idempotency key.
const KEY_MEMBER: &str = "stead/key";
/// How long a client may keep the list of tools; it changes only with the program.
const TOOLS_FRESH_MS: u64 = 60 * 60 * 1000;

/// One client's server.
pub(super) struct Server {
    pub(super) caller: Caller,
    dialects: Arc<Dialects>,
    tools: Vec<Tool>,
    config: ServerConfig,
    engine: Engine,
    pub(super) runner: Runner,
    closed: Closed,
    seat: Seat,
    pub(super) subscribed: Mutex<Subscribed>,
    pub(super) addresses: Addresses,
    pub(super) events: Events,
    issued: Issued,
}

/// The address behind each watch of a subscription.
pub(super) type Addresses = Arc<Mutex<HashMap<String, String>>>;

impl Server {
    pub(super) fn new(engine: Engine, mut caller: Caller, dialects: Dialects, closed: Closed) -> Self {
        let instructions: Vec<&str> =
            dialects.iter().map(|dialect| dialect.definition().instructions.as_str()).collect();
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        let config = ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("stead", env!("CARGO_PKG_VERSION")))
            .with_instructions(instructions.join("\n\n"));
        let tools = dialects.iter().flat_map(|dialect| tools(dialect.definition())).collect();
        caller = caller.beginning(engine.workspace());
        for dialect in dialects.iter() {
            dialect.narrow(&mut caller);
        }
        let runner = Runner::new(engine.clone());
        Self {
            caller,
            dialects: Arc::new(dialects),
            tools,
            config,
            engine,
            runner,
            closed,
            seat: Seat::default(),
            subscribed: Mutex::default(),
            addresses: Addresses::default(),
            events: Events::default(),
            issued: Issued::default(),
        }
    }

    /// Whether the policy blocks a tool for this caller.
    fn is_blocked(&self, tool: &Tool) -> bool {
        let named = self.dialects.named(&tool.name);
        let declared =
            named.and_then(|(dialect, name)| Some((dialect, dialect.definition().operation(name)?)));
        declared.is_some_and(|(dialect, tool)| dialect.is_blocked(&self.engine, &self.caller, tool))
    }

    /// Makes one call.
    async fn ask(
        &self,
        tool: &str,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<Result<Answer, Failure>, ErrorData> {
        let Request { operation, arguments: native, terms } = match self.dialects.named(tool) {
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
        let outcome = call::run(&self.runner, &self.closed, asked, context).await?;
        if let (Ok(answer), Some((dialect, _))) = (&outcome, self.dialects.named(tool)) {
            let (caller, words) = (self.caller(context), dialect.definition().dialect.as_str());
            self.events.follow(&watching, answer, (&self.engine, &caller), (&self.dialects, words), context);
        }
        Ok(outcome)
    }

    /// A call of a tool that is not there: refused, and recorded like any other.
    fn unknown(&self, tool: &str) -> Request {
        let shown: String = tool.chars().take(SHOWN_CHARS_MAX).collect();
        let known: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_ref()).collect();
        let objection = Failure::new(Kind::UnknownOperation, format!("there is no tool '{shown}'"))
            .hint(format!("tools: {}", known.join(", ")));
        let terms = Terms { objection: Some(objection), ..Terms::default() };
        Request { operation: tool.to_owned(), arguments: Map::new(), terms }
    }

    /// Who asks: the principal is given, the session is what the client calls itself.
    pub(super) fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        let mut caller = self.caller.clone();
        if let Some(client) = context.client_info() {
            let plain = client.name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
            caller.session = plain.take(SESSION_CHARS_MAX).collect();
        }
        self.seat.take(caller)
    }
}

/// The tools of one dialect. The native one keeps its list short and leaves titles and the shape of answers to the reference.
fn tools(definition: &Definition) -> Vec<Tool> {
    let one = |operation: &Operation| {
        let tool = tool(operation);
        match operation.becomes {
            Some(_) => tool
                .with_title(&operation.title)
                .with_raw_output_schema(Arc::new(operation.output_schema(&definition.common_outputs))),
            None => tool,
        }
    };
    definition.operations.iter().filter(|operation| operation.listed == Listed::Yes).map(one).collect()
}

/// One operation as a tool.
fn tool(operation: &Operation) -> Tool {
    let hints = operation.hints;
    let annotations = ToolAnnotations::new()
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world);
    let mut description = format!("{} {}", operation.summary, operation.when);
    let meta = operation.tier.map(|tier| {
        description.push_str(&format!(" Tier: {tier}."));
        MetaObject(Map::from_iter([(TIER_MEMBER.to_owned(), tier.word().into())]))
    });
    let mut tool = Tool::new(operation.plain_name(), description, Arc::new(operation.input_schema()))
        .with_annotations(annotations);
    tool.meta = meta;
    tool
}

/// The idempotency key. One that is no text is passed on as an empty one, which the engine refuses: ignoring it could
/// make a change twice.
fn key(context: &RequestContext<RoleServer>) -> Option<String> {
    context.meta.get(KEY_MEMBER).map(|key| key.as_str().unwrap_or_default().to_owned())
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        self.config.clone()
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let offered = self.tools.iter().filter(|tool| !self.is_blocked(tool)).cloned().collect();
        Ok(ListToolsResult::with_all_items(offered).with_ttl_ms(TOOLS_FRESH_MS))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let brought = Brought { responses: request.input_responses, state: request.request_state };
        let (tool, arguments) = (request.name.into_owned(), request.arguments.unwrap_or_default());
        let named = self.dialects.named(&tool);
        let mut outcome = self.ask(&tool, &arguments, &context).await?;
        if let Err(failure) = &outcome {
            let caller = self.caller(&context);
            match question::put(&self.engine, &caller, failure, (&brought, &self.issued), &context).await {
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
        Ok(resources::list().with_ttl_ms(TOOLS_FRESH_MS))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates().with_ttl_ms(TOOLS_FRESH_MS))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.read_at(&request.uri, &context).await.map(Into::into)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscribe_to(&request.uri, &context).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.unsubscribe_from(&request.uri, &context).await;
        Ok(())
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
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
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
