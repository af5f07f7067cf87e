//! Dialects: published sets of tools, each a definition and a translation. A dialect translates a tool call to one
//! engine call with its own options, and the result to the reply its document specifies.
//!
//! One tool call is one engine call and leaves one journal entry. A dialect makes no decisions about files. Invalid
//! arguments become [`CallOptions::argument_error`]; the engine rejects the call and records it.

use serde_json::{Map, Value, json};
use stead_engine::{CallOptions, CallOutcome, Caller, Engine, Error, ErrorKind};

use crate::definition::{DefinitionError, DialectDefinition, ToolDefinition as Tool};

pub(crate) mod acp;
mod comma;
mod jettson;
mod krux;
mod native;
mod settings;
mod trash_handle;
mod weaver;

pub(crate) use native::error_text;
pub use settings::{DialectSettingError, DialectSettings};

/// A tool call translated for the engine.
pub struct TranslatedCall {
    /// Engine operation.
    pub operation: String,
    /// Arguments of the operation.
    pub arguments: Map<String, Value>,
    /// Options that the dialect sets.
    pub options: CallOptions,
}

/// The reply to a tool call, in the form of the dialect.
#[derive(Debug, Clone, PartialEq)]
pub struct DialectReply {
    /// The dialect's result object.
    pub json: Map<String, Value>,
    /// The text for the model.
    pub text: String,
    /// Whether the dialect reports an error.
    pub status: ReplyStatus,
}

/// Whether a reply is an error in its dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyStatus {
    /// The call succeeded.
    Success,
    /// The call failed.
    Error,
}

/// How much of the file system a dialect may access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilesystemReach {
    /// Only the workspace.
    Workspace,
    /// Every file the process may access; relative paths start at the workspace.
    WholeMachine,
}

/// A set of tools.
pub trait Dialect: Send + Sync {
    /// The tools and settings of the dialect.
    fn definition(&self) -> &DialectDefinition;

    /// Translates a tool call for the engine.
    fn translate(&self, tool: &str, arguments: &Map<String, Value>) -> TranslatedCall;

    /// Renders the result of a tool call.
    fn render_reply(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        outcome: Result<CallOutcome, Error>,
    ) -> DialectReply;

