//! Dialects: published sets of tools for the operations of the engine. A dialect translates a tool call into one engine
//! call, and the outcome into the reply that its document specifies. Each tool call leaves one journal entry, and a
//! dialect makes no decisions about files. The engine also records a tool call whose arguments the dialect rejects.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value, json};
use stead_engine::{CallOptions, Caller, Engine, Error, ErrorKind, NextStep, ops::WatchEventRow};

use crate::{
    definition::{DialectDefinition, DialectDefinitionParseError, ToolDefinition as Tool},
    limits::ECHOED_NAME_CHARS_MAX,
    native::{self, CallStyle},
    prepared_call::{OutcomeWithBytes, PreparedCall, RenderableOperation},
};

pub(crate) mod acp;
mod arguments;
mod comma;
mod jettson;
mod krux;
mod rendering;
mod weaver;

pub(crate) use comma::CommaErrorKind;
pub(crate) use krux::KruxErrorType;

/// The reply to a tool call, in the form of the dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialectReply {
    /// The text of the JSON object that is the dialect's reply for programs.
    pub json: String,
    /// The dialect's reply as a text for the model.
    pub text: String,
    pub status: ReplyStatus,
}

impl DialectReply {
    fn from_json(result: Result<Value, Value>) -> Self {
        let (json, status) = match result {
            Ok(json) => (json.to_string(), ReplyStatus::Success),
            Err(json) => (json.to_string(), ReplyStatus::Error),
        };
        Self { text: json.clone(), json, status }
    }

    /// Parses the fields of the dialect's reply for programs.
    pub fn json_fields(&self) -> Map<String, Value> {
        serde_json::from_str(&self.json).unwrap_or_default()
    }
}

/// Whether the reply to a tool call reports success or an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyStatus {
    Success,
    Error,
}

/// The part of the file system that a dialect may access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialectFilesystemReach {
    Workspace,
    /// The dialect may access every file that the process may access. A relative path in a call of the dialect starts
    /// at the workspace.
    WholeMachine,
}

/// A dialect is a set of tools whose calls are translated to engine calls.
pub trait Dialect: Send + Sync {
    /// The definition of the dialect, which lists its tools and settings.
    fn definition(&self) -> &DialectDefinition;

    /// Translates a tool call of the dialect into an engine call, whose outcome or error becomes the dialect's reply.
    fn translate(self: Arc<Self>, tool: &str, arguments: &Map<String, Value>) -> PreparedCall<DialectReply>;

    /// Renders an error for the JSON-RPC method `capabilities.invoke`, as an object with `type`, `message` and
    /// `recovery`.
    fn error_object(&self, reply: &DialectReply, error: Option<&Error>) -> Value {
        match error {
            Some(error) => {
                let hint = self.call_style().render_hint(error);
                let hint = hint.map(|hint| json!({ "action": "hint", "description": hint }));
                json!({
                    "type": error.kind.code(),
                    "message": error.message,
                    "recovery": hint.into_iter().collect::<Vec<_>>(),
                    "context": error.details,
                })
            }
            None => json!({ "type": "error", "message": reply.text, "recovery": [] }),
        }
    }

    /// How hints write suggested calls. By default, hints for a dialect name no calls.
    fn call_style(&self) -> CallStyle {
        CallStyle::DialectTool(|_| None)
    }

    /// Renders a watch event in the form of this dialect.
    fn render_event(&self, event: &WatchEventRow) -> Value {
        json!(event)
    }

    /// The full name of a tool in the journal and in policy rules. If the full name is `None`, the journal and the
    /// policy rules contain the name of the engine operation.
    fn full_name(&self, tool: &str) -> Option<String> {
        Some(format!("{}/{tool}", self.definition().dialect))
    }

    /// Whether the policy blocks a tool for the caller on every path, so that tool lists omit the tool.
    fn is_blocked(&self, engine: &Engine, caller: &Caller, tool: &Tool) -> bool {
        engine.is_tool_always_blocked(caller, tool.engine_operation(), self.full_name(&tool.name).as_deref())
    }

