//! What the suite asks for, as an annex of the face: who answers which request.

use faces::mcp::{Annex, Answering, Asked, Client, List, Refusal};
use serde_json::{Map, Value, json};

use super::{catalogue, rounds, tools};

/// The protocol's number for parameters that do not fit.
pub(crate) const INVALID_PARAMS: i32 = -32602;

/// The fixtures.
pub(crate) struct Fixtures;

impl Annex for Fixtures {
    fn capabilities(&self) -> Map<String, Value> {
        let said = json!({ "logging": {}, "prompts": {}, "completions": {} });
        said.as_object().unwrap().clone()
    }

    fn listed(&self, list: List) -> Vec<Value> {
        match list {
            List::Tools => catalogue::tools(),
            List::Prompts => catalogue::prompts(),
            List::Resources => catalogue::resources(),
            List::ResourceTemplates => catalogue::templates(),
        }
    }

    fn answer<'a>(&'a self, asked: Asked<'a>, client: Client<'a>) -> Answering<'a> {
        Box::pin(async move {
            let params = asked.params;
            match asked.method {
                "tools/call" => call(&params, &client).await,
                "prompts/get" => prompt(&params),
                "resources/read" => catalogue::read(params["uri"].as_str()?).map(Ok),
                "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" => Some(Ok(json!({}))),
                "completion/complete" => complete(&params),
                _ => None,
            }
        })
    }
}

async fn call(params: &Value, client: &Client<'_>) -> Option<Result<Value, Refusal>> {
    let name = params["name"].as_str()?;
    if let Some(round) = rounds::tool(name, params, client) {
        return Some(round);
    }
    tools::call(name, &params["arguments"], client).await
}

fn prompt(params: &Value) -> Option<Result<Value, Refusal>> {
    let name = params["name"].as_str()?;
    rounds::prompt(name, params).or_else(|| catalogue::prompt(name, &params["arguments"]).map(Ok))
}

/// Any word that begins so, for the one prompt that takes arguments.
fn complete(params: &Value) -> Option<Result<Value, Refusal>> {
    if params["ref"]["name"] != "test_prompt_with_arguments" {
        return None;
    }
    let begun = params["argument"]["value"].as_str()?;
    let words = ["paris", "park", "party", "test", "testing"];
    let values: Vec<&str> = words.into_iter().filter(|word| word.starts_with(begun)).collect();
    Some(Ok(json!({ "completion": { "values": values, "total": values.len(), "hasMore": false } })))
}
