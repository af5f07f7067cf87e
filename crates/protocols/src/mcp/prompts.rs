//! Prompts of the MCP server and the completion of path arguments. Each prompt is a guide to the tools of one dialect
//! and is built from the dialect's definition. Path completion uses the engine's `list`, so that a caller sees only
//! paths that the caller may list.

use std::sync::Arc;

use rmcp::{
    ErrorData,
    model::{
        CompleteRequestParams, CompleteResult, CompletionInfo, ContentBlock, GetPromptRequestParams, GetPromptResult,
        Prompt, PromptArgument, PromptMessage, Reference, Role,
    },
};
use serde_json::Value;
use stead_engine::{
    Caller, FileKind,
    ops::{ListArgs, ListedEntryRow, StatArgs},
};
use stead_path::RelPath;

use super::{McpRequestContext, resources, server::McpClientRequestHandler};
use crate::{definition::ToolVisibility, dialect::Dialect};

const GUIDE_SUFFIX: &str = "_guide";
const PATH_ARGUMENT: &str = "path";
const COMPLETIONS_MAX: usize = CompletionInfo::MAX_VALUES;

struct PathCompletionPrefix<'a> {
    directory: &'a str,
    name_prefix: &'a str,
}

impl<'a> PathCompletionPrefix<'a> {
    fn new(text: &'a str) -> Self {
        let (directory, name_prefix) = text.split_at(text.rfind('/').map_or(0, |slash| slash + 1));
        Self { directory, name_prefix }
    }

    fn completion_for(&self, path: &RelPath, kind: FileKind) -> Option<String> {
        let path = path.to_wire();
        let name = path.rsplit('/').next()?;
        let end = if kind == FileKind::Directory { "/" } else { "" };
        name.starts_with(self.name_prefix).then(|| format!("{}{name}{end}", self.directory))
    }
}

fn dialect_of_guide<'a>(server: &'a McpClientRequestHandler, name: &str) -> Option<&'a dyn Dialect> {
    let dialect = name.strip_suffix(GUIDE_SUFFIX)?;
    server.shared.dialects.by_name(dialect).map(AsRef::as_ref)
}

impl McpClientRequestHandler {
    pub(super) fn list_guides(&self) -> Vec<Prompt> {
        let path = PromptArgument::new(PATH_ARGUMENT)
            .with_description("A file or directory of the workspace to include with the guide.")
            .with_required(false);
        let guide = |dialect: &Arc<dyn Dialect>| {
            let name = &dialect.definition().dialect;
            let description = format!("How to use the tools of {name}.");
            Prompt::new(format!("{name}{GUIDE_SUFFIX}"), Some(description), Some(vec![path.clone()]))
        };
        self.shared.dialects.iter().map(guide).collect()
    }

    pub(super) async fn get_guide(
        &self,
        request: &GetPromptRequestParams,
        context: &McpRequestContext,
    ) -> Option<Result<GetPromptResult, ErrorData>> {
        let dialect = dialect_of_guide(self, &request.name)?;
        let mut messages = vec![PromptMessage::new_text(Role::User, self.guide_text(dialect))];
        match request.arguments.as_ref().and_then(|arguments| arguments.get(PATH_ARGUMENT)) {
            None => {}
            Some(Value::String(path)) if path.is_empty() => {}
            Some(Value::String(path)) => match self.read_resource_at(&resources::uri_of_path(path), context).await {
                Ok(read) => {
                    let blocks = read.contents.into_iter().map(ContentBlock::resource);
                    messages.extend(blocks.map(|block| PromptMessage::new(Role::User, block)));
                }
                Err(error) => return Some(Err(error)),
            },
            Some(_) => {
                return Some(Err(ErrorData::invalid_params("the argument path of the prompt must be a string", None)));
            }
        }
        Some(Ok(GetPromptResult::new(messages)))
    }

    fn guide_text(&self, dialect: &dyn Dialect) -> String {
        let definition = dialect.definition();
        let mut text = definition.instructions.clone();
        text.push('\n');
        let listed = definition.operations.iter().filter(|operation| operation.listed == ToolVisibility::Listed);
        for tool in listed.filter(|tool| !dialect.is_blocked(&self.shared.engine, &self.shared.caller, tool)) {
            text.push_str(&format!("\n- {}: {} {}", tool.dotless_name(), tool.summary, tool.when_to_use));
        }
        text
    }

    fn completes_paths(&self, request: &CompleteRequestParams) -> bool {
        let known = match &request.r#ref {
            Reference::Prompt(prompt) => dialect_of_guide(self, &prompt.name).is_some(),
            Reference::Resource(template) => template.uri == resources::uri_template(),
            _ => false,
        };
        known && request.argument.name == PATH_ARGUMENT
    }

    pub(super) async fn complete_path(
        &self,
        request: &CompleteRequestParams,
        context: &McpRequestContext,
    ) -> Option<CompleteResult> {
        if !self.completes_paths(request) {
            return None;
        }
        let (completions, has_more) =
            self.paths_with_prefix(&request.argument.value, &self.caller_in_session(context)).await;
        let completion = CompletionInfo::with_pagination(completions, None, has_more).unwrap_or_default();
        Some(CompleteResult::new(completion))
    }

    /// Returns the completions of the path prefix `text` from one page of the directory's listing, and whether there
    /// are more.
    async fn paths_with_prefix(&self, text: &str, caller: &Caller) -> (Vec<String>, bool) {
        let prefix = PathCompletionPrefix::new(text);
        let mut completions = Vec::new();
        let directory = prefix.directory.strip_suffix('/').unwrap_or(".");
        let mut arguments = ListArgs {
            path: Some(directory.to_owned()),
            all: Some(prefix.name_prefix.starts_with('.')),
            ..ListArgs::default()
        };
        if !["", ".", ".."].contains(&prefix.name_prefix) {
            // The list excludes the path in the cursor, so a file with exactly the path `text` needs a separate lookup.
            arguments.cursor = Some(text.to_owned());
            let exact = self.resource_call(caller, text, StatArgs { path: text.to_owned() }).await;
            completions.extend(exact.ok().and_then(|stat| prefix.completion_for(&stat.path, stat.kind)));
        }
        let Ok(listed) = self.resource_call(caller, text, arguments).await else {
            return (completions, false);
        };
        let completion = |entry: &ListedEntryRow| prefix.completion_for(&entry.path, entry.kind);
        completions.extend(listed.entries.iter().filter_map(completion).take(COMPLETIONS_MAX + 1));
        let last_matches = listed.entries.last().and_then(completion).is_some();
        let has_more = completions.len() > COMPLETIONS_MAX || (listed.completeness.is_truncated() && last_matches);
        completions.truncate(COMPLETIONS_MAX);
        (completions, has_more)
    }
}
