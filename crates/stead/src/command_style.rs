//! Renders suggested calls as `stead` commands that work when a person pastes them: quoted for a shell, and with the
//! flags that the person gave to choose the workspace and the caller.

use clap::{ArgMatches, Args, Command};
use serde_json::{Map, Value};
use stead_engine::SuggestedCall;
use stead_protocols::{
    definition::{DialectDefinition, ToolArgumentDefinition, ToolDefinition},
    native::{CallStyle, CommandRenderer},
};

use crate::cli::{self, CallerAccessCliFlags, WorkspaceFlags};

pub(crate) const COMMAND_STYLE: CallStyle =
    CallStyle::Command(CommandRenderer { call: render_call, words: render_person_command });

fn render_call(call: &SuggestedCall) -> Option<String> {
    let definition = DialectDefinition::native().ok()?;
    let Ok(Value::Object(mut arguments)) = serde_json::to_value(call) else { return None };
    let operation = definition.find_tool(call.operation())?;
    let name = command_name(operation, &mut arguments)?;
    let (values, redirection) = render_arguments(&operation.inputs, &arguments);
    let is_operation_command = operation.command.is_some();
    let flags = typed_flags(&definition).into_iter().filter(|flag| is_operation_command || !flag.chooses_caller);
    let words = [format!("stead {name}")].into_iter().chain(values).chain(flags.map(|flag| flag.text));
    Some(words.chain(redirection).collect::<Vec<_>>().join(" "))
}

/// A person's command never gets the flags that choose the caller, because they may name an agent.
fn render_person_command(words: &[&str]) -> String {
    let flags = DialectDefinition::native().map(|definition| typed_flags(&definition)).unwrap_or_default();
    let flags = flags.into_iter().filter(|flag| !flag.chooses_caller).map(|flag| flag.text);
    let quoted = words.iter().map(|word| quote_for_shell(word));
    ["stead".to_owned()].into_iter().chain(quoted).chain(flags).collect::<Vec<_>>().join(" ")
}

/// The words of the command for an operation, if there is one. Takes the arguments that the words replace.
fn command_name<'a>(operation: &'a ToolDefinition, arguments: &mut Map<String, Value>) -> Option<&'a str> {
    match (operation.name.as_str(), arguments.contains_key("id")) {
        ("alerts", true) => Some("alerts show"),
        ("alerts", false) => Some("alerts list"),
        ("approvals", true) => Some("approvals show"),
        ("approvals", false) if arguments.remove("state").is_some() => Some("approvals list --all"),
        ("approvals", false) => Some("approvals list"),
        ("watch", _) if arguments.keys().all(|name| name == "path") => Some("watch"),
        (_, _) => operation.command.is_some().then(|| operation.command_words()),
    }
}

/// Renders the arguments in the order of the command line, and the redirection of standard input if an argument is
/// read from there.
fn render_arguments(
    inputs: &[ToolArgumentDefinition],
    arguments: &Map<String, Value>,
) -> (Vec<String>, Option<String>) {
    let input_of = |name: &str| inputs.iter().find(|input| input.name == name);
    let place = |name: &str| input_of(name).and_then(|input| input.positional);
    let mut positional: Vec<_> = arguments.iter().filter_map(|(name, value)| Some((place(name)?, value))).collect();
    positional.sort_by_key(|(place, _)| *place);
    let mut words: Vec<String> = positional.into_iter().map(|(_, value)| render_value(value)).collect();
    let mut redirection = None;
    for (name, value) in arguments.iter().filter(|(name, _)| place(name).is_none()) {
        match value {
            Value::Bool(false) | Value::Null => {}
            Value::Bool(true) => words.push(render_flag(name)),
            Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                if input_of(name).is_some_and(|input| input.stdin) {
                    redirection = Some(format!("< {}", render_value(value)));
                } else {
                    words.extend([render_flag(name), render_value(value)]);
                }
            }
        }
    }
    (words, redirection)
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

/// A flag of the running command that a suggested command repeats.
struct RepeatedFlag {
    text: String,
    chooses_caller: bool,
}

/// The flags that the person typed. A suggested command does not repeat settings from the environment or from a file,
/// because they apply to it as well.
fn typed_flags(definition: &DialectDefinition) -> Vec<RepeatedFlag> {
    let typed = cli::build_command_line(definition).try_get_matches_from(std::env::args_os());
    typed.map_or_else(|_| Vec::new(), |matches| repeated_flags(cli::innermost_matches(&matches)))
}

