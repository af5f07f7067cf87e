//! `comma`: eleven tools that share one rule: a change names the version it is based on. Every reply is the same
//! envelope, every error one of a closed list of kinds with the next step.
//!
//! Uses the published sentences verbatim where the original code and document agree. Where they differ, the document
//! applies unless an option selects the original code. Makes no decisions about files: hashes, forbidden paths and the
//! trash belong to the engine.

use serde_json::{Map, Value};
use stead_engine::{BeforeAfterInclusion, CallOptions, CallOutcome, Error, ErrorKind, ListingStyle};
use stead_path::{AbsolutePathRule, BackslashRule, DotDotRule, EmptyPathRule, PathSyntax, TrailingSlashRule};

use super::{Dialect, DialectError, DialectReply, DialectSettings, TranslatedCall, WorkspaceLocation};
use crate::definition::DialectDefinition;

mod apply_patch;
mod args;
mod class;
mod collation;
mod diff;
mod edit_file;
mod envelope;

mod access_limits;
mod delete_file;
mod errors;
mod list_directory;
mod move_file;
mod paths;
mod read_file;
mod search_files;
mod tool;
mod write_file;

use access_limits::CommaAccessLimits;
use args::{CommaArgs, EditHashRule};
use edit_file::FuzzyMatching;
use envelope::{CommaEnvelope, CommaError};
use list_directory::CommaNameOrder;
use tool::CommaTool;

const DEFINITION_JSON: &str = include_str!("../generated/comma.json");

/// Which one applies where the original code and its document differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommaCompatibility {
    /// The document, which is stricter.
    Document,
    /// The original code.
    OriginalCode,
}

pub(super) struct CommaDialect {
    definition: DialectDefinition,
    workspace_root: String,
    path_syntax: PathSyntax,
    compatibility: CommaCompatibility,
    edit_hash_rule: EditHashRule,
    fuzzy_matching: FuzzyMatching,
    name_order: CommaNameOrder,
    access_limits: CommaAccessLimits,
}

pub(super) fn build(
    settings: &DialectSettings,
    location: &WorkspaceLocation,
) -> Result<Box<dyn Dialect>, DialectError> {
    let exact = settings.is_set_to("origin", "exact", "stricter");
    let required = settings.is_set_to("edit_hash", "required", if exact { "optional" } else { "required" });
    let absolute_paths = if settings.is_set_to("allow_absolute", "true", "false") {
        AbsolutePathRule::BelowRoot
    } else {
        AbsolutePathRule::Refuse
    };
    let path_syntax = PathSyntax {
        dot_dot: DotDotRule::FoldAbsolute,
        absolute_paths,
        backslash: BackslashRule::Literal,
        trailing_slash: TrailingSlashRule::Ignored,
        empty_path: EmptyPathRule::Refuse,
        ..PathSyntax::default()
    };
    let edit_hash = if required { EditHashRule::Required } else { EditHashRule::Optional };
    let mut definition = DialectDefinition::from_json(DEFINITION_JSON)?;
    if edit_hash == EditHashRule::Optional {
        let edit = definition.operations.iter_mut().filter(|operation| operation.name == CommaTool::EditFile.name());
        edit.flat_map(|edit| &mut edit.inputs)
            .filter(|input| input.name == "expectedSha256")
            .for_each(|input| input.required = false);
    }
    Ok(Box::new(CommaDialect {
        definition,
        workspace_root: paths::absolute_path("/", &location.root),
        path_syntax,
        compatibility: if exact { CommaCompatibility::OriginalCode } else { CommaCompatibility::Document },
        edit_hash_rule: edit_hash,
        fuzzy_matching: if settings.is_set_to("fuzzy", "true", if exact { "true" } else { "false" }) {
            FuzzyMatching::On
        } else {
            FuzzyMatching::Off
        },
        name_order: if exact { CommaNameOrder::Collation } else { CommaNameOrder::Bytes },
        access_limits: CommaAccessLimits::from_settings(settings)?,
    }))
}

