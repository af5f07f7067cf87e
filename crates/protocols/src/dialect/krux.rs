//! The dialect `krux` has capabilities with dotted names, permission tiers, absolute paths, and errors that suggest the
//! next call. Replies have the fields that the dialect's document describes. Every suggested recovery action is a call
//! of an existing capability.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use stead_engine::{CallOptions, Error, ErrorKind, OfferedToolAndOperation, ops::WatchEventRow};

use super::{
    Dialect, DialectConstructionResult, DialectOptionValuesByName, DialectReply, DialectToolCall,
    DialectWorkspaceRootPath,
    arguments::{ArgumentCheckResult, ArgumentIntegerSyntax},
};
use crate::{
    definition::{DialectDefinition, ToolDefinition},
    prepared_call::PreparedCall,
};

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
    Ok(Arc::new(KruxDialect { definition, paths: KruxPathMapper::new(&location.root) }))
}

struct KruxCall {
    dialect: Arc<KruxDialect>,
    capability: String,
    /// The paths in the inputs of the call, by the name of the input.
    given_paths: Map<String, Value>,
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

    fn parse_input(&self, tool: &str, arguments: &Map<String, Value>) -> Result<KruxToolInput, Error> {
        let unknown = || Error::new(ErrorKind::UnknownOperation, "there is no such capability");
        let declared = self.definition.find_tool(tool).ok_or_else(unknown)?;
        let checked = ArgumentCheckResult::new(&self.definition, declared, ArgumentIntegerSyntax::Integer, arguments);
        match inputs::first_issue_error(&checked.issues, arguments) {
            Some(error) => Err(error),
            None => checked.decode().map_err(|error| Error::new(ErrorKind::BadRequest, error)),
        }
    }
}

impl KruxCall {
    fn translate(self: &Arc<Self>, input: &KruxToolInput, options: CallOptions) -> KruxPreparedCall {
        match input {
            KruxToolInput::File(input) => files::translate(self, input, options),
            KruxToolInput::Search(input) => search::translate(self, input, options),
            KruxToolInput::Agent(input) => agent::translate(self, input, options),
        }
    }
}

impl DialectToolCall for KruxCall {
    type Success = Result<Value, Error>;

    fn render(&self, result: Result<Self::Success, Error>) -> DialectReply {
        DialectReply::from_json(result.flatten().or_else(|error| {
            let missing = matches!(error.kind, ErrorKind::NotFound | ErrorKind::NotDirectory);
            // A missing file is a normal result of `stat`.
            if missing && self.capability == "filesystem.stat" {
                return Ok(json!({ "exists": false }));
            }
            Err(errors::error_object(self, &error))
        }))
    }
}

type KruxPreparedCall = Result<PreparedCall<DialectReply>, Error>;

impl Dialect for KruxDialect {
    fn definition(&self) -> &DialectDefinition {
        &self.definition
    }

    fn translate(self: Arc<Self>, tool: &str, arguments: &Map<String, Value>) -> PreparedCall<DialectReply> {
        let options =
            CallOptions { tool: self.full_name(tool), path_spelling: paths::path_syntax(), ..CallOptions::default() };
        let given_paths = errors::PATH_INPUTS.into_iter().filter_map(|name| arguments.get_key_value(name));
        let given_paths = given_paths.map(|(name, path)| (name.clone(), path.clone())).collect();
        let call = Arc::new(KruxCall { dialect: self.clone(), capability: tool.to_owned(), given_paths });
        let input = self.parse_input(tool, arguments);
        input.and_then(|input| call.translate(&input, options.clone())).unwrap_or_else(|error| {
            let operation = self.definition.find_tool(tool).and_then(|known| known.operation.as_deref());
            let operation = operation.unwrap_or("unknown");
            PreparedCall::rejected(operation, arguments, error, options, move |error| call.render(Err(error)))
        })
    }

    fn render_event(&self, event: &WatchEventRow) -> Value {
        agent::render_watch_event(&self.paths, event)
    }

    fn error_object(&self, reply: &DialectReply, _error: Option<&Error>) -> Value {
        let mut error = Map::new();
        for (name, value) in reply.json_fields() {
            let name = if name == "error" { "type".to_owned() } else { name };
            error.insert(name, value);
        }
        Value::Object(error)
    }
}
