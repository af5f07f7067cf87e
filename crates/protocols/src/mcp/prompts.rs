//! Prompts: a guide to the tools of each dialect, built from its definition so that the two cannot differ. If the
//! caller names a path, its content is added.

use rmcp::{
    ErrorData, RoleServer,
    model::{GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, ResourceContents, Role},
    service::RequestContext,
};
use serde_json::Value;

use super::{resources, server::McpServer};
use crate::{definition::ToolVisibility, dialect::Dialect};

/// Suffix of a guide's name, after the dialect.
const GUIDE_SUFFIX: &str = "_guide";
pub(super) const PATH_ARGUMENT: &str = "path";

fn dialect_of_guide<'a>(server: &'a McpServer, name: &str) -> Option<&'a dyn Dialect> {
    let dialect = name.strip_suffix(GUIDE_SUFFIX)?;
    server.shared.dialects.iter().find(|known| known.definition().dialect == dialect)
}

impl McpServer {
    pub(super) fn list_guides(&self) -> Vec<Prompt> {
        let path = PromptArgument::new(PATH_ARGUMENT)
            .with_description("A file or directory of the workspace to include with the guide.")
            .with_required(false);
        let guide = |dialect: &dyn Dialect| {
            let name = &dialect.definition().dialect;
            let description = format!("How to use the tools of {name}.");
            Prompt::new(format!("{name}{GUIDE_SUFFIX}"), Some(description), Some(vec![path.clone()]))
        };
        self.shared.dialects.iter().map(guide).collect()
    }

    pub(super) fn is_guide(&self, name: &str) -> bool {
        dialect_of_guide(self, name).is_some()
    }

    /// Returns a guide; `None` if there is no guide of that name.
    pub(super) async fn get_guide(
        &self,
        request: &GetPromptRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<GetPromptResult, ErrorData>> {
        let dialect = dialect_of_guide(self, &request.name)?;
        let mut messages = vec![PromptMessage::new_text(Role::User, self.guide_text(dialect))];
        let argument = request.arguments.as_ref().and_then(|arguments| arguments.get(PATH_ARGUMENT));
        let path = match argument {
            None => None,
            Some(Value::String(path)) if path.is_empty() => None,
            Some(Value::String(path)) => Some(path),
            Some(_) => return Some(Err(ErrorData::invalid_params("path must be a string", None))),
        };
        if let Some(path) = path {
            match self.read_resource_at(&resources::uri_of_path(path), context).await {
                Ok(read) => messages.extend(read.contents.into_iter().map(resource_message)),
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(GetPromptResult::new(messages)))
    }

    /// The instructions of the dialect, and each listed tool that this caller may use.
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
}

fn resource_message(contents: ResourceContents) -> PromptMessage {
    PromptMessage::new(Role::User, rmcp::model::ContentBlock::resource(contents))
}