/// One call with validated arguments.
struct CommaCall<'a> {
    tool: CommaTool,
    args: CommaArgs<'a>,
    workspace_root: &'a str,
    path_syntax: &'a PathSyntax,
    compatibility: CommaCompatibility,
    name_order: CommaNameOrder,
}

impl<'a> CommaCall<'a> {
    /// The main path of the call, as given.
    fn path_argument(&self) -> &'a str {
        self.path_arguments().into_iter().next().unwrap_or(match self.tool {
            CommaTool::SearchFiles | CommaTool::Glob => ".",
            CommaTool::RestoreFile => self.args.text_or_empty("trashedPath"),
            CommaTool::ReadFile
            | CommaTool::ListDirectory
            | CommaTool::CreateFile
            | CommaTool::WriteFile
            | CommaTool::EditFile
            | CommaTool::DeleteFile
            | CommaTool::MoveFile
            | CommaTool::ApplyPatch => "",
        })
    }

    /// The paths that the call names, in the order in which they are checked.
    fn path_arguments(&self) -> Vec<&'a str> {
        if self.tool == CommaTool::ApplyPatch {
            return apply_patch::patch_paths(self.args.text_or_empty("patch"));
        }
        self.tool.path_argument_names().iter().filter_map(|name| self.args.optional_text(name)).collect()
    }

    fn first_path_outside(&self) -> Option<&'a str> {
        self.path_arguments()
            .into_iter()
            .find(|given| paths::is_outside_workspace(self.workspace_root, self.path_syntax, given))
    }

    fn rejects_absolute_paths(&self) -> bool {
        self.path_syntax.absolute_paths == AbsolutePathRule::Refuse
    }
}

impl CommaDialect {
    fn parse_call<'a>(
        &'a self,
        tool: CommaTool,
        arguments: &'a Map<String, Value>,
    ) -> Result<CommaCall<'a>, Box<CommaError>> {
        let args = CommaArgs::validate(tool, arguments, self.edit_hash_rule)
            .map_err(|message| Box::new(CommaError::new("unknown", message).retryable()))?;
        let call = CommaCall {
            tool,
            args,
            workspace_root: &self.workspace_root,
            path_syntax: &self.path_syntax,
            compatibility: self.compatibility,
            name_order: self.name_order,
        };
        match tool {
            CommaTool::MoveFile => move_file::check_move(&call).map_or(Ok(call), |error| Err(Box::new(error))),
            CommaTool::ReadFile
            | CommaTool::ListDirectory
            | CommaTool::SearchFiles
            | CommaTool::Glob
            | CommaTool::CreateFile
            | CommaTool::WriteFile
            | CommaTool::EditFile
            | CommaTool::DeleteFile
            | CommaTool::RestoreFile
            | CommaTool::ApplyPatch => Ok(call),
        }
    }

    fn call_options(&self, tool: &str) -> CallOptions {
        CallOptions {
            tool: self.full_name(tool),
            path_spelling: self.path_syntax.clone(),
            before_after: BeforeAfterInclusion::Include,
            listing_style: ListingStyle::DetailedEntries(list_directory::ENTRIES_MAX),
            ..CallOptions::default()
        }
    }
}

impl Dialect for CommaDialect {
    fn definition(&self) -> &DialectDefinition {
        &self.definition
    }

