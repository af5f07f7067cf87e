//! Compares the JSON keys of outcomes and errors, and the MCP tool lists, with golden files. The golden files contain
//! keys at every depth, because the definitions declare only top-level keys.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use testkit::{engine_fixture::EngineFixture, error_json, pin};

use crate::{
    examples::{create_files, native_examples},
    test_client::JsonLinesTestClient,
};

/// The members with texts for people and models, which the golden files do not contain.
const TEXTS: &[&str] = &["description", "title"];

pub(crate) fn collect_keys(value: &Value, above: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, below) in fields {
                let way = format!("{above}.{name}");
                collect_keys(below, &way, found);
                found.insert(way);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_keys(item, &format!("{above}[]"), found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn outcomes_and_errors_have_the_keys_of_0_1_0() {
    let mut found = BTreeSet::new();
    for example in native_examples() {
        let fixture = EngineFixture::new();
        create_files(&fixture.workspace, &example);
        let steps = example.before.iter().map(|step| (&step.operation, &step.arguments));
        for (operation, arguments) in steps.chain([(&example.operation, &example.arguments)]) {
            match fixture.call(operation, arguments.clone().into()) {
                Ok(answer) => collect_keys(&Value::Object(answer.json), operation, &mut found),
                Err(failure) => collect_keys(&error_json(&failure), operation, &mut found),
            }
        }
    }
    let text: String = found.iter().map(|way| format!("{way}\n")).collect();
    pin::check(env!("CARGO_MANIFEST_DIR"), "answers.txt", &text);
}

fn brief(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let known: BTreeMap<_, _> = fields.iter().filter(|(name, _)| !TEXTS.contains(&name.as_str())).collect();
            let members: Vec<String> = known.iter().map(|(name, below)| format!("{name}: {}", brief(below))).collect();
            format!("{{{}}}", members.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(brief).collect::<Vec<_>>().join(", ")),
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[tokio::test]
async fn tool_lists_have_the_keys_of_0_1_0() {
    let mut text = String::new();
    for dialect in stead_protocols::dialect::dialect_names() {
        let mut client = JsonLinesTestClient::initialized_with_dialect(dialect).await;
        for (method, list) in
            [("tools/list", "tools"), ("prompts/list", "prompts"), ("resources/templates/list", "resourceTemplates")]
        {
            let answer = client.request(method, json!({})).await;
            for item in answer["result"][list].as_array().unwrap() {
                text.push_str(&format!("{dialect} {list} {}\n", brief(item)));
            }
        }
        client.close().await;
    }
    pin::check(env!("CARGO_MANIFEST_DIR"), "offered.txt", &text);
}

#[test]
fn json_keys_are_those_of_0_1_0() {
    pin::check(env!("CARGO_MANIFEST_DIR"), "json_keys.txt", &pin::json_keys(env!("CARGO_MANIFEST_DIR")));
}
