//! The dialect `weaver` has five tools whose reply is a text with flags. The flags of a reply say whether the model or
//! the user reads the text, and whether the text is an error. The dialect supports two published versions of its
//! original code: 0.1.2, which its document describes, and the newest. The `weaver` dialect refuses every write through
//! a symbolic link that leads out of the workspace.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use stead_engine::{
    BeforeAfterContentInclusion, CallOptions, Error, ErrorKind, FileKind, ListingPageSizeAndDetail,
    MissingParentPolicy, WrittenFileMode,
    edit_rules::EditMatchingRules,
    ops::{AppendArgs, EditArgs, EditItem, ListArgs, ListOutcome, ReadArgs, WriteArgs},
};
use stead_path::{
    AbsolutePathRule, DotDotRule, EmptyPathRule, PathBackslashRule, PathSyntax, RelPath, TrailingSlashRule,
};

use super::{
    Dialect, DialectConstructionResult, DialectFilesystemReach, DialectOptionValuesByName, DialectReply,
    DialectSetupError, DialectToolCall, DialectWorkspaceRootPath, ReplyStatus,
    arguments::{ArgumentCheckResult, ArgumentIntegerSyntax},
    rendering::clean_path,
};
use crate::{
    definition::{DialectDefinition, ToolDefinition},
    limits::DIALECT_LIST_ENTRIES_MAX,
    native::without_nulls,
    prepared_call::PreparedCall,
};

mod errors;
mod inputs;
mod newest_generation;

use inputs::{WeaverDisplayPath, WeaverToolCall, WeaverToolInput};
use newest_generation::{WeaverPagingSettings, WeaverReadWindow};

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
    Ok(Arc::new(WeaverDialect::new(settings, location)?))
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
            listing_style: ListingPageSizeAndDetail::DetailedEntries(DIALECT_LIST_ENTRIES_MAX),
            written_file_mode: match self.generation {
                WeaverGeneration::V0_1_2 => WrittenFileMode::Default,
                WeaverGeneration::Newest => WrittenFileMode::OwnerOnly,
            },
            before_after: BeforeAfterContentInclusion::Include,
            ..CallOptions::default()
        }
    }

    fn parse_call(self: &Arc<Self>, name: &str, arguments: &Map<String, Value>) -> Result<WeaverToolCall, String> {
        let tool = self.definition.find_tool(name).ok_or_else(|| format!("tool \"{name}\" not found"))?;
        let checked =
            ArgumentCheckResult::new(&self.definition, tool, ArgumentIntegerSyntax::ZeroFractionOrText, arguments);
        match inputs::first_issue_sentence(tool, &checked.issues, arguments) {
            Some(sentence) => Err(sentence),
            None => Ok(WeaverToolCall { input: checked.decode()?, dialect: self.clone() }),
        }
    }

    fn error_sentence(&self, call: &WeaverToolCall, error: &Error) -> String {
        let path = WeaverDisplayPath { workspace_root: &self.workspace_root, as_given: call.path() };
        match self.generation {
            WeaverGeneration::V0_1_2 => errors::error_sentence_v0_1_2(call, &path, &self.filesystem_reach, error),
            WeaverGeneration::Newest => errors::error_sentence_newest(call, &path, error),
        }
    }
}

impl DialectToolCall for WeaverToolCall {
    type Success = WeaverToolResult;

    fn render(&self, result: Result<WeaverToolResult, Error>) -> DialectReply {
        let failed = |error| WeaverToolResult::error(self.dialect.error_sentence(self, &error));
        result.unwrap_or_else(failed).into_reply()
    }
}

