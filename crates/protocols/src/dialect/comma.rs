//! The dialect `comma` has eleven tools; a change must name the version of the file that it is based on. The dialect
//! `comma` was published as code, called the original, and as a document. Replies use the published sentences verbatim
//! where the code and the document agree. Where the code and the document differ, the dialect follows the document,
//! unless an option selects the code.

use serde_json::{Map, Value, json};
use stead_engine::{
    BeforeAfterContentInclusion, CallOptions, CallOutcome, Caller, Error, ErrorKind, ListingPageSizeAndDetail,
};
use stead_path::{AbsolutePathRule, DotDotRule, EmptyPathRule, PathBackslashRule, PathSyntax, TrailingSlashRule};

use super::{
    CallResult, Dialect, DialectConstructionResult, DialectReply, DialectSettings, DialectWorkspaceRootPath,
    TranslatedCall, rendering::clean_path,
};
use crate::{definition::DialectDefinition, limits::COMMA_LIST_ENTRIES_MAX};

mod access_limits;
mod apply_patch;
mod args;
mod edit_file;
mod envelope;
mod errors;
mod list_directory;
mod read_file;
mod search_files;
mod whole_file;

pub(crate) use errors::CommaErrorKind;

use access_limits::CommaAccessLimits;
use args::{CommaToolArgs, EditBaseHashRule};
use edit_file::FuzzyEditMatching;
use envelope::{CommaReplyEnvelope, CommaToolError};
use list_directory::CommaNameSortOrder;

const DEFINITION_JSON: &str = include_str!("../generated/comma.json");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommaDialectCompatibility {
    /// The published document of the dialect is stricter than its original code.
    Document,
    OriginalCode,
}

pub(super) struct CommaDialect {
    definition: DialectDefinition,
    workspace_root: String,
    path_syntax: PathSyntax,
    compatibility: CommaDialectCompatibility,
    edit_hash_rule: EditBaseHashRule,
    fuzzy_matching: FuzzyEditMatching,
    name_order: CommaNameSortOrder,
    access_limits: CommaAccessLimits,
}

pub(super) fn build(settings: &DialectSettings, location: &DialectWorkspaceRootPath) -> DialectConstructionResult {
    let exact = settings.is_set_to("origin", "exact", "stricter");
    let hash_required = settings.is_set_to("edit_hash", "required", if exact { "optional" } else { "required" });
    let fuzzy = settings.is_set_to("fuzzy", "true", if exact { "true" } else { "false" });
    let allow_absolute = settings.is_set_to("allow_absolute", "true", "false");
    let path_syntax = PathSyntax {
        dot_dot: DotDotRule::FoldAbsolute,
        absolute_paths: if allow_absolute { AbsolutePathRule::BelowRoot } else { AbsolutePathRule::Refuse },
        backslash: PathBackslashRule::Literal,
        trailing_slash: TrailingSlashRule::Ignored,
        empty_path: EmptyPathRule::Refuse,
        ..PathSyntax::default()
    };
    let mut definition = DialectDefinition::from_json(DEFINITION_JSON)?;
    if !hash_required {
        let edit = definition.operations.iter_mut().filter(|tool| tool.name == "edit_file");
        edit.flat_map(|edit| &mut edit.inputs)
            .filter(|input| input.name == "expectedSha256")
            .for_each(|input| input.required = false);
    }
    Ok(Box::new(CommaDialect {
        definition,
        workspace_root: clean_path("/", &location.root),
        path_syntax,
        compatibility: if exact {
            CommaDialectCompatibility::OriginalCode
        } else {
            CommaDialectCompatibility::Document
        },
        edit_hash_rule: if hash_required { EditBaseHashRule::Required } else { EditBaseHashRule::Optional },
        fuzzy_matching: if fuzzy { FuzzyEditMatching::On } else { FuzzyEditMatching::Off },
        name_order: if exact { CommaNameSortOrder::Collation } else { CommaNameSortOrder::Bytes },
        access_limits: CommaAccessLimits::from_settings(settings)?,
    }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommaTool {
    ReadFile,
    ListDirectory,
    SearchFiles,
    Glob,
    CreateFile,
    WriteFile,
    EditFile,
    DeleteFile,
    RestoreFile,
    MoveFile,
    ApplyPatch,
}

impl CommaTool {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "read_file" => CommaTool::ReadFile,
            "list_directory" => CommaTool::ListDirectory,
            "search_files" => CommaTool::SearchFiles,
            "glob" => CommaTool::Glob,
            "create_file" => CommaTool::CreateFile,
            "write_file" => CommaTool::WriteFile,
            "edit_file" => CommaTool::EditFile,
            "delete_file" => CommaTool::DeleteFile,
            "restore_file" => CommaTool::RestoreFile,
            "move_file" => CommaTool::MoveFile,
            "apply_patch" => CommaTool::ApplyPatch,
            _ => return None,
        })
    }

    /// The path arguments of a tool are checked in the listed order.
    fn path_argument_names(self) -> &'static [&'static str] {
        match self {
            CommaTool::ReadFile
            | CommaTool::ListDirectory
            | CommaTool::CreateFile
            | CommaTool::WriteFile
            | CommaTool::EditFile
            | CommaTool::DeleteFile => &["path"],
            CommaTool::SearchFiles | CommaTool::Glob => &["root"],
            CommaTool::RestoreFile => &["targetPath"],
            CommaTool::MoveFile => &["fromPath", "toPath"],
            CommaTool::ApplyPatch => &[],
        }
    }
}

