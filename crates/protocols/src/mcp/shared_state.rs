//! The state that the MCP servers of one client share. A client of a later protocol version gets a new MCP server for
//! every request, so the state is built once per client.

use std::sync::Arc;

use rmcp::model::{Implementation, MetaObject, ServerCapabilities, ServerConfig, Tool, ToolAnnotations};
use serde_json::Map;
use stead_engine::{Caller, Engine};

use super::{elicitation::PendingElicitations, extension::McpExtensionWithParsedItems, resources};
use crate::{
    call_executor::CallExecutor,
    definition::{DialectDefinition, ToolDefinition, ToolVisibility},
    dialect::DialectSet,
};

const TIER_MEMBER: &str = "stead/tier";

pub(crate) struct McpSharedState {
    pub(super) caller: Caller,
    pub(super) dialects: Arc<DialectSet>,
    pub(super) tools: Vec<Tool>,
    pub(super) config: ServerConfig,
    pub(super) engine: Engine,
    pub(super) executor: Arc<CallExecutor>,
    pub(super) pending_elicitations: PendingElicitations,
    pub(super) extension: Option<Arc<McpExtensionWithParsedItems>>,
}

impl McpSharedState {
    pub(crate) fn new(executor: Arc<CallExecutor>, mut caller: Caller, dialects: DialectSet) -> Self {
        let engine = executor.engine().clone();
        let instructions: Vec<&str> =
            dialects.iter().map(|dialect| dialect.definition().instructions.as_str()).collect();
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .enable_extensions_with(resources::skills_extension())
            .build();
        let config = ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("stead", env!("CARGO_PKG_VERSION")))
            .with_instructions(instructions.join("\n\n"));
        let tools = dialects.iter().flat_map(|dialect| build_tools(dialect.definition())).collect();
        caller = caller.starting_session_now(engine.workspace());
        for dialect in dialects.iter() {
            dialect.restrict_grants(&mut caller);
        }
        Self {
            caller,
            dialects: Arc::new(dialects),
            tools,
            config,
            engine,
            executor,
            pending_elicitations: PendingElicitations::default(),
            extension: None,
        }
    }

    pub(crate) fn add_extension(&mut self, extension: &Arc<McpExtensionWithParsedItems>) {
        self.config.capabilities = extension.merged_capabilities(&self.config.capabilities);
        self.tools.extend(extension.tools.iter().cloned());
        self.extension = Some(extension.clone());
    }
}

/// Returns the MCP tools of one dialect. Native tools have no titles and no output schemas, so that the tool list stays
/// short.
fn build_tools(definition: &DialectDefinition) -> Vec<Tool> {
    let build = |operation: &ToolDefinition| {
        let tool = build_tool(operation);
        match operation.operation {
            Some(_) => tool
                .with_title(&operation.title)
                .with_raw_output_schema(Arc::new(operation.output_schema(&definition.common_outputs))),
            None => tool,
        }
    };
    definition.operations.iter().filter(|operation| operation.listed == ToolVisibility::Listed).map(build).collect()
}

fn build_tool(operation: &ToolDefinition) -> Tool {
    let hints = operation.hints;
    let annotations = ToolAnnotations::new()
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world);
    let mut description = format!("{} {}", operation.summary, operation.when_to_use);
    let meta = operation.tier.map(|tier| {
        description.push_str(&format!(" Tier: {tier}."));
        MetaObject(Map::from_iter([(TIER_MEMBER.to_owned(), tier.as_str().into())]))
    });
    let mut tool = Tool::new(operation.dotless_name(), description, Arc::new(operation.input_schema()))
        .with_annotations(annotations);
    tool.meta = meta;
    tool
}
