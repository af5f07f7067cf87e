//! `krux`: capabilities with dotted names, tiers, absolute paths, and errors that name the next call. Returns the
//! documented fields; every recovery action is a call that exists.

use serde_json::{Map, Value, json};
use stead_engine::{CallOptions, CallOutcome, Error, ErrorKind, OfferedTool};

use super::{Dialect, DialectError, DialectReply, DialectSettings, ReplyStatus, TranslatedCall, WorkspaceLocation};
use crate::definition::{DialectDefinition, ToolDefinition};

mod agent;
mod args;
mod capability;
mod encoding;
mod errors;
mod files;
mod paths;
mod recovery;
mod search;
mod transfer;
mod watch;

use args::KruxInputs;
use capability::{KruxCapability, KruxFileCapability};
use paths::KruxPathMapper;

const DEFINITION_JSON: &str = include_str!("../generated/krux.json");

pub(super) struct KruxDialect {
    definition: DialectDefinition,
    paths: KruxPathMapper,
}

pub(super) fn build(
    _settings: &DialectSettings,
    location: &WorkspaceLocation,
) -> Result<Box<dyn Dialect>, DialectError> {
    let definition = DialectDefinition::from_json(DEFINITION_JSON)?;
    Ok(Box::new(KruxDialect { definition, paths: KruxPathMapper::new(&location.root) }))
}

/// A call with validated inputs.
struct KruxCall<'a> {
    dialect: &'a KruxDialect,
    capability: KruxCapability,
    inputs: KruxInputs<'a>,
}

impl KruxDialect {
    /// Every capability, for calls that report which ones the policy allows.
    fn offered_tools(&self) -> Vec<OfferedTool> {
        let offered = |tool: &ToolDefinition| OfferedTool {
            operation: tool.engine_operation().to_owned(),
            tool: self.full_name(&tool.name),
        };
        self.definition.operations.iter().map(offered).collect()
    }

    fn parse_call<'a>(&'a self, tool: &str, arguments: &'a Map<String, Value>) -> Result<KruxCall<'a>, Error> {
        let unknown = || Error::new(ErrorKind::UnknownOperation, "there is no such capability");
        let declared = self.definition.find_tool(tool).ok_or_else(unknown)?;
        let capability = KruxCapability::from_name(tool).ok_or_else(unknown)?;
        let inputs = KruxInputs::validate(declared, arguments)?;
        Ok(KruxCall { dialect: self, capability, inputs })
    }
}

impl KruxCall<'_> {
    fn translate(&self, options: CallOptions) -> Result<TranslatedCall, Error> {
        match self.capability {
            KruxCapability::File(file) => files::translate(self, file, options),
            KruxCapability::Transfer(capability) => transfer::translate(self, capability, options),
            KruxCapability::Search(capability) => search::translate(self, capability, options),
            KruxCapability::Watch(capability) => watch::translate(self, capability, options),
            KruxCapability::Agent(capability) => Ok(agent::translate(self, capability, options)),
        }
    }

    fn render_success(&self, outcome: &CallOutcome) -> Result<Value, Error> {
        match self.capability {
            KruxCapability::File(file) => files::render_outcome(self, file, outcome),
            KruxCapability::Transfer(capability) => Ok(transfer::render_outcome(self, capability, outcome)),
            KruxCapability::Search(capability) => Ok(search::render_outcome(self, capability, outcome)),
            KruxCapability::Watch(capability) => Ok(watch::render_outcome(self, capability, outcome)),
            KruxCapability::Agent(capability) => Ok(agent::render_outcome(self, capability, outcome)),
        }
    }
}

impl Dialect for KruxDialect {
    fn definition(&self) -> &DialectDefinition {
        &self.definition
    }

    fn translate(&self, tool: &str, arguments: &Map<String, Value>) -> TranslatedCall {
        let options =
            CallOptions { tool: self.full_name(tool), path_spelling: paths::path_syntax(), ..CallOptions::default() };
        let translated = self.parse_call(tool, arguments).and_then(|call| call.translate(options.clone()));
        translated.unwrap_or_else(|error| {
            let operation = self.definition.find_tool(tool).and_then(|known| known.operation.clone());
            let options = CallOptions { argument_error: Some(error), ..options };
            let operation = operation.unwrap_or_else(|| "unknown".to_owned());
            TranslatedCall { operation, arguments: arguments.clone(), options }
        })
    }

    fn render_reply(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        outcome: Result<CallOutcome, Error>,
    ) -> DialectReply {
        let result = outcome.and_then(|outcome| self.parse_call(tool, arguments)?.render_success(&outcome));
        let (json, status) = match result {
            Ok(json) => (json, ReplyStatus::Success),
            Err(error) => match (KruxCapability::from_name(tool), error.kind) {
                // A missing file is a normal result of `stat`.
                (
                    Some(KruxCapability::File(KruxFileCapability::Stat)),
                    ErrorKind::NotFound | ErrorKind::NotDirectory,
                ) => (json!({ "exists": false }), ReplyStatus::Success),
                (known, _) => (errors::error_object(self, tool, known, arguments, &error), ReplyStatus::Error),
            },
        };
        let text = json.to_string();
        DialectReply { json: into_object(json), text, status }
    }

    fn render_event(&self, native: &Map<String, Value>) -> Map<String, Value> {
        watch::render_watch_event(&self.paths, native)
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

fn into_object(json: Value) -> Map<String, Value> {
    match json {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}