    fn translate(&self, tool: &str, arguments: &Map<String, Value>) -> TranslatedCall {
        let options = self.call_options(tool);
        let refused = |operation: &str, detail: String, options: CallOptions| {
            let argument_error = Some(Error::new(ErrorKind::BadRequest, detail));
            TranslatedCall {
                operation: operation.to_owned(),
                arguments: arguments.clone(),
                options: CallOptions { argument_error, ..options },
            }
        };
        let Some(tool) = CommaTool::from_name(tool) else {
            return refused("unknown", format!("there is no tool {tool}"), options);
        };
        let call = match self.parse_call(tool, arguments) {
            Ok(call) => call,
            Err(error) => {
                let operation = self.definition.find_tool(tool.name()).and_then(|tool| tool.operation.clone());
                return refused(&operation.unwrap_or_default(), error.message().to_owned(), options);
            }
        };
        let translated = |operation: &str, (arguments, options): (Map<String, Value>, CallOptions)| TranslatedCall {
            operation: operation.to_owned(),
            arguments,
            options,
        };
        match tool {
            CommaTool::ReadFile => {
                translated("read", (into_object(serde_json::json!({ "path": call.path_argument() })), options))
            }
            CommaTool::ListDirectory => translated("list", (list_directory::engine_arguments(&call), options)),
            CommaTool::SearchFiles | CommaTool::Glob => {
                let (operation, arguments, options) = search_files::search_call(&call, options);
                translated(operation, (arguments, options))
            }
            CommaTool::CreateFile => translated("write", write_file::create_call(&call, options)),
            CommaTool::WriteFile => translated("write", write_file::write_call(&call, options)),
            CommaTool::EditFile => translated("edit", edit_file::edit_call(&call, self.fuzzy_matching, options)),
            CommaTool::DeleteFile => translated("remove", delete_file::delete_call(&call, options)),
            CommaTool::RestoreFile => translated("restore", delete_file::restore_call(&call, options)),
            CommaTool::MoveFile => translated("move", move_file::move_call(&call, options)),
            CommaTool::ApplyPatch => translated("patch", apply_patch::patch_call(&call, options)),
        }
    }

    fn render_reply(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        outcome: Result<CallOutcome, Error>,
    ) -> DialectReply {
        let Some(tool) = CommaTool::from_name(tool) else {
            return CommaEnvelope::from(CommaError::new("unknown", format!("there is no tool {tool}"))).into_reply();
        };
        let envelope = match (self.parse_call(tool, arguments), outcome) {
            (Err(error), _) => CommaEnvelope::Error(error),
            (Ok(call), Err(error)) => error_envelope(&call, &error),
            (Ok(call), Ok(outcome)) => success_envelope(&call, &outcome),
        };
        envelope.into_reply()
    }

    fn restrict_grants(&self, caller: &mut stead_engine::Caller) {
        self.access_limits.restrict(caller);
    }
}

fn error_envelope(call: &CommaCall<'_>, error: &Error) -> CommaEnvelope {
    let specific = match call.tool {
        CommaTool::SearchFiles | CommaTool::Glob => search_files::pattern_error(call, error),
        CommaTool::EditFile => edit_file::edit_error(call, error).map(CommaEnvelope::from),
        CommaTool::ApplyPatch => apply_patch::patch_error(call, error).map(CommaEnvelope::from),
        CommaTool::ReadFile
        | CommaTool::ListDirectory
        | CommaTool::CreateFile
        | CommaTool::WriteFile
        | CommaTool::DeleteFile
        | CommaTool::RestoreFile
        | CommaTool::MoveFile => None,
    };
    specific.unwrap_or_else(|| errors::translate_error(call, error).into())
}

fn success_envelope(call: &CommaCall<'_>, outcome: &CallOutcome) -> CommaEnvelope {
    match call.tool {
        CommaTool::ReadFile => read_file::read_reply(call, outcome),
        CommaTool::ListDirectory => list_directory::list_reply(call, outcome),
        CommaTool::SearchFiles | CommaTool::Glob => search_files::search_or_glob_reply(call, outcome),
        CommaTool::CreateFile => write_file::create_reply(call, outcome),
        CommaTool::WriteFile => write_file::write_reply(call, outcome),
        CommaTool::EditFile => edit_file::edit_reply(call, outcome),
        CommaTool::ApplyPatch => apply_patch::patch_reply(call, outcome),
        CommaTool::DeleteFile => delete_file::delete_reply(call, outcome),
        CommaTool::RestoreFile => delete_file::restore_reply(call, outcome),
        CommaTool::MoveFile => move_file::move_reply(call, outcome),
    }
}

fn into_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}
