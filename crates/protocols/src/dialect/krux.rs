//! The dialect `krux` has capabilities with dotted names, permission tiers, absolute paths, and errors that suggest the
//! next call. Replies have the fields that the dialect's document describes. Every suggested recovery action is a call
//! of an existing capability.

use crate::native::RenderedOutcome;
use serde_json::{Map, Value, json};
use stead_engine::{CallOptions, Error, ErrorKind, OfferedToolAndOperation};

use super::{
    CallResult, Dialect, DialectConstructionResult, DialectOptionValuesByName, DialectReply, DialectWorkspaceRootPath,
    TranslatedCall,
    arguments::{ArgumentCheckResult, ArgumentIntegerSyntax},
};
use crate::definition::{DialectDefinition, ToolDefinition};

mod agent;
mod encoding;
mod errors;
mod files;
mod inputs;
mod paths;
mod recovery;
mod search;

pub(crate) use errors::KruxErrorType;

use inputs::KruxToolInput;
use paths::KruxPathMapper;

const DEFINITION_JSON: &str = include_str!("../generated/krux.json");

pub(super) struct KruxDialect {
    definition: DialectDefinition,
    paths: KruxPathMapper,
}

pub(super) fn build(
    _settings: &DialectOptionValuesByName,
    location: &DialectWorkspaceRootPath,
) -> DialectConstructionResult {
    let definition = DialectDefinition::from_json(DEFINITION_JSON)?;
    Ok(Box::new(KruxDialect { definition, paths: KruxPathMapper::new(&location.root) }))
}

struct KruxCall<'a> {
    dialect: &'a KruxDialect,
    input: KruxToolInput,
}

impl KruxDialect {
    /// The engine needs the list of all krux capabilities to report which of them the policy allows.
    fn offered_tools(&self) -> Vec<OfferedToolAndOperation> {
        let offered = |tool: &ToolDefinition| OfferedToolAndOperation {
            operation: tool.engine_operation().to_owned(),
            tool: self.full_name(&tool.name),
        };
        self.definition.operations.iter().map(offered).collect()
    }

    fn parse_call(&self, tool: &str, arguments: &Map<String, Value>) -> Result<KruxCall<'_>, Error> {
        let unknown = || Error::new(ErrorKind::UnknownOperation, "there is no such capability");
        let declared = self.definition.find_tool(tool).ok_or_else(unknown)?;
        let checked = ArgumentCheckResult::new(&self.definition, declared, ArgumentIntegerSyntax::Integer, arguments);
        match inputs::first_issue_error(&checked.issues, arguments) {
            Some(error) => Err(error),
            None => {
                let input = checked.decode().map_err(|error| Error::new(ErrorKind::BadRequest, error))?;
                Ok(KruxCall { dialect: self, input })
            }
        }
    }
}

impl KruxCall<'_> {
    fn translate(&self, options: CallOptions) -> Result<TranslatedCall, Error> {
        match &self.input {
            KruxToolInput::File(input) => files::translate(self, input, options),
            KruxToolInput::Search(input) => search::translate(input, options),
            KruxToolInput::Agent(input) => agent::translate(self, input, options),
        }
    }

    fn render_success(&self, outcome: &RenderedOutcome) -> Result<Value, Error> {
        match &self.input {
            KruxToolInput::File(input) => files::render_outcome(self, input, outcome),
            KruxToolInput::Search(input) => Ok(search::render_outcome(self, input, outcome)),
            KruxToolInput::Agent(input) => Ok(agent::render_outcome(self, input, outcome)),
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
            let operation = self.definition.find_tool(tool).and_then(|known| known.operation.as_deref());
            TranslatedCall::rejected(operation.unwrap_or("unknown"), arguments, error, options)
        })
    }

    fn render_reply(&self, tool: &str, arguments: &Map<String, Value>, outcome: CallResult) -> DialectReply {
        let result = outcome.and_then(|outcome| self.parse_call(tool, arguments)?.render_success(&outcome));
        DialectReply::from_json(result.or_else(|error| {
            let missing = matches!(error.kind, ErrorKind::NotFound | ErrorKind::NotDirectory);
            // A missing file is a normal result of `stat`.
            if missing && tool == "filesystem.stat" {
                return Ok(json!({ "exists": false }));
            }
            Err(errors::error_object(self, tool, arguments, &error))
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
