//! Everything that is advertised is called: each example of the definitions, through the engine and over MCP, with the
//! same outcome on both.

use std::sync::Arc;

use engine::{Call, Caller, Engine, Principal};
use faces::definition::Definition;
use serde::Deserialize;
use serde_json::{Map, Value};
use testkit::MemoryWorkspace;

use crate::client::Client;

#[derive(Deserialize)]
struct Examples {
    examples: Vec<Example>,
}

#[derive(Deserialize)]
struct Example {
    operation: String,
    title: String,
    tree: Map<String, Value>,
    before: Vec<Step>,
    arguments: Map<String, Value>,
    answer: Option<Map<String, Value>>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Step {
    operation: String,
    arguments: Map<String, Value>,
}

/// The published vocabularies, with what was generated for them.
const DIALECTS: &[(&str, &str)] = &[
    ("jettson", include_str!("../generated/jettson.json")),
    ("weaver", include_str!("../generated/weaver.json")),
    ("comma", include_str!("../generated/comma.json")),
    ("krux", include_str!("../generated/krux.json")),
];

fn examples() -> Vec<Example> {
    examples_in(include_str!("../generated/stead.json"))
}

fn examples_in(generated: &str) -> Vec<Example> {
    let examples: Examples = serde_json::from_str(generated).unwrap();
    examples.examples
}

fn plant(workspace: &MemoryWorkspace, example: &Example) {
    for (path, content) in &example.tree {
        workspace.put_file(path, content.as_str().unwrap());
    }
}

impl Example {
    fn name(&self) -> String {
        format!("{}: {}", self.operation, self.title)
    }

