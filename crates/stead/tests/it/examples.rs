//! Runs every example in the operation definitions as a command line.

use serde_json::{Map, Value};
use stead_protocols::definition::{DialectDefinition, ToolDefinition};

use crate::cli_fixture::CliFixture;

fn command_line_of(operation: &ToolDefinition, arguments: &Map<String, Value>) -> Vec<String> {
    let mut positional: Vec<(usize, String)> = Vec::new();
    let mut options = Vec::new();
    for input in &operation.inputs {
        let value = match arguments.get(&input.name) {
            None | Some(Value::Bool(false)) => continue,
            Some(Value::Bool(true)) => {
                options.push(format!("--{}", input.name.replace('_', "-")));
                continue;
            }
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        match input.positional {
            Some(place) => positional.push((place, value)),
            None => options.push(format!("--{}={value}", input.name.replace('_', "-"))),
        }
    }
    positional.sort();
    let mut words = vec![operation.name.clone(), "--json".to_owned(), "--principal=agent:tester".to_owned()];
    words.extend(options);
    words.push("--".to_owned());
    words.extend(positional.into_iter().map(|(_, value)| value));
    words
}

fn run_step(fixture: &CliFixture, definition: &DialectDefinition, step: &Value) -> Value {
    let operation = definition.find_tool(step["operation"].as_str().unwrap()).unwrap();
    let words = command_line_of(operation, step["arguments"].as_object().unwrap());
    let ran = fixture.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(!ran.stdout.is_empty(), "{words:?}: {}", ran.stderr);
    let answer = ran.json();
    assert_eq!(ran.code != 0, answer.get("error").is_some(), "{words:?}: exit {} with {answer}", ran.code);
    answer
}

#[test]
fn every_definition_example_passes_on_the_command_line() {
    let definition = DialectDefinition::native().unwrap();
    let generated: Value = serde_json::from_str(include_str!("../../../protocols/tests/generated/stead.json")).unwrap();
    let examples = generated["examples"].as_array().unwrap();
    assert!(!examples.is_empty());
    // These operations have builtin commands with tests of their own, and a buffer would close when its command exits.
    // The operations that administer have their own tests.
    let without_command = ["alerts", "respond", "policy", "approvals", "approve", "deny", "watch"];
    let of_editors = ["buffer.open", "buffer.change", "buffer.save", "buffer.close"];
    let elsewhere = without_command.iter().chain(&of_editors).copied().map(Value::from).collect::<Vec<_>>();
    let administers = |name: &Value| definition.find_tool(name.as_str().unwrap()).unwrap().authority.is_some();
    let is_elsewhere =
        |example: &&Value| elsewhere.contains(&example["operation"]) || administers(&example["operation"]);
    for example in examples.iter().filter(|example| !is_elsewhere(example)) {
        let fixture = CliFixture::new();
        for (path, content) in example["tree"].as_object().unwrap() {
            let place = fixture.workspace().join(path);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, content.as_str().unwrap()).unwrap();
        }
        for step in example["before"].as_array().unwrap() {
            assert!(run_step(&fixture, &definition, step).get("error").is_none(), "{step}");
        }
        let answer = run_step(&fixture, &definition, example);
        if let Some(kind) = example["error"].as_str() {
            assert_eq!(answer["error"]["kind"], kind, "{example}");
        }
        for (field, expected) in example["answer"].as_object().into_iter().flatten() {
            assert_eq!(&answer[field], expected, "{field} of {answer}");
        }
    }
}