fn repeated_flags(matches: &ArgMatches) -> Vec<RepeatedFlag> {
    let flags_of = |command: Command, chooses_caller| {
        let names: Vec<String> = command.get_arguments().map(|flag| flag.get_id().to_string()).collect();
        names.into_iter().map(move |name| (name, chooses_caller))
    };
    let workspace_flags = flags_of(WorkspaceFlags::augment_args(Command::new("")), false);
    let caller_flags = flags_of(CallerAccessCliFlags::augment_args(Command::new("")), true);
    let registry_flag = ("workspaces".to_owned(), false);
    let mut repeated = Vec::new();
    for (name, chooses_caller) in workspace_flags.chain([registry_flag]).chain(caller_flags) {
        let typed = matches.try_contains_id(&name).is_ok_and(|_| cli::is_typed_flag(matches, &name));
        let values = matches.try_get_raw(&name).ok().flatten().filter(|_| typed).into_iter().flatten();
        for value in values {
            let value = value.to_string_lossy();
            let value = if value == "true" { String::new() } else { format!(" {}", quote_for_shell(&value)) };
            repeated.push(RepeatedFlag { text: format!("{}{value}", render_flag(&name)), chooses_caller });
        }
    }
    repeated
}

fn quote_for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "._-/:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use serde::Deserialize;
    use serde_json::json;
    use stead_engine::{for_each_operation, ops};

    use super::*;

    macro_rules! decode_suggested_call {
        ($($name:literal $effect:ident $args:ident => $outcome:ident $(as $text:ident)? $([$($content:literal),+])?
        $(by $authority:ident)?;)+) => {
            fn decode_suggested_call(operation: &str, arguments: &Map<String, Value>) -> Option<SuggestedCall> {
                match operation {
                    $($name => ops::$args::deserialize(arguments).ok().map(SuggestedCall::from),)+
                    _ => None,
                }
            }
        };
    }

    for_each_operation!(decode_suggested_call);

    /// Parses a command with the real command line, as a shell would split it.
    fn assert_parses(definition: &DialectDefinition, command: &str) {
        let words = command.replace("'\\''", "\u{1}");
        let words = words.split(" < ").next().unwrap().split('\'').enumerate().flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().collect::<Vec<_>>(),
            _ => vec![part],
        });
        let parsed = cli::build_command_line(definition).try_get_matches_from(words);
        assert!(parsed.is_ok(), "{command}: {}", parsed.unwrap_err());
    }

    #[test]
    fn the_command_of_every_suggested_call_parses() {
        let definition = DialectDefinition::native().unwrap();
        let examples: Map<String, Value> =
            serde_json::from_str(include_str!("../../protocols/tests/generated/stead.json")).unwrap();
        let mut rendered = 0;
        for example in examples["examples"].as_array().unwrap() {
            let (operation, arguments) = (example["operation"].as_str().unwrap(), example["arguments"].as_object());
            let call = decode_suggested_call(operation, arguments.unwrap());
            if let Some(command) = call.and_then(|call| render_call(&call)) {
                assert_parses(&definition, &command);
                rendered += 1;
            }
        }
        assert!(rendered > definition.operations.len(), "{rendered}");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the sources are files of the project")]
    fn the_words_of_every_command_for_a_person_parse() {
        let definition = DialectDefinition::native().unwrap();
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut found = 0;
        let mut directories = vec![crates.join("engine/src"), crates.join("local/src"), crates.join("stead/src")];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    directories.push(entry.path());
                    continue;
                }
                let source = fs::read_to_string(entry.path()).unwrap_or_default();
                for call in source.split("::person_command(\"").skip(1) {
                    let (words, rest) = call.split_once('"').unwrap();
                    let last = if rest.starts_with(", \"") && rest.contains(".with_word(") { " ID" } else { "" };
                    let is_complete = cli::build_command_line(&definition)
                        .try_get_matches_from(format!("stead {words}").split(' '))
                        .is_ok();
                    let command = format!("stead {words}{}", if is_complete { "" } else { last });
                    assert_parses(&definition, &command);
                    found += 1;
                }
            }
        }
        assert!(found > 10, "{found}");
    }

    #[test]
    fn commands_have_the_arguments_in_the_order_of_the_command_line() {
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
            ("write", json!({ "path": "it's", "content": "NEW" }), "stead write 'it'\\''s' < NEW"),
            ("approvals", json!({ "id": "ap-1" }), "stead approvals show ap-1"),
            ("approvals", json!({ "state": "all" }), "stead approvals list --all"),
        ] {
            let call = decode_suggested_call(operation, arguments.as_object().unwrap()).unwrap();
            assert_eq!(render_call(&call).as_deref(), Some(expected));
        }
        let call = decode_suggested_call("buffer.close", json!({ "path": "a" }).as_object().unwrap()).unwrap();
        assert_eq!(render_call(&call), None);
    }

    #[test]
    fn commands_repeat_the_flags_that_a_person_typed() {
        let definition = DialectDefinition::native().unwrap();
        let typed =
            ["stead", "--workspace", "my dir", "read", "a", "--principal", "agent:b", "--state", "s", "--read-only"];
        let matches = cli::build_command_line(&definition).try_get_matches_from(typed).unwrap();
        let flags = repeated_flags(cli::innermost_matches(&matches));
        let texts: Vec<&str> = flags.iter().map(|flag| flag.text.as_str()).collect();
        assert_eq!(texts, ["--workspace 'my dir'", "--state s", "--principal agent:b", "--read-only"]);
        assert_eq!(flags.iter().filter(|flag| flag.chooses_caller).count(), 2);
    }
}