impl WeaverToolCall {
    fn translate(self: &Arc<Self>, options: CallOptions) -> PreparedCall<DialectReply> {
        let (path, generation) = (self.path().to_owned(), self.dialect.generation);
        match &self.input {
            WeaverToolInput::ReadFile(_) => {
                let bytes = self.window().and_then(WeaverReadWindow::byte_range);
                let arguments = ReadArgs { path, bytes, ..ReadArgs::default() };
                self.prepare(arguments, options, |call, read| newest_generation::render_page(call, &read))
            }
            WeaverToolInput::WriteFile(input) => {
                let done = WeaverToolResult::silent(format!("File written: {path}"));
                // An empty base version means that the file must not exist.
                let base = self.keeps_existing_file().then(String::new);
                let (content, encoding) = (input.content.clone(), Some("utf-8".to_owned()));
                let arguments =
                    WriteArgs { path, content, encoding, base, replace_without_base: true, ..WriteArgs::default() };
                self.prepare(arguments, options, |_, _| done)
            }
            WeaverToolInput::ListDir(_) => {
                let arguments = ListArgs { path: Some(path), all: Some(true), ..ListArgs::default() };
                self.prepare(arguments, options, |_, list| WeaverToolResult::visible(render_listing(&list.outcome)))
            }
            WeaverToolInput::EditFile(input) => {
                let (old, new) = (input.old_text.clone(), input.new_text.clone());
                let edits = vec![EditItem { old, new, ..EditItem::default() }];
                let rules = EditMatchingRules::LITERAL;
                let arguments = EditArgs { path: path.clone(), edits, rules, ..EditArgs::default() };
                self.prepare(arguments, options, move |_, edit| match generation {
                    WeaverGeneration::V0_1_2 => WeaverToolResult::silent(format!("File edited: {path}")),
                    WeaverGeneration::Newest => newest_generation::edit_result(&path, edit.before_and_after(0)),
                })
            }
            WeaverToolInput::AppendFile(input) => {
                let done = WeaverToolResult::silent(format!("Appended to {path}"));
                let arguments = AppendArgs { path, content: input.content.clone(), ..AppendArgs::default() };
                self.prepare(arguments, options, |_, _| done)
            }
        }
    }
}

impl Dialect for WeaverDialect {
    fn definition(&self) -> &DialectDefinition {
        &self.definition
    }

    fn translate(self: Arc<Self>, tool: &str, arguments: &Map<String, Value>) -> PreparedCall<DialectReply> {
        let options = self.call_options(tool);
        match self.parse_call(tool, arguments) {
            Ok(call) => {
                let missing_parents = match (&call.input, self.generation) {
                    (WeaverToolInput::AppendFile(_), WeaverGeneration::V0_1_2) => MissingParentPolicy::Refuse,
                    (_, WeaverGeneration::V0_1_2 | WeaverGeneration::Newest) => MissingParentPolicy::Create,
                };
                Arc::new(call).translate(CallOptions { missing_parents, ..options })
            }
            Err(sentence) => {
                let operation = self.definition.find_tool(tool).map_or("unknown", ToolDefinition::engine_operation);
                let error = Error::new(ErrorKind::BadRequest, &*sentence);
                PreparedCall::rejected(operation, arguments, error, options, |_| {
                    WeaverToolResult::error(sentence).into_reply()
                })
            }
        }
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
        let json = without_nulls(json!({
            "for_llm": self.for_llm,
            "for_user": (!self.for_user.is_empty()).then_some(self.for_user),
            "silent": self.kind == WeaverToolResultVisibility::Silent,
            "is_error": self.kind == WeaverToolResultVisibility::Error,
            "async": false,
        }));
        let status = match self.kind {
            WeaverToolResultVisibility::Error => ReplyStatus::Error,
            WeaverToolResultVisibility::Visible | WeaverToolResultVisibility::Silent => ReplyStatus::Success,
        };
        DialectReply { json: json.to_string(), text: self.for_llm, status }
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
fn render_listing(list: &ListOutcome) -> String {
    let mut text = String::new();
    for entry in &list.entries {
        let name = entry.path.components().next_back().map(replace_invalid_bytes).unwrap_or_default();
        text.push_str(if entry.kind == FileKind::Directory { "DIR:  " } else { "FILE: " });
        text.push_str(&name);
        text.push('\n');
    }
    if list.completeness.is_truncated() {
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
        assert_eq!(reply.json, r#"{"for_llm":"x","silent":true,"is_error":false,"async":false}"#);
        assert_eq!(WeaverToolResult::error("x".to_owned()).into_reply().status, ReplyStatus::Error);
    }
}