    /// Renders an error for `capabilities.invoke`: `type`, `message` and `recovery`.
    fn error_object(&self, reply: &DialectReply, error: Option<&Error>) -> Value {
        match error {
            Some(error) => {
                let hint = error.next_step.as_ref().map(|hint| json!({ "action": "hint", "description": hint }));
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

    /// Renders a watch event, given in its native form.
    fn render_event(&self, native: &Map<String, Value>) -> Map<String, Value> {
        native.clone()
    }

    /// The name of a tool in the journal and in policy rules; `None` if the tool is the operation itself.
    fn full_name(&self, tool: &str) -> Option<String> {
        Some(format!("{}/{tool}", self.definition().dialect))
    }

    /// How much of the file system the settings allow.
    fn filesystem_reach(&self) -> FilesystemReach {
        FilesystemReach::Workspace
    }

    /// Restricts the caller's grants as the settings require. Never extends them.
    fn restrict_grants(&self, _caller: &mut Caller) {}
}

impl dyn Dialect + '_ {
    /// Translates a tool call and applies the tier of the tool's definition. Every protocol uses this.
    pub fn translate_with_tier(&self, tool: &str, arguments: &Map<String, Value>) -> TranslatedCall {
        let mut call = self.translate(tool, arguments);
        let tier = self.definition().find_tool(tool).and_then(|operation| operation.tier);
        call.options.declared_tier = call.options.declared_tier.max(tier);
        call
    }

    /// Whether the policy blocks a tool for this caller on every path. Such a tool is not listed.
    pub fn is_blocked(&self, engine: &Engine, caller: &Caller, tool: &Tool) -> bool {
        engine.is_tool_always_blocked(caller, tool.engine_operation(), self.full_name(&tool.name).as_deref())
    }
}

const ECHOED_NAME_CHARS_MAX: usize = 64;

/// A call of an unknown tool, which the engine rejects and records.
pub(crate) fn unknown_tool_call(name: &str, what: &str, hint: &str) -> TranslatedCall {
    let shown: String = name.chars().take(ECHOED_NAME_CHARS_MAX).collect();
    let error = Error::new(ErrorKind::UnknownOperation, format!("unknown {what} '{shown}'")).with_next_step(hint);
    let options = CallOptions { argument_error: Some(error), ..CallOptions::default() };
    TranslatedCall { operation: name.to_owned(), arguments: Map::new(), options }
}

/// Where a dialect is used.
#[derive(Debug, Clone)]
pub struct WorkspaceLocation {
    /// Absolute path of the workspace, for dialects that show it.
    pub root: String,
}

type DialectConstructor = fn(&DialectSettings, &WorkspaceLocation) -> Result<Box<dyn Dialect>, DialectError>;

/// Every dialect, in documentation order.
const DIALECT_CONSTRUCTORS: &[(&str, DialectConstructor)] = &[
    ("stead", native::build),
    ("jettson", jettson::build),
    ("weaver", weaver::build),
    ("comma", comma::build),
    ("krux", krux::build),
];

/// Why a set of dialects cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum DialectError {
    /// The build is broken.
    #[error(transparent)]
    InvalidDefinition(#[from] DefinitionError),
    /// The name is not a dialect.
    #[error("unknown dialect '{0}'; available: {list}", list = dialect_names().join(", "))]
    UnknownDialect(String),
    /// Two dialects have a tool of the same name.
    #[error("{first} and {second} both have a tool '{tool}'; serve them separately")]
    DuplicateTool {
        /// Name of the tool.
        tool: String,
        /// One dialect.
        first: String,
        /// The other dialect.
        second: String,
    },
    /// A dialect with access to the whole machine is combined with others, which would share it.
    #[error("{0} is configured to access files outside the workspace; serve it alone")]
    MustBeServedAlone(String),
    /// A setting is invalid.
    #[error(transparent)]
    InvalidSetting(#[from] DialectSettingError),
}

/// The names of all dialects.
pub fn dialect_names() -> Vec<&'static str> {
    DIALECT_CONSTRUCTORS.iter().map(|(name, _)| *name).collect()
}

/// Dialects that are served together.
pub struct DialectSet(Vec<Box<dyn Dialect>>);

impl DialectSet {
    /// Builds the named dialects. Every setting must belong to one of them.
    pub fn from_names(
        names: &[String],
        settings: &[String],
        location: &WorkspaceLocation,
    ) -> Result<Self, DialectError> {
        let settings = DialectSettings::parse(settings)?;
        let mut chosen: Vec<Box<dyn Dialect>> = Vec::new();
        for name in names {
            let make = DIALECT_CONSTRUCTORS.iter().find(|(known, _)| known == name).map(|(_, make)| make);
            let dialect = make.ok_or_else(|| DialectError::UnknownDialect(name.clone()))?(&settings, location)?;
            chosen.push(dialect);
        }
        settings.check_against_definitions(chosen.iter().map(|dialect| dialect.definition()))?;
        check_duplicate_tools(&chosen)?;
        // The dialects share one root, so one that widens it must be alone.
        match chosen.iter().find(|dialect| dialect.filesystem_reach() == FilesystemReach::WholeMachine) {
            Some(wide) if chosen.len() > 1 => Err(DialectError::MustBeServedAlone(wide.definition().dialect.clone())),
            Some(_) | None => Ok(Self(chosen)),
        }
    }

    /// The native dialect alone.
    pub fn native() -> Result<Self, DefinitionError> {
        Ok(Self(vec![Box::new(native::NativeDialect::new()?)]))
    }

    /// All dialects of the set.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Dialect> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// The dialect that has this tool.
    pub fn find_by_tool(&self, tool: &str) -> Option<&dyn Dialect> {
        self.find_tool(tool).map(|(dialect, _)| dialect)
    }

    /// The dialect that has this tool, and the tool's declared name. A dot may be written `__`, because many MCP
    /// clients do not accept dots.
    pub fn find_tool(&self, tool: &str) -> Option<(&dyn Dialect, &str)> {
        self.iter().find_map(|dialect| {
            let operations = &dialect.definition().operations;
            let found = operations.iter().find(|known| known.matches_name(tool))?;
            Some((dialect, found.name.as_str()))
        })
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<&dyn Dialect> {
        self.iter().find(|dialect| dialect.definition().dialect == name)
    }

    /// The widest reach of all dialects.
    pub fn filesystem_reach(&self) -> FilesystemReach {
        let machine = self.iter().any(|dialect| dialect.filesystem_reach() == FilesystemReach::WholeMachine);
        if machine { FilesystemReach::WholeMachine } else { FilesystemReach::Workspace }
    }
}

fn check_duplicate_tools(chosen: &[Box<dyn Dialect>]) -> Result<(), DialectError> {
    for (index, dialect) in chosen.iter().enumerate() {
        for other in &chosen[..index] {
            let (first, second) = (other.definition(), dialect.definition());
            let duplicate = second.operations.iter().find(|tool| first.find_tool(&tool.name).is_some());
            if let Some(tool) = duplicate {
                return Err(DialectError::DuplicateTool {
                    tool: tool.name.clone(),
                    first: first.dialect.clone(),
                    second: second.dialect.clone(),
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose_dialects(names: &[&str], settings: &[&str]) -> Result<DialectSet, String> {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let location = WorkspaceLocation { root: "/srv/ws".to_owned() };
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
            (&["stead"], &["no_such=1"], "no_such"),
            (&["weaver"], &["restrict=maybe"], "true or false"),
            (&["weaver"], &["read_bytes_max=0"], "positive"),
            (&["stead", "weaver"], &["restrict=false"], "alone"),
        ] {
            let error = choose_dialects(names, settings).map(|_| ()).expect_err("it cannot be served");
            assert!(error.contains(word), "{error}");
        }
    }
}
