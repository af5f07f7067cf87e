//! Renders the next steps of errors and outcomes for the reader of a text: as tool calls for models, as commands for
//! people, and as HTTP requests.

use serde_json::{Map, Value, json};
use stead_engine::{Error, NextStep, NextStepOrder, SuggestedArgument, SuggestedArgumentValue, SuggestedCall};
use stead_text::visible::escape_deceptive_line;

use super::to_json_object;

/// How a text writes the calls that it suggests.
#[derive(Debug, Clone, Copy, Default)]
pub enum CallStyle {
    /// A tool call for models, such as `call list with cursor "41", path src`.
    #[default]
    ToolCall,
    /// An HTTP request, such as `POST /v1/list {"path":"src"}`.
    Endpoint,
    /// A command for people.
    Command(CommandRenderer),
    /// A tool of a dialect. The function returns no text for a call that the dialect has no tool for.
    DialectTool(fn(&SuggestedCall) -> Option<String>),
}

/// The functions that render commands. The binary has them, because it knows its own commands and flags.
#[derive(Debug, Clone, Copy)]
pub struct CommandRenderer {
    /// Renders a call as a command; there is none for some operations.
    pub call: fn(&SuggestedCall) -> Option<String>,
    /// Renders the words of a command that is no operation.
    pub words: fn(&[&str]) -> String,
}

impl CallStyle {
    /// Renders a call without its purpose: `call list with path src`, `run: stead list src`.
    pub fn render_call(self, call: impl Into<SuggestedCall>) -> String {
        self.render_call_for(&call.into(), "").unwrap_or_default()
    }

    /// Renders a call as a command if the reader of the text runs commands.
    pub(crate) fn render_command(self, call: impl Into<SuggestedCall>) -> Option<String> {
        match self {
            CallStyle::Command(renderer) => (renderer.call)(&call.into()),
            CallStyle::ToolCall | CallStyle::Endpoint | CallStyle::DialectTool(_) => None,
        }
    }

    fn render_call_for(self, call: &SuggestedCall, purpose: &str) -> Option<String> {
        Some(match self {
            CallStyle::ToolCall => {
                let arguments: Vec<String> = to_json_object(call).iter().map(render_tool_argument).collect();
                let with = if arguments.is_empty() { "" } else { " with " };
                format!("call {}{with}{}{}", call.operation(), arguments.join(", "), after_text(purpose))
            }
            CallStyle::Endpoint => {
                let request = format!("POST /v1/{} {}", call.operation(), Value::Object(to_json_object(call)));
                before_text(purpose, "send: ", &request)
            }
            CallStyle::Command(renderer) => before_text(purpose, "run: ", &(renderer.call)(call)?),
            CallStyle::DialectTool(render) => format!("{}{}", render(call)?, after_text(purpose)),
        })
    }

    /// Renders a step; `None` if a dialect has no words for it.
    pub fn render_step(self, step: &NextStep) -> Option<String> {
        Some(match (step, self) {
            (NextStep::Advice(sentence), _) => sentence.to_string(),
            (NextStep::Call { call, purpose }, _) => self.render_call_for(call, purpose)?,
            (NextStep::Repeat { argument: Some(_), .. }, CallStyle::DialectTool(_)) => return None,
            (NextStep::Repeat { argument, purpose }, _) => {
                let argument = argument.as_ref().map_or_else(String::new, |argument| self.render_repeated(argument));
                format!("repeat the {}{argument}{}", self.word_for_call(), after_text(purpose))
            }
            (NextStep::AskPerson(task), CallStyle::Command(_)) => task.to_string(),
            (NextStep::AskPerson(task), _) => format!("ask a person to {task}"),
            (NextStep::PersonCommand { words, purpose }, _) => {
                let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
                match self {
                    CallStyle::Command(renderer) => before_text(purpose, "run: ", &(renderer.words)(&words)),
                    CallStyle::ToolCall | CallStyle::Endpoint | CallStyle::DialectTool(_) => {
                        format!("ask a person to run `stead {}`{}", words.join(" "), after_text(purpose))
                    }
                }
            }
            (NextStep::Both(steps, order), _) => {
                let [first, second] = steps.each_ref().map(|step| self.render_step(step));
                let word = match order {
                    NextStepOrder::Then => "; then ",
                    NextStepOrder::Or => "; or ",
                };
                [first, second].into_iter().flatten().reduce(|first, second| first + word + &second)?
            }
        })
    }

    fn word_for_call(self) -> &'static str {
        match self {
            CallStyle::ToolCall | CallStyle::DialectTool(_) => "call",
            CallStyle::Endpoint => "request",
            CallStyle::Command(_) => "command",
        }
    }

    fn render_repeated(self, argument: &SuggestedArgument) -> String {
        let name = self.render_argument_name(argument.name);
        match &argument.value {
            SuggestedArgumentValue::True => format!(" with {}", self.render_switch(argument.name)),
            SuggestedArgumentValue::Text(text) => match self {
                CallStyle::Endpoint => format!(" with {name}: {}", json!(text)),
                CallStyle::ToolCall | CallStyle::Command(_) | CallStyle::DialectTool(_) => {
                    format!(" with {name} {text}")
                }
            },
            SuggestedArgumentValue::Described(description) => format!(" with {name} {description}"),
            SuggestedArgumentValue::Omitted => format!(" without {name}"),
        }
    }

    pub(crate) fn render_argument_name(self, name: &str) -> String {
        match self {
            CallStyle::ToolCall | CallStyle::DialectTool(_) => name.to_owned(),
            CallStyle::Endpoint => format!("\"{name}\""),
            CallStyle::Command(_) => format!("--{}", name.replace('_', "-")),
        }
    }

    /// Renders a boolean argument that is true: `all: true` in a tool call, `--all` in a command.
    pub(crate) fn render_switch(self, name: &str) -> String {
        let name = self.render_argument_name(name);
        match self {
            CallStyle::ToolCall | CallStyle::Endpoint | CallStyle::DialectTool(_) => format!("{name}: true"),
            CallStyle::Command(_) => name,
        }
    }

    /// The hint of an error: its next step in one line.
    pub fn render_hint(self, error: &Error) -> Option<String> {
        let hint = self.render_step(error.next_step.as_deref()?)?;
        Some(escape_deceptive_line(&hint).into_owned())
    }

    /// The JSON form of an error that protocols send: `{"error": {kind, detail, hint?, …details}}`.
    pub fn error_to_json(self, error: &Error) -> Value {
        let mut fields = Map::new();
        fields.insert("kind".into(), error.kind.code().into());
        fields.insert("detail".into(), error.message.clone().into());
        if let Some(hint) = self.render_hint(error) {
            fields.insert("hint".into(), hint.into());
        }
        fields.extend(to_json_object(&error.details));
        json!({ "error": fields })
    }
}

fn after_text(purpose: &str) -> String {
    if purpose.is_empty() { String::new() } else { format!(" to {purpose}") }
}

fn before_text(purpose: &str, verb: &str, call: &str) -> String {
    if purpose.is_empty() { format!("{verb}{call}") } else { format!("to {purpose}, {verb}{call}") }
}

fn render_tool_argument((name, value): (&String, &Value)) -> String {
    match value.as_str() {
        Some(path) if name == "path" => format!("path {}", escape_deceptive_line(path)),
        Some(text) => format!("{name} \"{}\"", escape_deceptive_line(text)),
        None => format!("{name} {value}"),
    }
}