struct CommaToolCall<'a> {
    tool: CommaTool,
    args: CommaToolArgs<'a>,
    dialect: &'a CommaDialect,
}

impl<'a> CommaToolCall<'a> {
    fn path_argument(&self) -> &'a str {
        let default = if matches!(self.tool, CommaTool::SearchFiles | CommaTool::Glob) {
            "."
        } else if self.tool == CommaTool::RestoreFile {
            self.args.text_or_empty("trashedPath")
        } else {
            ""
        };
        self.path_arguments().first().copied().unwrap_or(default)
    }

    fn path_arguments(&self) -> Vec<&'a str> {
        if self.tool == CommaTool::ApplyPatch {
            return apply_patch::patch_paths(self.args.text_or_empty("patch"));
        }
        self.tool.path_argument_names().iter().filter_map(|name| self.args.optional_text(name)).collect()
    }

    /// Symbolic links are not resolved when a path argument is checked.
    fn first_path_outside(&self) -> Option<&'a str> {
        let roots = [self.dialect.workspace_root.clone()];
        let is_outside = |path: &&str| stead_path::parse_path(path, &roots, &self.dialect.path_syntax).is_err();
        self.path_arguments().into_iter().find(is_outside)
    }

    fn follows_document(&self) -> bool {
        self.dialect.compatibility == CommaDialectCompatibility::Document
    }
}

impl CommaDialect {
    fn parse_call<'a>(
        &'a self,
        name: &str,
        arguments: &'a Map<String, Value>,
    ) -> Result<CommaToolCall<'a>, Box<CommaToolError>> {
        let tool = CommaTool::from_name(name).ok_or_else(|| errors::unknown_tool_error(name))?;
        let args = CommaToolArgs::validate(tool, name, arguments, self.edit_hash_rule)
            .map_err(|message| CommaToolError::new(CommaErrorKind::Unknown, message).retryable())?;
        let call = CommaToolCall { tool, args, dialect: self };
        if tool == CommaTool::MoveFile
            && let Some(error) = errors::invalid_move_error(&call)
        {
            return Err(Box::new(error));
        }
        Ok(call)
    }
}

impl Dialect for CommaDialect {
    fn definition(&self) -> &DialectDefinition {
        &self.definition
    }

    fn translate(&self, tool: &str, arguments: &Map<String, Value>) -> TranslatedCall {
        let options = CallOptions {
            tool: self.full_name(tool),
            path_spelling: self.path_syntax.clone(),
            before_after: BeforeAfterContentInclusion::Include,
            listing_style: ListingPageSizeAndDetail::DetailedEntries(COMMA_LIST_ENTRIES_MAX),
            ..CallOptions::default()
        };
        let call = match self.parse_call(tool, arguments) {
            Ok(call) => call,
            Err(error) => {
                let operation = self.definition.find_tool(tool).and_then(|tool| tool.operation.as_deref());
                let error = Error::new(ErrorKind::BadRequest, error.message());
                return TranslatedCall::rejected(operation.unwrap_or("unknown"), arguments, error, options);
            }
        };
        match call.tool {
            CommaTool::ReadFile => TranslatedCall::new("read", json!({ "path": call.path_argument() }), options),
            CommaTool::ListDirectory => list_directory::list_call(&call, options),
            CommaTool::SearchFiles | CommaTool::Glob => search_files::search_call(&call, options),
            CommaTool::CreateFile => whole_file::create_call(&call, options),
            CommaTool::WriteFile => whole_file::write_call(&call, options),
            CommaTool::EditFile => edit_file::edit_call(&call, self.fuzzy_matching, options),
            CommaTool::DeleteFile => whole_file::delete_call(&call, options),
            CommaTool::RestoreFile => whole_file::restore_call(&call, options),
            CommaTool::MoveFile => whole_file::move_call(&call, options),
            CommaTool::ApplyPatch => apply_patch::patch_call(&call, options),
        }
    }

    fn render_reply(&self, tool: &str, arguments: &Map<String, Value>, outcome: CallResult) -> DialectReply {
        let envelope = match (self.parse_call(tool, arguments), outcome) {
            (Err(error), _) => CommaReplyEnvelope::Error(error),
            (Ok(call), Err(error)) => search_files::reply_without_matches(&call, &error)
                .unwrap_or_else(|| errors::translate_error(&call, &error).into()),
            (Ok(call), Ok(outcome)) => success_envelope(&call, &outcome),
        };
        envelope.into_reply()
    }

    fn restrict_grants(&self, caller: &mut Caller) {
        self.access_limits.restrict(caller);
    }
}

fn success_envelope(call: &CommaToolCall<'_>, outcome: &CallOutcome) -> CommaReplyEnvelope {
    match call.tool {
        CommaTool::ReadFile => read_file::read_reply(call, outcome),
        CommaTool::ListDirectory => list_directory::list_reply(call, outcome),
        CommaTool::SearchFiles | CommaTool::Glob => search_files::search_or_glob_reply(call, outcome),
        CommaTool::CreateFile => whole_file::create_reply(call, outcome),
        CommaTool::WriteFile => whole_file::write_reply(call, outcome),
        CommaTool::EditFile => edit_file::edit_reply(call, outcome),
        CommaTool::ApplyPatch => apply_patch::patch_reply(call, outcome),
        CommaTool::DeleteFile => whole_file::delete_reply(call, outcome),
        CommaTool::RestoreFile => whole_file::restore_reply(call, outcome),
        CommaTool::MoveFile => whole_file::move_reply(call, outcome),
    }
}
