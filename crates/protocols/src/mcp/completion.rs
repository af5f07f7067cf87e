//! Completes workspace paths. Uses the engine's `list`, so a caller sees only paths they may list; if listing fails,
//! there are no completions and no error.

use rmcp::{
    RoleServer,
    model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference},
    service::RequestContext,
};
use serde_json::{Value, json};
use stead_engine::Caller;

use super::{prompts, resources, server::McpServer};

/// The protocol's maximum.
const COMPLETIONS_MAX: usize = CompletionInfo::MAX_VALUES;

/// The typed text, split at its last slash.
struct CompletionPrefix<'a> {
    /// With its slash; empty for the root.
    directory: &'a str,
    name_prefix: &'a str,
}

impl<'a> CompletionPrefix<'a> {
    fn new(text: &'a str) -> Self {
        let (directory, name_prefix) = text.split_at(text.rfind('/').map_or(0, |slash| slash + 1));
        Self { directory, name_prefix }
    }

    /// The completion for an entry, if its name matches.
    fn completion_for(&self, entry: &Value) -> Option<String> {
        let name = entry.get("path")?.as_str()?.rsplit('/').next()?;
        let end = if entry.get("type")?.as_str()? == "directory" { "/" } else { "" };
        name.starts_with(self.name_prefix).then(|| format!("{}{name}{end}", self.directory))
    }
}

impl McpServer {
    fn completes_paths(&self, request: &CompleteRequestParams) -> bool {
        let known = match &request.r#ref {
            Reference::Prompt(prompt) => self.is_guide(&prompt.name),
            Reference::Resource(template) => template.uri == resources::uri_template(),
            _ => false,
        };
        known && request.argument.name == prompts::PATH_ARGUMENT
    }

    /// Completions of a path argument; `None` for other arguments.
    pub(super) async fn complete_path(
        &self,
        request: &CompleteRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<CompleteResult> {
        if !self.completes_paths(request) {
            return None;
        }
        let (completions, more) =
            self.paths_with_prefix(&request.argument.value, &self.caller_in_session(context)).await;
        let completion =
            CompletionInfo::with_pagination(completions, None, more == MoreCompletions::Yes).unwrap_or_default();
        Some(CompleteResult::new(completion))
    }

    /// Paths with this prefix. Reads one page of one directory, from the first name that can match.
    async fn paths_with_prefix(&self, text: &str, caller: &Caller) -> (Vec<String>, MoreCompletions) {
        let prefix = CompletionPrefix::new(text);
        let mut completions = Vec::new();
        let directory = prefix.directory.strip_suffix('/').unwrap_or(".");
        let mut arguments = json!({ "path": directory, "all": prefix.name_prefix.starts_with('.') });
        if !["", ".", ".."].contains(&prefix.name_prefix) {
            // A cursor continues after its path, so an exact match is looked up separately.
            arguments["cursor"] = json!(text);
            let exact = self.resource_call(caller, text, "stat", json!({ "path": text })).await;
            completions.extend(exact.ok().and_then(|stat| prefix.completion_for(&Value::Object(stat.json))));
        }
        let Ok(listed) = self.resource_call(caller, text, "list", arguments).await else {
            return (completions, MoreCompletions::No);
        };
        let entries = listed.json.get("entries").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let matching = entries.iter().filter_map(|entry| prefix.completion_for(entry));
        completions.extend(matching.take(COMPLETIONS_MAX + 1));
        let is_cut = listed.json.get("truncated") == Some(&Value::Bool(true));
        let last_matches = entries.last().is_some_and(|last| prefix.completion_for(last).is_some());
        let more = if completions.len() > COMPLETIONS_MAX || (is_cut && last_matches) {
            MoreCompletions::Yes
        } else {
            MoreCompletions::No
        };
        completions.truncate(COMPLETIONS_MAX);
        (completions, more)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MoreCompletions {
    Yes,
    No,
}
