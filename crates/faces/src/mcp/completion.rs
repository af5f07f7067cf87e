//! Paths that a person may mean by what they have typed so far. Asked of the engine like any listing, so nobody is offered
//! what they could not list; where nothing can be listed, nothing is offered, and not said why.

use engine::Caller;
use rmcp::{
    RoleServer,
    model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference},
    service::RequestContext,
};
use serde_json::{Value, json};

use super::{guide, resources, server::Server};

/// Most paths of one answer: what the protocol allows.
const OFFERED_MAX: usize = CompletionInfo::MAX_VALUES;

/// What was typed, taken apart.
struct Typed<'a> {
    /// With its slash; empty for the top.
    directory: &'a str,
    /// What a name must begin with.
    name: &'a str,
}

impl<'a> Typed<'a> {
    fn new(text: &'a str) -> Self {
        let (directory, name) = text.split_at(text.rfind('/').map_or(0, |slash| slash + 1));
        Self { directory, name }
    }

    /// What a path is called here, if it fits.
    fn offered(&self, entry: &Value) -> Option<String> {
        let name = entry.get("path")?.as_str()?.rsplit('/').next()?;
        let end = if entry.get("type")?.as_str()? == "directory" { "/" } else { "" };
        name.starts_with(self.name).then(|| format!("{}{name}{end}", self.directory))
    }
}

impl Server {
    /// Whether the argument is a path of the workspace.
    fn takes_path(&self, request: &CompleteRequestParams) -> bool {
        let known = match &request.r#ref {
            Reference::Prompt(prompt) => self.is_guide(&prompt.name),
            Reference::Resource(template) => template.uri == resources::template(),
            _ => false,
        };
        known && request.argument.name == guide::PATH
    }

    /// What may be meant; nothing when the argument is not of the workspace.
    pub(super) async fn completed(
        &self,
        request: &CompleteRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<CompleteResult> {
        if !self.takes_path(request) {
            return None;
        }
        let (offered, more) = self.beginning(&request.argument.value, &self.caller(context)).await;
        let completion =
            CompletionInfo::with_pagination(offered, None, more == More::Yes).unwrap_or_default();
        Some(CompleteResult::new(completion))
    }

    /// Paths that begin so. One page of one directory is looked at, from the first name that can fit.
    async fn beginning(&self, text: &str, caller: &Caller) -> (Vec<String>, More) {
        let typed = Typed::new(text);
        let mut offered = Vec::new();
        let directory = typed.directory.strip_suffix('/').unwrap_or(".");
        let mut asked = json!({ "path": directory, "all": typed.name.starts_with('.') });
        if !["", ".", ".."].contains(&typed.name) {
            // A page goes on after a path: what is called exactly so comes before it.
            asked["cursor"] = json!(text);
            let exact = self.resource_call(caller, text, "stat", json!({ "path": text })).await;
            offered.extend(exact.ok().and_then(|stat| typed.offered(&Value::Object(stat.json))));
        }
        let Ok(listed) = self.resource_call(caller, text, "list", asked).await else {
            return (offered, More::No);
        };
        let entries = listed.json.get("entries").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let fitting = entries.iter().filter_map(|entry| typed.offered(entry));
        offered.extend(fitting.take(OFFERED_MAX + 1));
        let is_cut = listed.json.get("truncated") == Some(&Value::Bool(true));
        let to_the_end = entries.last().is_some_and(|last| typed.offered(last).is_some());
        let more = if offered.len() > OFFERED_MAX || (is_cut && to_the_end) { More::Yes } else { More::No };
        offered.truncate(OFFERED_MAX);
        (offered, more)
    }
}

/// Whether there is more than is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum More {
    Yes,
    No,
}
