//! Every example of the definitions, typed as a command: what is advertised can be called here too.

use faces::definition::{Definition, Operation};
use serde_json::{Map, Value};

use crate::bench::Bench;

/// The words of a command line that mean these arguments.
fn words(operation: &Operation, arguments: &Map<String, Value>) -> Vec<String> {
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

fn run(bench: &Bench, definition: &Definition, step: &Value) -> Value {
    let operation = definition.operation(step["operation"].as_str().unwrap()).unwrap();
    let words = words(operation, step["arguments"].as_object().unwrap());
    let ran = bench.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(!ran.out.is_empty(), "{words:?}: {}", ran.err);
    let answer = ran.json();
    assert_eq!(ran.code != 0, answer.get("error").is_some(), "{words:?}: exit {} with {answer}", ran.code);
    answer
}

#[test]
fn every_example_holds_as_a_command() {
    let definition = Definition::stead().unwrap();
    let generated: Value =
        serde_json::from_str(include_str!("../../../faces/tests/generated/stead.json")).unwrap();
    let examples = generated["examples"].as_array().unwrap();
    assert!(!examples.is_empty());
    // People have commands of their own for these; they are tried there. A buffer would end with the command.
    let otherwise = ["alerts", "respond", "policy", "approvals", "approve", "deny", "watch"];
    let of_editors = ["buffer.open", "buffer.change", "buffer.save", "buffer.close"];
    let elsewhere = otherwise.iter().chain(&of_editors).copied().map(Value::from).collect::<Vec<_>>();
    for example in examples.iter().filter(|example| !elsewhere.contains(&example["operation"])) {
        let bench = Bench::new();
        for (path, content) in example["tree"].as_object().unwrap() {
            let place = bench.workspace().join(path);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, content.as_str().unwrap()).unwrap();
        }
        for step in example["before"].as_array().unwrap() {
            assert!(run(&bench, &definition, step).get("error").is_none(), "{step}");
        }
        let answer = run(&bench, &definition, example);
        if let Some(kind) = example["error"].as_str() {
            assert_eq!(answer["error"]["kind"], kind, "{example}");
        }
        for (field, expected) in example["answer"].as_object().into_iter().flatten() {
            assert_eq!(&answer[field], expected, "{field} of {answer}");
        }
    }
}
