//! Prompts: for each dialect a short guide to its tools, as its definition has it, and where the caller names a path, what is
//! there. Nothing of the guide is written here, so it cannot say anything else than the tools do.

use rmcp::{
    ErrorData, RoleServer,
    model::{
        GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, ResourceContents,
        Role,
    },
    service::RequestContext,
};
use serde_json::Value;

use super::{resources, server::Server};
use crate::{definition::Listed, dialect::Dialect};

/// What follows the name of a dialect in the name of its guide.
const GUIDE: &str = "_guide";
/// The argument that names a file or directory.
pub(super) const PATH: &str = "path";

/// The dialect whose guide has this name.
fn guided<'a>(server: &'a Server, name: &str) -> Option<&'a dyn Dialect> {
    let dialect = name.strip_suffix(GUIDE)?;
    server.made.dialects.iter().find(|known| known.definition().dialect == dialect)
}

impl Server {
    /// The guides that there are.
    pub(super) fn guides(&self) -> Vec<Prompt> {
        let path = PromptArgument::new(PATH)
            .with_description("A file or directory of the workspace to put beside the guide.")
            .with_required(false);
        let guide = |dialect: &dyn Dialect| {
            let name = &dialect.definition().dialect;
            let what = format!("How the tools of {name} are used.");
            Prompt::new(format!("{name}{GUIDE}"), Some(what), Some(vec![path.clone()]))
        };
        self.made.dialects.iter().map(guide).collect()
    }

    /// Whether there is a guide of this name.
    pub(super) fn is_guide(&self, name: &str) -> bool {
        guided(self, name).is_some()
    }

    /// A guide; nothing when there is none of that name.
    pub(super) async fn guide(
        &self,
        request: &GetPromptRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<GetPromptResult, ErrorData>> {
        let dialect = guided(self, &request.name)?;
        let mut messages = vec![PromptMessage::new_text(Role::User, self.text(dialect))];
        let named = request.arguments.as_ref().and_then(|arguments| arguments.get(PATH));
        let path = match named {
            None => None,
            Some(Value::String(path)) if path.is_empty() => None,
            Some(Value::String(path)) => Some(path),
            Some(_) => return Some(Err(ErrorData::invalid_params("path is a text", None))),
        };
        if let Some(path) = path {
            match self.read_at(&resources::address(path), context).await {
                Ok(read) => messages.extend(read.contents.into_iter().map(beside)),
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(GetPromptResult::new(messages)))
    }

    /// What the definition says of the dialect and of every tool that this caller is offered.
    fn text(&self, dialect: &dyn Dialect) -> String {
        let definition = dialect.definition();
        let mut text = definition.instructions.clone();
        text.push('\n');
        let listed = definition.operations.iter().filter(|operation| operation.listed == Listed::Yes);
        for tool in listed.filter(|tool| !dialect.is_blocked(&self.made.engine, &self.made.caller, tool)) {
            text.push_str(&format!("\n- {}: {} {}", tool.plain_name(), tool.summary, tool.when));
        }
        text
    }
}

/// What is at the path, as a message.
fn beside(contents: ResourceContents) -> PromptMessage {
    PromptMessage::new(Role::User, rmcp::model::ContentBlock::resource(contents))
}
