//! Formats a tool call as a `stead` command line, for hints that tell a person which command to run.

use serde_json::{Map, Value};
use stead_protocols::definition::{DialectDefinition, ToolArgumentDefinition, ToolDefinition};

pub(crate) fn render_command(operation: &str, arguments: &Map<String, Value>) -> String {
    let definition = DialectDefinition::native().ok();
    let known = definition.as_ref().and_then(|definition| definition.find_tool(operation));
    let inputs: &[ToolArgumentDefinition] = known.map_or(&[], |known| &known.inputs);
    let place = |name: &str| inputs.iter().find(|input| input.name == name).and_then(|input| input.positional);
    let mut positional: Vec<_> = arguments.iter().filter_map(|(name, value)| Some((place(name)?, value))).collect();
    positional.sort_by_key(|(place, _)| *place);
    let mut words = vec!["stead".to_owned(), known.map_or(operation, ToolDefinition::command_words).to_owned()];
    words.extend(positional.into_iter().map(|(_, value)| render_value(value)));
    for (name, value) in arguments.iter().filter(|(name, _)| place(name).is_none()) {
        match value {
            Value::Bool(false) | Value::Null => {}
            Value::Bool(true) => words.push(render_flag(name)),
            Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                words.extend([render_flag(name), render_value(value)]);
            }
        }
    }
    words.join(" ")
}

fn render_flag(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

fn render_value(value: &Value) -> String {
    match value {
        Value::String(text) => quote_for_shell(text),
        // Only queries are lists; the command line separates queries by newlines.
        Value::Array(texts) => {
            let texts: Vec<&str> = texts.iter().filter_map(Value::as_str).collect();
            quote_for_shell(&texts.join("\n"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => quote_for_shell(&value.to_string()),
    }
}

/// Quotes a word for a POSIX shell unless all its characters are plain.
pub(crate) fn quote_for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "._-/:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn command_has_the_arguments_in_the_order_of_the_command_line() {
        for (operation, arguments, expected) in [
            ("changes", json!({ "since": "41:ab" }), "stead changes 41:ab"),
            (
                "list",
                json!({ "path": "my dir", "depth": 2, "all": true, "cursor": "a" }),
                "stead list 'my dir' --depth 2 --all --cursor a",
            ),
            (
                "search",
                json!({ "path": "src", "query": "fn", "regex": false, "ignore_case": true }),
                "stead search fn src --ignore-case",
            ),
        ] {
            let command = render_command(operation, arguments.as_object().unwrap());
            assert_eq!(command, expected);
            let words = command.replace("'my dir'", "my-dir");
            let definition = DialectDefinition::native().unwrap();
            crate::cli::build_command_line(&definition).try_get_matches_from(words.split(' ')).unwrap();
        }
    }
}