    /// The part of the file system that the settings of the dialect allow it to access.
    fn filesystem_reach(&self) -> DialectFilesystemReach {
        DialectFilesystemReach::Workspace
    }

    /// Removes grants of the caller that the settings of the dialect forbid, and never adds grants.
    fn restrict_grants(&self, _caller: &mut Caller) {}
}

impl dyn Dialect {
    /// Translates a tool call, and applies the supervision tier in the tool's definition. All protocols translate tool
    /// calls with `translate_with_tier`.
    pub fn translate_with_tier(
        self: &Arc<Self>,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> PreparedCall<DialectReply> {
        let mut call = self.clone().translate(tool, arguments);
        let tier = self.definition().find_tool(tool).and_then(|operation| operation.tier);
        call.options.declared_tier = call.options.declared_tier.max(tier);
        call
    }
}

/// The engine rejects and records a call of an unknown tool.
pub(crate) fn unknown_tool_call(name: &str, what: &str, hint: impl Into<NextStep>) -> PreparedCall<DialectReply> {
    let shortened: String = name.chars().take(ECHOED_NAME_CHARS_MAX).collect();
    let error = Error::new(ErrorKind::UnknownOperation, format!("unknown {what} '{shortened}'")).with_next_step(hint);
    PreparedCall::rejected(name, &Map::new(), error, CallOptions::default(), |error| native::error_reply(&error))
}

/// A tool call whose arguments a dialect has read.
trait DialectToolCall: Send + Sync + 'static {
    /// What the dialect makes of the outcome of the engine call.
    type Success;

    /// Renders the reply to a tool call from what the dialect made of the outcome, or from the error of the engine.
    fn render(&self, result: Result<Self::Success, Error>) -> DialectReply;

    /// Prepares the engine call of a tool call.
    fn prepare<O: RenderableOperation>(
        self: &Arc<Self>,
        arguments: O,
        options: CallOptions,
        success: impl FnOnce(&Self, OutcomeWithBytes<O::Result>) -> Self::Success + Send + 'static,
    ) -> PreparedCall<DialectReply> {
        let call = self.clone();
        PreparedCall::for_dialect(arguments, options, move |result| {
            call.render(result.map(|outcome| success(&call, outcome)))
        })
    }
}

/// The location of the workspace that a dialect serves.
#[derive(Debug, Clone)]
pub struct DialectWorkspaceRootPath {
    /// The absolute path of the workspace, which some dialects show in their replies.
    pub root: String,
}

type DialectConstructionResult = Result<Arc<dyn Dialect>, DialectSetupError>;
type DialectConstructor = fn(&DialectOptionValuesByName, &DialectWorkspaceRootPath) -> DialectConstructionResult;

const DIALECT_CONSTRUCTORS: &[(&str, DialectConstructor)] = &[
    ("stead", |_, _| Ok(Arc::new(NativeDialect(DialectDefinition::native()?)))),
    ("jettson", jettson::build),
    ("weaver", weaver::build),
    ("comma", comma::build),
    ("krux", krux::build),
];

/// The reason why a set of dialects cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum DialectSetupError {
    #[error(transparent)]
    InvalidDefinition(#[from] DialectDefinitionParseError),
    #[error("unknown dialect '{0}'; available: {list}", list = dialect_names().join(", "))]
    UnknownDialect(String),
    #[error("the dialects {first} and {second} both have a tool '{tool}'; serve them separately")]
    DuplicateTool { tool: String, first: String, second: String },
    #[error("the dialect {0} is configured to access files outside the workspace; serve it without other dialects")]
    MustBeServedAlone(String),
    #[error(transparent)]
    InvalidSetting(#[from] DialectSettingError),
}

/// The reason why a setting of a dialect is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialectSettingError {
    #[error("invalid dialect option '{0}'; expected KEY=VALUE")]
    NotKeyValue(String),
    #[error("no selected dialect has an option '{key}'; available: {known}")]
    UnknownOption { key: String, known: String },
    #[error("invalid value '{value}' for the option '{key}'; expected {expected}")]
    InvalidValue { key: String, value: String, expected: String },
}

