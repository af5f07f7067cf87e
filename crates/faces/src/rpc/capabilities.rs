//! `capabilities.list` and `capabilities.describe`: what is served, from the definitions.

use engine::Tier;
use serde_json::{Map, Value, json};

use super::{
    Rpc,
    code::{self, ErrorObject},
};
use crate::definition::{Input, InputType, Operation, Recovery};

/// The version of a tool that declares none.
const UNVERSIONED: &str = "1.0";

/// Every tool that is served, or those of one category: what stands before the dot. What the policy blocks for the caller
/// is left out.
pub(super) fn list(rpc: &Rpc, params: &Map<String, Value>) -> Result<Value, ErrorObject> {
    let category = text(params, "category")?;
    let wanted =
        |operation: &&Operation| category.is_none_or(|category| self::category(&operation.name) == category);
    let all = rpc.dialects.iter().flat_map(|dialect| {
        let offered = move |operation: &&Operation| !rpc.is_blocked(dialect, operation);
        dialect.definition().operations.iter().filter(offered)
    });
    let listed: Vec<Value> = all.filter(wanted).map(brief).collect();
    Ok(json!({ "capabilities": listed }))
}

/// Everything that is declared of one tool. One that is blocked says so.
pub(super) fn describe(rpc: &Rpc, params: &Map<String, Value>) -> Result<Value, ErrorObject> {
    let misfit = || ErrorObject::new(code::INVALID_PARAMS, "capabilities.describe takes {\"name\": string}");
    let name = text(params, "name")?.ok_or_else(misfit)?;
    let named = rpc.dialects.named(name);
    let found = named.and_then(|(dialect, tool)| Some((dialect, dialect.definition().operation(tool)?)));
    let Some((dialect, operation)) = found else {
        return Err(ErrorObject::new(code::INVALID_PARAMS, "there is no capability of that name")
            .with(json!({ "recovery": [{ "action": "list", "description": "Call capabilities.list to see which there are." }] })));
    };
    let mut described = whole(operation);
    if rpc.is_blocked(dialect, operation) {
        described["permission_tier"] = json!(Tier::Blocked);
    }
    Ok(described)
}

/// The one parameter of these methods.
fn text<'a>(params: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, ErrorObject> {
    let misfit = || ErrorObject::new(code::INVALID_PARAMS, format!("the only parameter is {name}, a string"));
    if params.keys().any(|given| given != name) {
        return Err(misfit());
    }
    params.get(name).map(|value| value.as_str().ok_or_else(misfit)).transpose()
}

/// What stands before the dot; the native operations have none and are of one category.
fn category(name: &str) -> &str {
    name.split_once('.').map_or("stead", |(category, _)| category)
}

fn brief(operation: &Operation) -> Value {
    json!({
        "name": operation.name,
        "version": operation.version.as_deref().unwrap_or(UNVERSIONED),
        "purpose": operation.summary,
        "permission_tier": operation.tier.unwrap_or_default(),
        "inputs": operation.inputs.iter().map(input).collect::<Vec<_>>(),
        "outputs": outputs(operation),
    })
}

fn whole(operation: &Operation) -> Value {
    let mut described = brief(operation);
    described["when_to_use"] = operation.when.clone().into();
    described["effect"] = json!(operation.effect);
    described["side_effects"] = json!(operation.side_effects);
    described["common_patterns"] = json!(operation.patterns);
    described["errors"] = operation.errors.iter().map(error).collect();
    described["tags"] = json!(operation.tags);
    described
}

/// One failure, with every way out of it.
fn error(error: &Recovery) -> Value {
    let in_one_line = json!([{ "action": "hint", "description": error.recovery }]);
    let ways = if error.recoveries.is_empty() { in_one_line } else { json!(error.recoveries) };
    json!({ "type": error.kind, "recovery": ways })
}

fn input(input: &Input) -> Value {
    let kind = match input.kind {
        InputType::String | InputType::Enum => "string",
        InputType::Texts => "string or array of strings",
        InputType::Integer => "integer",
        InputType::Boolean => "boolean",
        InputType::Json => "json",
    };
    let mut shown = json!({
        "name": input.name, "type": kind, "required": input.required, "description": input.description,
    });
    if let Some(default) = &input.default {
        shown["default"] = default.clone();
    }
    if !input.values.is_empty() {
        shown["values"] = input.values.clone().into();
    }
    if let Some(schema) = &input.schema {
        shown["schema"] = schema.clone().into();
    }
    shown
}

fn outputs(operation: &Operation) -> Vec<Value> {
    let one = |output: &crate::definition::Output| json!({ "name": output.name, "type": output.kind, "description": output.description });
    operation.outputs.iter().map(one).collect()
}
