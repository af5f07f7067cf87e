//! What every MCP server of the same client and the same dialects shares: made once, because a client of the later era
//! has a new server for every request.

use std::sync::Arc;

use engine::{Caller, Engine};
use rmcp::model::{
    ExtensionCapabilities, Implementation, MetaObject, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use serde_json::Map;

use super::{annex::Annexed, directory, question::Issued};
use crate::{
    definition::{Definition, Listed, Operation},
    dialect::Dialects,
    run::Runner,
};

/// Where a tool carries its tier.
const TIER_MEMBER: &str = "stead/tier";

/// Everything but what belongs to one conversation.
pub(crate) struct Blueprint {
    pub(super) caller: Caller,
    pub(super) dialects: Arc<Dialects>,
    pub(super) tools: Vec<Tool>,
    pub(super) config: ServerConfig,
    pub(super) engine: Engine,
    pub(super) runner: Arc<Runner>,
    /// What it gave clients to bring back.
    pub(super) issued: Issued,
    /// What is offered besides operations.
    pub(super) annex: Option<Arc<Annexed>>,
}

impl Blueprint {
    /// Servers of these dialects. The caller is who every call is made for.
    pub(crate) fn new(runner: Arc<Runner>, mut caller: Caller, dialects: Dialects) -> Self {
        let engine = runner.engine().clone();
        let instructions: Vec<&str> =
            dialects.iter().map(|dialect| dialect.definition().instructions.as_str()).collect();
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .enable_extensions_with(extensions())
            .build();
        let config = ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("stead", env!("CARGO_PKG_VERSION")))
            .with_instructions(instructions.join("\n\n"));
        let tools = dialects.iter().flat_map(|dialect| tools(dialect.definition())).collect();
        caller = caller.beginning(engine.workspace());
        for dialect in dialects.iter() {
            dialect.narrow(&mut caller);
        }
        Self {
            caller,
            dialects: Arc::new(dialects),
            tools,
            config,
            engine,
            runner,
            issued: Issued::default(),
            annex: None,
        }
    }

    /// The same with what somebody else offers besides.
    pub(crate) fn with_annex(mut self, annex: Arc<Annexed>) -> Self {
        self.config.capabilities = annex.capabilities(&self.config.capabilities);
        self.tools.extend(annex.tools.iter().cloned());
        self.annex = Some(annex);
        self
    }
}

/// The extension of the protocol whose way to read directories is served.
fn extensions() -> ExtensionCapabilities {
    let settings = directory::settings().as_object().cloned().unwrap_or_default();
    ExtensionCapabilities::from([(directory::EXTENSION.to_owned(), settings)])
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