/// The dialect settings from `--dialect-option KEY=VALUE`, by name. If the user gives a dialect setting twice, the
/// second value counts.
#[derive(Debug, Clone, Default)]
pub struct DialectOptionValuesByName(BTreeMap<String, String>);

impl DialectOptionValuesByName {
    /// Parses dialect settings of the form `KEY=VALUE`.
    pub fn parse(settings: &[String]) -> Result<Self, DialectSettingError> {
        let pair = |text: &String| {
            let (key, value) = text.split_once('=').ok_or_else(|| DialectSettingError::NotKeyValue(text.clone()))?;
            Ok((key.trim().to_owned(), value.to_owned()))
        };
        settings.iter().map(pair).collect::<Result<_, _>>().map(Self)
    }

    /// The value that the user gave for a dialect setting.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Whether a dialect setting has the value `value`. A dialect setting that the user did not give has the value
    /// `default`.
    pub fn is_set_to(&self, key: &str, value: &str, default: &str) -> bool {
        self.get(key).unwrap_or(default) == value
    }

    fn check_against_definitions<'a>(
        &self,
        definitions: impl Iterator<Item = &'a DialectDefinition> + Clone,
    ) -> Result<(), DialectSettingError> {
        let options = || definitions.clone().flat_map(|definition| &definition.options);
        for (key, value) in &self.0 {
            let Some(option) = options().find(|option| option.name == *key) else {
                let names: Vec<&str> = options().map(|option| option.name.as_str()).collect();
                let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(DialectSettingError::UnknownOption { key: key.clone(), known });
            };
            if !option.values.is_empty() && !option.values.contains(value) {
                let expected = option.values.join(" or ");
                return Err(DialectSettingError::InvalidValue { key: key.clone(), value: value.clone(), expected });
            }
        }
        Ok(())
    }
}

/// The names of all dialects, in documentation order.
pub fn dialect_names() -> Vec<&'static str> {
    DIALECT_CONSTRUCTORS.iter().map(|(name, _)| *name).collect()
}

/// A set of dialects that are served together.
pub struct DialectSet(Vec<Arc<dyn Dialect>>);

impl DialectSet {
    /// Builds the named dialects. The function fails if none of the named dialects has one of the given settings.
    pub fn from_names(
        names: &[String],
        settings: &[String],
        location: &DialectWorkspaceRootPath,
    ) -> Result<Self, DialectSetupError> {
        let settings = DialectOptionValuesByName::parse(settings)?;
        let mut chosen: Vec<Arc<dyn Dialect>> = Vec::new();
        for name in names {
            let found = DIALECT_CONSTRUCTORS.iter().find(|(known, _)| known == name);
            let (_, build) = found.ok_or_else(|| DialectSetupError::UnknownDialect(name.clone()))?;
            chosen.push(build(&settings, location)?);
        }
        settings.check_against_definitions(chosen.iter().map(|dialect| dialect.definition()))?;
        check_duplicate_tools(&chosen)?;
        // All dialects share one root, so a dialect with a wider root must be served alone.
        match chosen.iter().find(|dialect| dialect.filesystem_reach() == DialectFilesystemReach::WholeMachine) {
            Some(wide) if chosen.len() > 1 => {
                Err(DialectSetupError::MustBeServedAlone(wide.definition().dialect.clone()))
            }
            Some(_) | None => Ok(Self(chosen)),
        }
    }

    /// A set that contains only the native dialect.
    pub fn native() -> Result<Self, DialectDefinitionParseError> {
        Ok(Self(vec![Arc::new(NativeDialect(DialectDefinition::native()?))]))
    }

