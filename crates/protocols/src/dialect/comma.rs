//! The dialect `comma` has eleven tools; a change must name the version of the file that it is based on. The dialect
//! `comma` was published as code, called the original, and as a document. Replies use the published sentences of
//! `comma` verbatim where its code and its document agree. Where its code and its document differ, `comma` follows the
//! document, unless an option selects the code.

use std::{cmp::Ordering, sync::Arc};

use serde_json::{Map, Value};
use stead_engine::{
    BeforeAfterContentInclusion, CallOptions, Caller, Error, ErrorKind, ListingPageSizeAndDetail, SuggestedCall,
    edit_rules::QuoteNotFoundPolicy,
};
use stead_path::{AbsolutePathRule, DotDotRule, EmptyPathRule, PathBackslashRule, PathSyntax, TrailingSlashRule};

use super::{
    Dialect, DialectConstructionResult, DialectOptionValuesByName, DialectReply, DialectToolCall,
    DialectWorkspaceRootPath,
    arguments::{ArgumentCheckResult, ArgumentIntegerSyntax},
    rendering::clean_path,
};
use crate::{
    definition::DialectDefinition, limits::COMMA_LIST_ENTRIES_MAX, native::CallStyle, prepared_call::PreparedCall,
};

mod access_limits;
mod apply_patch;
mod edit_file;
mod envelope;
mod errors;
mod inputs;
mod list_directory;
mod read_file;
mod search_files;
mod whole_file;

pub(crate) use errors::CommaErrorKind;

use access_limits::CommaAccessLimits;
use envelope::{CommaReplyEnvelope, CommaToolError};
use inputs::CommaToolInput;

const DEFINITION_JSON: &str = include_str!("../generated/comma.json");

pub(super) struct CommaDialect {
    definition: DialectDefinition,
    workspace_root: String,
    path_syntax: PathSyntax,
    /// The published document of the `comma` dialect is stricter than its original code.
    follows_document: bool,
    /// A fuzzy edit may replace text that only resembles its quote, if no text matches the quote exactly.
    quote_not_found: QuoteNotFoundPolicy,
    compare_names: fn(&str, &str) -> Ordering,
    access_limits: CommaAccessLimits,
}

pub(super) fn build(
    settings: &DialectOptionValuesByName,
    location: &DialectWorkspaceRootPath,
) -> DialectConstructionResult {
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
    Ok(Arc::new(CommaDialect {
        definition,
        workspace_root: clean_path("/", &location.root),
        path_syntax,
        follows_document: !exact,
        quote_not_found: if fuzzy { QuoteNotFoundPolicy::AcceptSimilar } else { QuoteNotFoundPolicy::None },
        compare_names: if exact { list_directory::compare_names } else { Ord::cmp },
        access_limits: CommaAccessLimits::from_settings(settings)?,
    }))
}

struct CommaToolCall {
    input: CommaToolInput,
    dialect: Arc<CommaDialect>,
    options: CallOptions,
}

type CommaPreparedCall = PreparedCall<DialectReply>;

impl DialectToolCall for CommaToolCall {
    type Success = CommaReplyEnvelope;

    fn render(&self, result: Result<CommaReplyEnvelope, Error>) -> DialectReply {
        let failed = |error| {
            search_files::reply_without_matches(self, &error)
                .unwrap_or_else(|| errors::translate_error(self, &error).into())
        };
        result.unwrap_or_else(failed).into_reply()
    }
}

impl CommaToolCall {
    fn path_argument(&self) -> &str {
        let default = if let CommaToolInput::RestoreFile(input) = &self.input { &input.trashed_path } else { "" };
        self.path_arguments().first().copied().unwrap_or(default)
    }

    /// Returns the path arguments of a tool call in the order in which they are checked.
    fn path_arguments(&self) -> Vec<&str> {
        match &self.input {
            CommaToolInput::ReadFile(input) => vec![&input.path],
            CommaToolInput::ListDirectory(input) => vec![&input.path],
            CommaToolInput::SearchFiles(input) => vec![&input.root],
            CommaToolInput::Glob(input) => vec![&input.root],
            CommaToolInput::CreateFile(input) => vec![&input.path],
            CommaToolInput::WriteFile(input) => vec![&input.path],
            CommaToolInput::EditFile(input) => vec![&input.path],
            CommaToolInput::DeleteFile(input) => vec![&input.path],
            CommaToolInput::RestoreFile(input) => input.target_path.as_deref().into_iter().collect(),
            CommaToolInput::MoveFile(input) => vec![&input.from_path, &input.to_path],
            CommaToolInput::ApplyPatch(input) => apply_patch::patch_paths(&input.patch),
        }
    }

