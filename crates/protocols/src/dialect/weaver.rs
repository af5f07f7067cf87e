//! The dialect `weaver` has five tools whose reply is a text with flags. The flags of a reply say whether the model or
//! the user reads the text, and whether the text is an error. The dialect supports two published versions of its
//! original code: 0.1.2, which its document describes, and the newest. The `weaver` dialect refuses every write through
//! a symbolic link that leads out of the workspace.

use crate::native::RenderedOutcome;
use serde_json::{Map, Value};
use stead_engine::{
    BeforeAfterContentInclusion, CallOptions, Error, ErrorKind, ListingPageSizeAndDetail, MissingBaseVersionPolicy,
    MissingParentPolicy, WrittenFileMode, edit_rules::EditMatchingRules,
};
use stead_path::{
    AbsolutePathRule, DotDotRule, EmptyPathRule, PathBackslashRule, PathSyntax, RelPath, TrailingSlashRule,
};

use super::{
    CallResult, Dialect, DialectConstructionResult, DialectFilesystemReach, DialectOptionValuesByName, DialectReply,
    DialectSetupError, DialectWorkspaceRootPath, ReplyStatus, TranslatedCall,
    arguments::{ArgumentCheckResult, ArgumentIntegerSyntax},
    rendering::{CallOutcomeFieldsExt, clean_path},
};
use crate::{
    definition::{DialectDefinition, ToolDefinition},
    limits::DIALECT_LIST_ENTRIES_MAX,
};

mod errors;
mod inputs;
mod newest_generation;

use inputs::{WeaverDisplayPath, WeaverToolCall, WeaverToolInput};
use newest_generation::WeaverPagingSettings;

const DEFINITION_JSON: &str = include_str!("../generated/weaver.json");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WeaverGeneration {
    /// Version 0.1.2 of the original code reads whole files and overwrites existing ones.
    V0_1_2,
    /// The newest version of the original code reads pages with headers and overwrites a file only on request.
    Newest,
}

pub(super) struct WeaverDialect {
    definition: DialectDefinition,
    workspace_root: String,
    filesystem_reach: DialectFilesystemReach,
    generation: WeaverGeneration,
    paging: WeaverPagingSettings,
}

pub(super) fn build(
    settings: &DialectOptionValuesByName,
    location: &DialectWorkspaceRootPath,
) -> DialectConstructionResult {
    Ok(Box::new(WeaverDialect::new(settings, location)?))
}

impl WeaverDialect {
    fn new(
        settings: &DialectOptionValuesByName,
        location: &DialectWorkspaceRootPath,
    ) -> Result<Self, DialectSetupError> {
        let generation = if settings.is_set_to("generation", "newest", "0.1.2") {
            WeaverGeneration::Newest
        } else {
            WeaverGeneration::V0_1_2
        };
        let filesystem_reach = if settings.is_set_to("restrict", "false", "true") {
            DialectFilesystemReach::WholeMachine
        } else {
            DialectFilesystemReach::Workspace
        };
        let paging = WeaverPagingSettings::from_settings(settings)?;
        let mut definition = DialectDefinition::from_json(DEFINITION_JSON)?;
        for operation in &mut definition.operations {
            operation.inputs.retain(|input| inputs::accepts_argument(&input.name, generation, paging.unit));
        }
        let workspace_root = clean_path("/", &location.root);
        Ok(Self { definition, workspace_root, filesystem_reach, generation, paging })
    }

    fn path_syntax(&self) -> PathSyntax {
        let default_directory = match self.filesystem_reach {
            DialectFilesystemReach::Workspace => RelPath::root(),
            DialectFilesystemReach::WholeMachine => RelPath::from_components(
                self.workspace_root.split('/').filter(|name| !name.is_empty()).map(str::as_bytes),
            )
            .unwrap_or_default(),
        };
        let dot_dot = match (self.generation, &self.filesystem_reach) {
            (WeaverGeneration::Newest, DialectFilesystemReach::Workspace) => DotDotRule::Fold,
            (WeaverGeneration::V0_1_2 | WeaverGeneration::Newest, _) => DotDotRule::FoldAbsolute,
        };
        PathSyntax {
            default_directory,
            dot_dot,
            absolute_paths: AbsolutePathRule::BelowRoot,
            backslash: PathBackslashRule::Literal,
            trailing_slash: TrailingSlashRule::Ignored,
            empty_path: EmptyPathRule::DefaultDirectory,
        }
    }