    fn judge(&self, outcome: &Value) {
        let name = self.name();
        if let Some(kind) = &self.error {
            assert_eq!(outcome["error"]["kind"], kind.as_str(), "{name}: {outcome}");
            return;
        }
        assert!(outcome.get("error").is_none(), "{name}: {outcome}");
        for (field, expected) in self.answer.iter().flatten() {
            assert_eq!(&outcome[field], expected, "{name}: {field} of {outcome}");
        }
    }
}

#[test]
fn every_operation_has_an_example() {
    for operation in &Definition::stead().unwrap().operations {
        assert!(examples().iter().any(|example| example.operation == operation.name), "{}", operation.name);
    }
}

#[test]
fn every_example_holds_in_the_engine() {
    let definition = Definition::stead().unwrap();
    for example in examples() {
        let workspace = Arc::new(MemoryWorkspace::new());
        plant(&workspace, &example);
        let engine = Engine::new(workspace);
        let caller = Caller::new(Principal::Agent("tester".to_owned()), "test", "library");
        for step in &example.before {
            engine
                .call(&Call::new(&caller, &step.operation, step.arguments.clone()))
                .expect("a step before succeeds");
        }
        match engine.call(&Call::new(&caller, &example.operation, example.arguments.clone())) {
            Ok(answer) => {
                let declared = definition.operation(&example.operation).expect("it is declared");
                for field in
                    answer.json.keys().filter(|field| *field != "notices" && !field.ends_with("_omitted"))
                {
                    assert!(
                        declared.outputs.iter().any(|output| output.name == *field),
                        "{}: the answer has {field}, which is not declared",
                        example.name()
                    );
                }
                example.judge(&Value::Object(answer.json));
            }
            Err(failure) => example.judge(&failure.to_json()),
        }
    }
}

#[tokio::test]
async fn every_example_holds_over_mcp() {
    for example in examples() {
        let mut client = Client::open("2025-11-25").await;
        plant(&client.workspace, &example);
        for step in &example.before {
            let answer = client.call(&step.operation, step.arguments.clone().into()).await;
            assert_eq!(answer["result"]["isError"], false, "{}: {answer}", example.name());
        }
        let answer = client.call(&example.operation, example.arguments.clone().into()).await;
        let result = &answer["result"];
        assert_eq!(result["isError"], example.error.is_some(), "{}: {answer}", example.name());
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{}", example.name());
        assert_eq!(result["content"][0]["type"], "text");
        example.judge(&result["structuredContent"]);
        client.close().await;
    }
}

/// What a call over JSON-RPC answered: the dialect's object, whether it is the result or comes with an error.
fn object(answer: &Value) -> &Value {
    answer.get("result").unwrap_or(&answer["error"]["data"])
}

#[tokio::test]
async fn every_example_holds_over_json_rpc() {
    for example in examples() {
        let mut client = Client::rpc(&["stead"]);
        plant(&client.workspace, &example);
        for step in &example.before {
            let answer = client.request(&step.operation, step.arguments.clone().into()).await;
            assert!(answer.get("result").is_some(), "{}: {answer}", example.name());
        }
        let answer = client.request(&example.operation, example.arguments.clone().into()).await;
        assert_eq!(answer.get("error").is_some(), example.error.is_some(), "{}: {answer}", example.name());
        example.judge(object(&answer));
        client.close().await;
    }
}

#[test]
fn every_dialect_is_among_those_that_are_tried() {
    let tried: Vec<&str> = DIALECTS.iter().map(|(name, _)| *name).collect();
    assert_eq!(faces::dialect::names()[1..], tried);
}

#[tokio::test]
async fn every_example_of_every_dialect_holds_over_mcp_and_json_rpc() {
    for (dialect, generated) in DIALECTS {
        let examples = examples_in(generated);
        let mut tools: Vec<&str> = examples.iter().map(|example| example.operation.as_str()).collect();
        tools.dedup();
        let mut client = Client::open_in(dialect).await;
        let listed = client.request("tools/list", serde_json::json!({})).await;
        let tools_listed = listed["result"]["tools"].as_array().unwrap();
        let listed: Vec<String> =
            tools_listed.iter().map(|tool| tool["name"].as_str().unwrap().replace("__", ".")).collect();
        assert_eq!(listed, tools, "every tool of {dialect} has an example, in order");
        let schemas: Map<String, Value> = tools_listed
            .iter()
            .map(|tool| (tool["name"].as_str().unwrap().replace("__", "."), tool["outputSchema"].clone()))
            .collect();
        client.close().await;
        for example in examples {
            let mut client = Client::open_in(dialect).await;
            plant(&client.workspace, &example);
            for step in &example.before {
                client.call(&step.operation, step.arguments.clone().into()).await;
            }
            let answer = client.call(&example.operation, example.arguments.clone().into()).await;
            let found = &answer["result"]["structuredContent"];
            judge_schema(&schemas[&example.operation], found, &example.name());
            for (field, expected) in example.answer.iter().flatten() {
                assert_eq!(&found[field], expected, "{dialect} {}: {field} of {answer}", example.name());
            }
            client.close().await;
            let mut client = Client::rpc(&[dialect]);
            plant(&client.workspace, &example);
            for step in &example.before {
                client.request(&step.operation, step.arguments.clone().into()).await;
            }
            let answer = client.request(&example.operation, example.arguments.clone().into()).await;
            for (field, expected) in example.answer.iter().flatten() {
                let found = &object(&answer)[field];
                assert_eq!(found, expected, "{dialect} {}: {field} of {answer}", example.name());
            }
            client.close().await;
        }
    }
}

/// Holds an answer against the schema that was advertised for it: every field is declared, and is what it is said to be.
fn judge_schema(schema: &Value, answer: &Value, name: &str) {
    for (field, value) in answer.as_object().unwrap() {
        let declared = &schema["properties"][field];
        if value.is_null() && declared["anyOf"][1]["type"] == "null" {
            continue;
        }
        let declared = declared["type"].as_str().or_else(|| declared["anyOf"][0]["type"].as_str());
        let is_it = match declared {
            Some("string") => value.is_string(),
            Some("integer") => value.is_u64(),
            Some("boolean") => value.is_boolean(),
            Some("array") => value.is_array(),
            Some("object") => value.is_object(),
            other => panic!("{name}: {field} is declared as {other:?}"),
        };
        assert!(is_it, "{name}: {field} is {value}, declared as {declared:?}");
    }
}
