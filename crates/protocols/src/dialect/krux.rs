//! The dialect `krux` has capabilities with dotted names, permission tiers, absolute paths, and errors that suggest the
//! next call. Replies have the fields that the dialect's document describes. Every suggested recovery action is a call
//! of an existing capability.

use serde_json::{Map, Value, json};
use stead_engine::{CallOptions, CallOutcome, Error, ErrorKind, OfferedToolAndOperation};

use super::{
    CallResult, Dialect, DialectConstructionResult, DialectReply, DialectSettings, DialectWorkspaceRootPath,
    TranslatedCall,
};
use crate::definition::{DialectDefinition, ToolDefinition};

mod agent;
mod args;
mod capability;
mod encoding;
mod errors;
mod files;
mod recovery;
mod search;

pub(crate) use errors::KruxErrorType;

use args::{KruxPathMapper, ValidatedKruxCallArgs};
use capability::{KruxFileOperation, KruxTool};

const DEFINITION_JSON: &str = include_str!("../generated/krux.json");

pub(super) struct KruxDialect {
    definition: DialectDefinition,
    paths: KruxPathMapper,
}

pub(super) fn build(_settings: &DialectSettings, location: &DialectWorkspaceRootPath) -> DialectConstructionResult {
    let definition = DialectDefinition::from_json(DEFINITION_JSON)?;
    Ok(Box::new(KruxDialect { definition, paths: KruxPathMapper::new(&location.root) }))
}

struct KruxCall<'a> {
    dialect: &'a KruxDialect,
    capability: KruxTool,
    inputs: ValidatedKruxCallArgs<'a>,
}

impl KruxDialect {
    /// The engine needs all capabilities for calls that report which capabilities the policy allows.
    fn offered_tools(&self) -> Vec<OfferedToolAndOperation> {
        let offered = |tool: &ToolDefinition| OfferedToolAndOperation {
            operation: tool.engine_operation().to_owned(),
            tool: self.full_name(&tool.name),
        };
        self.definition.operations.iter().map(offered).collect()
    }

    fn parse_call<'a>(&'a self, tool: &str, arguments: &'a Map<String, Value>) -> Result<KruxCall<'a>, Error> {
        let unknown = || Error::new(ErrorKind::UnknownOperation, "there is no such capability");
        let declared = self.definition.find_tool(tool).ok_or_else(unknown)?;
        let capability = KruxTool::from_name(tool).ok_or_else(unknown)?;
        let inputs = ValidatedKruxCallArgs::validate(declared, arguments)?;
        Ok(KruxCall { dialect: self, capability, inputs })
    }
}

impl KruxCall<'_> {
    fn translate(&self, options: CallOptions) -> Result<TranslatedCall, Error> {
        match self.capability {
            KruxTool::File(capability) => files::translate(self, capability, options),
            KruxTool::Search(capability) => search::translate(self, capability, options),
            KruxTool::Agent(capability) => agent::translate(self, capability, options),
        }
    }

    fn render_success(&self, outcome: &CallOutcome) -> Result<Value, Error> {
        match self.capability {
            KruxTool::File(capability) => files::render_outcome(self, capability, outcome),
            KruxTool::Search(capability) => Ok(search::render_outcome(self, capability, outcome)),
            KruxTool::Agent(capability) => Ok(agent::render_outcome(self, capability, outcome)),
        }
    }
}

impl Dialect for KruxDialect {
    fn definition(&self) -> &DialectDefinition {
        &self.definition
    }

    fn translate(&self, tool: &str, arguments: &Map<String, Value>) -> TranslatedCall {
        let options =
            CallOptions { tool: self.full_name(tool), path_spelling: args::path_syntax(), ..CallOptions::default() };
        let translated = self.parse_call(tool, arguments).and_then(|call| call.translate(options.clone()));
        translated.unwrap_or_else(|error| {
            let operation = self.definition.find_tool(tool).and_then(|known| known.operation.as_deref());
            TranslatedCall::rejected(operation.unwrap_or("unknown"), arguments, error, options)
        })
    }

    fn render_reply(&self, tool: &str, arguments: &Map<String, Value>, outcome: CallResult) -> DialectReply {
        let result = outcome.and_then(|outcome| self.parse_call(tool, arguments)?.render_success(&outcome));
        DialectReply::from_json(result.or_else(|error| {
            let capability = KruxTool::from_name(tool);
            let missing = matches!(error.kind, ErrorKind::NotFound | ErrorKind::NotDirectory);
            // A missing file is a normal result of `stat`.
            if missing && capability == Some(KruxTool::File(KruxFileOperation::Stat)) {
                return Ok(json!({ "exists": false }));
            }
            Err(errors::error_object(self, tool, capability, arguments, &error))
        }))
    }

    fn render_event(&self, native: &Map<String, Value>) -> Map<String, Value> {
        agent::render_watch_event(&self.paths, native)
    }

    fn error_object(&self, reply: &DialectReply, _error: Option<&Error>) -> Value {
        let mut error = Map::new();
        for (name, value) in &reply.json {
            let name = if name == "error" { "type" } else { name };
            error.insert(name.to_owned(), value.clone());
        }
        Value::Object(error)
    }
}