    fn call_options(&self, tool: &str) -> CallOptions {
        CallOptions {
            tool: self.full_name(tool),
            path_spelling: self.path_syntax(),
            missing_base: MissingBaseVersionPolicy::Overwrite,
            listing_style: ListingPageSizeAndDetail::DetailedEntries(DIALECT_LIST_ENTRIES_MAX),
            edit_rules: EditMatchingRules::LITERAL,
            written_file_mode: match self.generation {
                WeaverGeneration::V0_1_2 => WrittenFileMode::Default,
                WeaverGeneration::Newest => WrittenFileMode::OwnerOnly,
            },
            before_after: BeforeAfterContentInclusion::Include,
            ..CallOptions::default()
        }
    }

    fn parse_call(&self, name: &str, arguments: &Map<String, Value>) -> Result<WeaverToolCall<'_>, String> {
        let tool = self.definition.find_tool(name).ok_or_else(|| format!("tool \"{name}\" not found"))?;
        let checked =
            ArgumentCheckResult::new(&self.definition, tool, ArgumentIntegerSyntax::ZeroFractionOrText, arguments);
        match inputs::first_issue_sentence(tool, &checked.issues, arguments) {
            Some(sentence) => Err(sentence),
            None => Ok(WeaverToolCall { input: checked.decode()?, dialect: self }),
        }
    }

    fn error_sentence(&self, call: &WeaverToolCall<'_>, error: &Error) -> String {
        let path = WeaverDisplayPath { workspace_root: &self.workspace_root, as_given: call.path() };
        match self.generation {
            WeaverGeneration::V0_1_2 => errors::error_sentence_v0_1_2(call, &path, &self.filesystem_reach, error),
            WeaverGeneration::Newest => errors::error_sentence_newest(call, &path, error),
        }
    }

    fn success_result(&self, call: &WeaverToolCall<'_>, outcome: &RenderedOutcome) -> WeaverToolResult {
        match &call.input {
            WeaverToolInput::ReadFile(_) => newest_generation::render_page(call, outcome),
            WeaverToolInput::ListDir(_) => WeaverToolResult::visible(render_listing(outcome)),
            WeaverToolInput::WriteFile(input) => WeaverToolResult::silent(format!("File written: {}", input.path)),
            WeaverToolInput::AppendFile(input) => WeaverToolResult::silent(format!("Appended to {}", input.path)),
            WeaverToolInput::EditFile(input) => match self.generation {
                WeaverGeneration::V0_1_2 => WeaverToolResult::silent(format!("File edited: {}", input.path)),
                WeaverGeneration::Newest => newest_generation::edit_result(&input.path, outcome),
            },
        }
    }
}

impl Dialect for WeaverDialect {
    fn definition(&self) -> &DialectDefinition {
        &self.definition
    }

    fn translate(&self, tool: &str, arguments: &Map<String, Value>) -> TranslatedCall {
        let options = self.call_options(tool);
        let operation = self.definition.find_tool(tool).map_or("unknown", ToolDefinition::engine_operation);
        match self.parse_call(tool, arguments) {
            Ok(call) => {
                let missing_parents = match (&call.input, self.generation) {
                    (WeaverToolInput::AppendFile(_), WeaverGeneration::V0_1_2) => MissingParentPolicy::Refuse,
                    (_, WeaverGeneration::V0_1_2 | WeaverGeneration::Newest) => MissingParentPolicy::Create,
                };
                let options = CallOptions { missing_parents, ..options };
                TranslatedCall::new(operation, call.engine_arguments(), options)
            }
            Err(sentence) => {
                TranslatedCall::rejected(operation, arguments, Error::new(ErrorKind::BadRequest, sentence), options)
            }
        }
    }

