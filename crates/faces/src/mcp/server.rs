//! The server side of MCP: what it is, which tools it has, and what becomes of a call.

use std::sync::Arc;

use engine::{Caller, Engine, Kind};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, Implementation,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
    },
    service::RequestContext,
};

use super::{
    call::{Asked, Runner},
    reply,
    transport::Closed,
};
use crate::{
    definition::{Definition, Operation},
    limits::SESSION_CHARS_MAX,
};

/// Where a request carries its idempotency key.
const KEY_MEMBER: &str = "stead/key";
/// How long a client may keep the list of tools; it changes only with the program.
const TOOLS_FRESH_MS: u64 = 60 * 60 * 1000;

/// One client's server.
pub(super) struct Server {
    caller: Caller,
    tools: Vec<Tool>,
    config: ServerConfig,
    runner: Runner,
}

impl Server {
    pub(super) fn new(engine: Engine, caller: Caller, definition: &Definition, closed: Closed) -> Self {
        let config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("stead", env!("CARGO_PKG_VERSION")))
            .with_instructions(definition.instructions.clone());
        let tools = definition.operations.iter().map(tool).collect();
        Self { caller, tools, config, runner: Runner::new(engine, closed) }
    }

    /// Who asks: the principal is given, the session is what the client calls itself.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        let mut caller = self.caller.clone();
        if let Some(client) = context.client_info() {
            let plain = client.name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
            caller.session = plain.take(SESSION_CHARS_MAX).collect();
        }
        caller
    }
}

/// One operation as a tool.
fn tool(operation: &Operation) -> Tool {
    let hints = operation.hints;
    let annotations = ToolAnnotations::with_title(&operation.title)
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world);
    let description = format!("{} {}", operation.summary, operation.when);
    Tool::new(operation.name.clone(), description, Arc::new(operation.input_schema()))
        .with_annotations(annotations)
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
        Ok(ListToolsResult::with_all_items(self.tools.clone()).with_ttl_ms(TOOLS_FRESH_MS))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let asked = Asked {
            caller: self.caller(&context),
            operation: request.name.into_owned(),
            arguments: request.arguments.unwrap_or_default(),
            key: key(&context),
        };
        match self.runner.run(asked, &context).await? {
            Ok(answer) => Ok(reply::answer(answer).into()),
            // The protocol has its own answer for a tool that is not there; the engine has recorded the attempt.
            Err(failure) if failure.kind == Kind::UnknownOperation => {
                Err(ErrorData::invalid_params(reply::failure_text(&failure), Some(failure.to_json())))
            }
            Err(failure) => Ok(reply::failure(&failure).into()),
        }
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