    fn expected_sha256(&self) -> Option<&str> {
        match &self.input {
            CommaToolInput::WriteFile(input) => Some(&input.expected_sha256),
            CommaToolInput::EditFile(input) => input.expected_sha256.as_deref(),
            CommaToolInput::DeleteFile(input) => input.expected_sha256.as_deref(),
            CommaToolInput::MoveFile(input) => Some(&input.expected_sha256),
            CommaToolInput::ReadFile(_)
            | CommaToolInput::ListDirectory(_)
            | CommaToolInput::SearchFiles(_)
            | CommaToolInput::Glob(_)
            | CommaToolInput::CreateFile(_)
            | CommaToolInput::RestoreFile(_)
            | CommaToolInput::ApplyPatch(_) => None,
        }
    }

    /// Symbolic links are not resolved when a path argument is checked.
    fn first_path_outside(&self) -> Option<&str> {
        let roots = [self.dialect.workspace_root.clone()];
        let is_outside = |path: &&str| stead_path::parse_path(path, &roots, &self.dialect.path_syntax).is_err();
        self.path_arguments().into_iter().find(is_outside)
    }
}

impl CommaDialect {
    fn parse_call(
        self: &Arc<Self>,
        name: &str,
        arguments: &Map<String, Value>,
        options: &CallOptions,
    ) -> Result<Arc<CommaToolCall>, Box<CommaToolError>> {
        let tool = self.definition.find_tool(name).ok_or_else(|| errors::unknown_tool_error(name))?;
        let invalid = |message| CommaToolError::new(CommaErrorKind::Unknown, message).retryable();
        let checked = ArgumentCheckResult::new(&self.definition, tool, ArgumentIntegerSyntax::ZeroFraction, arguments);
        if !checked.issues.is_empty() {
            return Err(Box::new(invalid(inputs::invalid_arguments_message(name, &checked.issues, arguments))));
        }
        let input = checked.decode().map_err(invalid)?;
        let call = CommaToolCall { input, dialect: self.clone(), options: options.clone() };
        if let CommaToolInput::MoveFile(input) = &call.input
            && let Some(error) = errors::invalid_move_error(&call, input)
        {
            return Err(Box::new(error));
        }
        Ok(Arc::new(call))
    }
}

impl Dialect for CommaDialect {
    fn definition(&self) -> &DialectDefinition {
        &self.definition
    }

    fn call_style(&self) -> CallStyle {
        CallStyle::DialectTool(|call| {
            if let SuggestedCall::ReadArgs(read) = call {
                return Some(format!("call read_file with path=\"{}\"", read.path));
            }
            let SuggestedCall::ListArgs(list) = call else { return None };
            Some(format!("call list_directory with path=\"{}\"", list.path.as_deref().unwrap_or(".")))
        })
    }

    fn translate(self: Arc<Self>, tool: &str, arguments: &Map<String, Value>) -> PreparedCall<DialectReply> {
        let options = CallOptions {
            tool: self.full_name(tool),
            path_spelling: self.path_syntax.clone(),
            before_after: BeforeAfterContentInclusion::Include,
            listing_style: ListingPageSizeAndDetail::DetailedEntries(COMMA_LIST_ENTRIES_MAX),
            ..CallOptions::default()
        };
        let call = match self.parse_call(tool, arguments, &options) {
            Ok(call) => call,
            Err(error) => {
                let operation = self.definition.find_tool(tool).and_then(|tool| tool.operation.as_deref());
                let message = Error::new(ErrorKind::BadRequest, error.message());
                let render = |_| CommaReplyEnvelope::Error(error).into_reply();
                return PreparedCall::rejected(operation.unwrap_or("unknown"), arguments, message, options, render);
            }
        };
        match &call.input {
            CommaToolInput::ReadFile(input) => read_file::read_call(&call, input),
            CommaToolInput::ListDirectory(input) => list_directory::list_call(&call, input),
            CommaToolInput::SearchFiles(input) => search_files::search_call(&call, input),
            CommaToolInput::Glob(input) => search_files::glob_call(&call, input),
            CommaToolInput::CreateFile(input) => whole_file::create_call(&call, input),
            CommaToolInput::WriteFile(input) => whole_file::write_call(&call, input),
            CommaToolInput::EditFile(input) => edit_file::edit_call(&call, input),
            CommaToolInput::DeleteFile(input) => whole_file::delete_call(&call, input),
            CommaToolInput::RestoreFile(input) => whole_file::restore_call(&call, input),
            CommaToolInput::MoveFile(input) => whole_file::move_call(&call, input),
            CommaToolInput::ApplyPatch(input) => apply_patch::patch_call(&call, input),
        }
    }

    fn restrict_grants(&self, caller: &mut Caller) {
        self.access_limits.restrict(caller);
    }
}