    fn render_reply(&self, tool: &str, arguments: &Map<String, Value>, outcome: CallResult) -> DialectReply {
        let result = match (self.parse_call(tool, arguments), outcome) {
            (Err(sentence), _) => WeaverToolResult::error(sentence),
            (Ok(call), Err(error)) => WeaverToolResult::error(self.error_sentence(&call, &error)),
            (Ok(call), Ok(outcome)) => self.success_result(&call, &outcome),
        };
        result.into_reply()
    }

    fn filesystem_reach(&self) -> DialectFilesystemReach {
        self.filesystem_reach.clone()
    }
}

#[derive(Debug, PartialEq, Eq)]
struct WeaverToolResult {
    for_llm: String,
    for_user: String,
    kind: WeaverToolResultVisibility,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WeaverToolResultVisibility {
    Visible,
    Silent,
    Error,
}

impl WeaverToolResult {
    fn visible(for_llm: String) -> Self {
        Self { for_llm, for_user: String::new(), kind: WeaverToolResultVisibility::Visible }
    }

    fn silent(for_llm: String) -> Self {
        Self { for_llm, for_user: String::new(), kind: WeaverToolResultVisibility::Silent }
    }

    fn error(for_llm: String) -> Self {
        Self { for_llm, for_user: String::new(), kind: WeaverToolResultVisibility::Error }
    }

    /// A weaver reply contains `for_user` only if the text for the user is not empty, as in the original code.
    fn into_reply(self) -> DialectReply {
        let mut json = Map::new();
        json.insert("for_llm".into(), self.for_llm.clone().into());
        if !self.for_user.is_empty() {
            json.insert("for_user".into(), self.for_user.into());
        }
        json.insert("silent".into(), (self.kind == WeaverToolResultVisibility::Silent).into());
        json.insert("is_error".into(), (self.kind == WeaverToolResultVisibility::Error).into());
        json.insert("async".into(), false.into());
        let status = match self.kind {
            WeaverToolResultVisibility::Error => ReplyStatus::Error,
            WeaverToolResultVisibility::Visible | WeaverToolResultVisibility::Silent => ReplyStatus::Success,
        };
        DialectReply { json, text: self.for_llm, status }
    }
}

/// Every invalid byte becomes one replacement character, as in the JSON encoder of the original code.
fn replace_invalid_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// A symbolic link is listed as a file, even if its target is a directory.
fn render_listing(outcome: &RenderedOutcome) -> String {
    let mut text = String::new();
    for entry in outcome.list_field("entries") {
        let field = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let path = RelPath::from_wire(field("path")).unwrap_or_default();
        let name = path.components().next_back().map(replace_invalid_bytes).unwrap_or_default();
        text.push_str(if field("type") == "directory" { "DIR:  " } else { "FILE: " });
        text.push_str(&name);
        text.push('\n');
    }
    if outcome.is_set("truncated") {
        text.push_str(&format!("[TRUNCATED - more than {DIALECT_LIST_ENTRIES_MAX} entries]\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_invalid_byte_becomes_one_replacement_char() {
        assert_eq!(replace_invalid_bytes(b"a\xe2\x82b"), "a\u{fffd}\u{fffd}b");
        assert_eq!(replace_invalid_bytes("ä".as_bytes()), "ä");
    }

    #[test]
    fn omits_empty_user_text() {
        let reply = WeaverToolResult::silent("x".to_owned()).into_reply();
        let expected = serde_json::json!({ "for_llm": "x", "silent": true, "is_error": false, "async": false });
        assert_eq!(Value::Object(reply.json), expected);
        assert_eq!(WeaverToolResult::error("x".to_owned()).into_reply().status, ReplyStatus::Error);
    }
}
