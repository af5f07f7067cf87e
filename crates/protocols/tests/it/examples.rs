//! Tests over MCP and JSON-RPC that the examples in the tool definitions give the outcomes that they state. The native
//! examples also run directly in the engine.

use serde::Deserialize;
use serde_json::{Map, Value};
use stead_protocols::definition::{DialectDefinition, ToolExampleSetupCall};
use testkit::{
    MemoryWorkspace,
    engine_fixture::{EngineFixture, agent},
    error_json,
};

use crate::test_client::JsonLinesTestClient;

#[derive(Deserialize)]
struct DialectExamplesJson {
    examples: Vec<DialectExample>,
}

#[derive(Deserialize)]
pub(crate) struct DialectExample {
    pub(crate) operation: String,
    title: String,
    tree: Map<String, Value>,
    pub(crate) before: Vec<ToolExampleSetupCall>,
    pub(crate) arguments: Map<String, Value>,
    answer: Option<Map<String, Value>>,
    error: Option<String>,
}

const DIALECT_EXAMPLES_JSON: &[(&str, &str)] = &[
    ("jettson", include_str!("../generated/jettson.json")),
    ("weaver", include_str!("../generated/weaver.json")),
    ("comma", include_str!("../generated/comma.json")),
    ("krux", include_str!("../generated/krux.json")),
];

pub(crate) fn native_examples() -> Vec<DialectExample> {
    parse_examples(include_str!("../generated/stead.json"))
}

fn parse_examples(generated: &str) -> Vec<DialectExample> {
    let examples: DialectExamplesJson = serde_json::from_str(generated).unwrap();
    examples.examples
}

pub(crate) fn create_files(workspace: &MemoryWorkspace, example: &DialectExample) {
    for (path, content) in &example.tree {
        workspace.put_file(path, content.as_str().unwrap());
    }
}

impl DialectExample {
    fn name(&self) -> String {
        format!("{}: {}", self.operation, self.title)
    }

    fn check_outcome(&self, outcome: &Value) {
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
    for operation in &DialectDefinition::native().unwrap().operations {
        assert!(native_examples().iter().any(|example| example.operation == operation.name), "{}", operation.name);
    }
}

#[test]
fn all_examples_pass_in_the_engine() {
    for example in native_examples() {
        let fixture = EngineFixture::new().with_caller(&agent("tester"));
        create_files(&fixture.workspace, &example);
        for step in &example.before {
            fixture.call_ok(&step.operation, step.arguments.clone().into());
        }
        match fixture.call(&example.operation, example.arguments.clone().into()) {
            Ok(answer) => example.check_outcome(&Value::Object(answer.json)),
            Err(failure) => example.check_outcome(&error_json(&failure)),
        }
    }
}

#[tokio::test]
async fn all_examples_pass_over_mcp() {
    for example in native_examples() {
        let mut client = JsonLinesTestClient::initialized("2025-11-25").await;
        create_files(&client.workspace, &example);
        for step in &example.before {
            let answer = client.call_tool(&step.operation, step.arguments.clone().into()).await;
            assert_eq!(answer["result"]["isError"], false, "{}: {answer}", example.name());
        }
        let answer = client.call_tool(&example.operation, example.arguments.clone().into()).await;
        let result = &answer["result"];
        assert_eq!(result["isError"], example.error.is_some(), "{}: {answer}", example.name());
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{}", example.name());
        assert_eq!(result["content"][0]["type"], "text");
        example.check_outcome(&result["structuredContent"]);
        client.close().await;
    }
}

fn response_object(answer: &Value) -> &Value {
    answer.get("result").unwrap_or(&answer["error"]["data"])
}

#[tokio::test]
async fn all_examples_pass_over_json_rpc() {
    for example in native_examples() {
        let mut client = JsonLinesTestClient::rpc_client(&["stead"]);
        create_files(&client.workspace, &example);
        for step in &example.before {
            let answer = client.request(&step.operation, step.arguments.clone().into()).await;
            assert!(answer.get("result").is_some(), "{}: {answer}", example.name());
        }
        let answer = client.request(&example.operation, example.arguments.clone().into()).await;
        assert_eq!(answer.get("error").is_some(), example.error.is_some(), "{}: {answer}", example.name());
        example.check_outcome(response_object(&answer));
        client.close().await;
    }
}

#[test]
fn every_dialect_has_examples() {
    let with_examples: Vec<&str> = DIALECT_EXAMPLES_JSON.iter().map(|(name, _)| *name).collect();
    assert_eq!(stead_protocols::dialect::dialect_names()[1..], with_examples);
}

#[tokio::test]
async fn all_dialect_examples_pass_over_mcp_and_json_rpc() {
    for (dialect, generated) in DIALECT_EXAMPLES_JSON {
        let examples = parse_examples(generated);
        let mut tools: Vec<&str> = examples.iter().map(|example| example.operation.as_str()).collect();
        tools.dedup();
        let mut client = JsonLinesTestClient::initialized_with_dialect(dialect).await;
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
            let mut client = JsonLinesTestClient::initialized_with_dialect(dialect).await;
            create_files(&client.workspace, &example);
            for step in &example.before {
                client.call_tool(&step.operation, step.arguments.clone().into()).await;
            }
            let answer = client.call_tool(&example.operation, example.arguments.clone().into()).await;
            let found = &answer["result"]["structuredContent"];
            check_against_schema(&schemas[&example.operation], found, &example.name());
            for (field, expected) in example.answer.iter().flatten() {
                assert_eq!(&found[field], expected, "{dialect} {}: {field} of {answer}", example.name());
            }
            client.close().await;
            let mut client = JsonLinesTestClient::rpc_client(&[dialect]);
            create_files(&client.workspace, &example);
            for step in &example.before {
                client.request(&step.operation, step.arguments.clone().into()).await;
            }
            let answer = client.request(&example.operation, example.arguments.clone().into()).await;
            for (field, expected) in example.answer.iter().flatten() {
                let found = &response_object(&answer)[field];
                assert_eq!(found, expected, "{dialect} {}: {field} of {answer}", example.name());
            }
            client.close().await;
        }
    }
}

fn check_against_schema(schema: &Value, answer: &Value, name: &str) {
    for (field, value) in answer.as_object().unwrap() {
        let declared = &schema["properties"][field];
        if value.is_null() && declared["anyOf"][1]["type"] == "null" {
            continue;
        }
        let declared = declared["type"].as_str().or_else(|| declared["anyOf"][0]["type"].as_str());
        let matches = match declared {
            Some("string") => value.is_string(),
            Some("integer") => value.is_u64(),
            Some("boolean") => value.is_boolean(),
            Some("array") => value.is_array(),
            Some("object") => value.is_object(),
            other => panic!("{name}: {field} is declared as {other:?}"),
        };
        assert!(matches, "{name}: {field} is {value}, declared as {declared:?}");
    }
}