    /// Iterates over the dialects that are served together.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Dialect>> {
        self.0.iter()
    }

    /// Finds the dialect that has a tool with the name `tool`.
    pub fn find_by_tool(&self, tool: &str) -> Option<&Arc<dyn Dialect>> {
        self.find_tool(tool).map(|(dialect, _)| dialect)
    }

    /// Finds the dialect that has the tool `tool`, and the declared name of the tool. Many MCP clients do not accept
    /// dots, so `tool` may contain `__` instead of each dot.
    pub fn find_tool(&self, tool: &str) -> Option<(&Arc<dyn Dialect>, &str)> {
        self.iter().find_map(|dialect| {
            let operations = &dialect.definition().operations;
            let found = operations.iter().find(|known| known.matches_name(tool))?;
            Some((dialect, found.name.as_str()))
        })
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<&Arc<dyn Dialect>> {
        self.iter().find(|dialect| dialect.definition().dialect == name)
    }

    /// Whether at least one of the dialects that are served together may access the whole machine.
    pub fn filesystem_reach(&self) -> DialectFilesystemReach {
        let mut reaches = self.iter().map(|dialect| dialect.filesystem_reach());
        reaches
            .find(|reach| *reach == DialectFilesystemReach::WholeMachine)
            .unwrap_or(DialectFilesystemReach::Workspace)
    }
}

fn check_duplicate_tools(chosen: &[Arc<dyn Dialect>]) -> Result<(), DialectSetupError> {
    for (index, dialect) in chosen.iter().enumerate() {
        for other in &chosen[..index] {
            let (first, second) = (other.definition(), dialect.definition());
            let duplicate = second.operations.iter().find(|tool| first.find_tool(&tool.name).is_some());
            if let Some(tool) = duplicate {
                return Err(DialectSetupError::DuplicateTool {
                    tool: tool.name.clone(),
                    first: first.dialect.clone(),
                    second: second.dialect.clone(),
                });
            }
        }
    }
    Ok(())
}

struct NativeDialect(DialectDefinition);

impl Dialect for NativeDialect {
    fn definition(&self) -> &DialectDefinition {
        &self.0
    }

    fn translate(self: Arc<Self>, tool: &str, arguments: &Map<String, Value>) -> PreparedCall<DialectReply> {
        native::prepare_json_call(tool, arguments, CallStyle::ToolCall)
    }

    fn call_style(&self) -> CallStyle {
        CallStyle::ToolCall
    }

    fn full_name(&self, _tool: &str) -> Option<String> {
        None
    }
}

pub(crate) fn error_text(error: &Error) -> String {
    let mut text = format!("{}: {}", error.kind.code(), error.message);
    if let Some(excerpt) = error.excerpt() {
        text.push('\n');
        text.push_str(excerpt.trim_end_matches('\n'));
    }
    match CallStyle::ToolCall.render_hint(error) {
        Some(hint) => format!("{text}\nNext step: {hint}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose_dialects(names: &[&str], settings: &[&str]) -> Result<DialectSet, String> {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let location = DialectWorkspaceRootPath { root: "/srv/ws".to_owned() };
        DialectSet::from_names(&owned(names), &owned(settings), &location).map_err(|error| error.to_string())
    }

    #[test]
    fn rejects_unknown_or_conflicting_dialects() {
        assert!(choose_dialects(&["stead"], &[]).is_ok());
        assert!(choose_dialects(&["stead", "jettson", "weaver"], &[]).is_ok());
        for (names, settings, word) in [
            (&["klingon"][..], &[][..], "unknown dialect"),
            (&["stead", "stead"], &[], "both have a tool"),
            (&["stead"], &["restrict"], "KEY=VALUE"),
            (&["stead"], &["no_such=1"], "option 'no_such'; available: none"),
            (&["comma"], &["read_deny=[a"], "option 'read_deny'; expected a comma-separated list of globs"),
            (&["comma"], &["read_allow=../a"], "expected a comma-separated list of paths"),
            (&["weaver"], &["restrict=maybe"], "true or false"),
            (&["weaver"], &["read_bytes_max=0"], "positive"),
            (&["stead", "weaver"], &["restrict=false"], "without other dialects"),
        ] {
            let error = choose_dialects(names, settings).map(|_| ()).expect_err("these dialects cannot be served");
            assert!(error.contains(word), "{error}");
        }
    }
}
