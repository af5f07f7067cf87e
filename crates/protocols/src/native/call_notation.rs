//! Renders the call that the text of an outcome suggests next: as a tool call for models, or as a command for people.

use serde_json::{Map, Value};
use stead_text::visible::escape_deceptive_line;

/// The notation of the next call that the text of an outcome suggests.
#[derive(Debug, Clone, Copy, Default)]
pub enum CallNotation {
    /// The text suggests the next call as a tool call for models, such as `call list with path src, cursor "41"`.
    #[default]
    ToolCall,
    /// The text suggests the next call as a command for people, rendered by this function.
    Command(fn(&str, &Map<String, Value>) -> String),
}

impl CallNotation {
    pub(crate) fn render_call(self, operation: &str, arguments: &Map<String, Value>) -> String {
        match self {
            CallNotation::ToolCall => {
                let arguments: Vec<String> = arguments.iter().map(render_tool_argument).collect();
                format!("call {operation} with {}", arguments.join(", "))
            }
            CallNotation::Command(render) => format!("run: {}", render(operation, arguments)),
        }
    }

    pub(crate) fn render_argument_name(self, name: &str) -> String {
        match self {
            CallNotation::ToolCall => name.to_owned(),
            CallNotation::Command(_) => format!("--{}", name.replace('_', "-")),
        }
    }

    /// Renders a boolean argument that is true: `all: true` in a tool call, `--all` in a command.
    pub(crate) fn render_switch(self, name: &str) -> String {
        match self {
            CallNotation::ToolCall => format!("{name}: true"),
            CallNotation::Command(_) => self.render_argument_name(name),
        }
    }
}

fn render_tool_argument((name, value): (&String, &Value)) -> String {
    match value.as_str() {
        Some(path) if name == "path" => format!("path {}", escape_deceptive_line(path)),
        Some(text) => format!("{name} \"{}\"", escape_deceptive_line(text)),
        None => format!("{name} {value}"),
    }
}
