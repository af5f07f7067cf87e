//! Answers `capabilities.list` and `capabilities.describe` from the dialects' definitions.

use serde_json::{Map, Value, json};
use stead_engine::SupervisionTier;

use super::{RpcServer, errors, message::RpcError};
use crate::{
    definition::{
        ToolArgumentDefinition, ToolArgumentType, ToolDefinition, ToolErrorDefinition, ToolResultFieldDefinition,
    },
    native::without_nulls,
};

const DEFAULT_TOOL_VERSION: &str = "1.0";

/// Lists the tools that the policy does not block for the caller. The parameter `category` restricts the list to one
/// category, such as `filesystem`.
pub(super) fn list_capabilities(rpc: &RpcServer, params: &Map<String, Value>) -> Result<Value, RpcError> {
    let category = text_param(params, "category")?;
    let in_category =
        |operation: &&ToolDefinition| category.is_none_or(|category| self::category(&operation.name) == category);
    let tools = rpc.dialects.iter().flat_map(|dialect| {
        let allowed = move |operation: &&ToolDefinition| !rpc.is_blocked(&**dialect, operation);
        dialect.definition().operations.iter().filter(allowed)
    });
    let listed: Vec<Value> = tools.filter(in_category).map(brief_description).collect();
    Ok(json!({ "capabilities": listed }))
}

/// Describes one tool completely; a tool that the policy blocks has the tier `blocked`.
pub(super) fn describe_capability(rpc: &RpcServer, params: &Map<String, Value>) -> Result<Value, RpcError> {
    let invalid_params = || RpcError::new(errors::INVALID_PARAMS, "capabilities.describe takes {\"name\": string}");
    let name = text_param(params, "name")?.ok_or_else(invalid_params)?;
    let Some((dialect, operation)) = rpc.find_definition(name) else {
        return Err(RpcError::new(errors::INVALID_PARAMS, "there is no capability with this name")
            .with_data(json!({ "recovery": [{ "action": "list", "description": "Call capabilities.list for the available capabilities." }] })));
    };
    let mut description = full_description(operation);
    if rpc.is_blocked(&**dialect, operation) {
        description["permission_tier"] = json!(SupervisionTier::Blocked);
    }
    Ok(description)
}

/// Returns the value of the parameter `name`, for a method that accepts no other parameter.
fn text_param<'a>(params: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, RpcError> {
    let invalid_params = || RpcError::new(errors::INVALID_PARAMS, format!("the only parameter is {name}, a string"));
    if params.keys().any(|key| key != name) {
        return Err(invalid_params());
    }
    params.get(name).map(|value| value.as_str().ok_or_else(invalid_params)).transpose()
}

/// Returns the part of a tool's name before the dot; native operations have no dot and form one category.
fn category(name: &str) -> &str {
    name.split_once('.').map_or("stead", |(category, _)| category)
}

fn brief_description(operation: &ToolDefinition) -> Value {
    json!({
        "name": operation.name,
        "version": operation.version.as_deref().unwrap_or(DEFAULT_TOOL_VERSION),
        "purpose": operation.summary,
        "permission_tier": operation.tier.unwrap_or_default(),
        "inputs": operation.inputs.iter().map(describe_input).collect::<Vec<_>>(),
        "outputs": describe_outputs(operation),
    })
}

fn full_description(operation: &ToolDefinition) -> Value {
    let mut description = brief_description(operation);
    description["when_to_use"] = operation.when_to_use.clone().into();
    description["effect"] = json!(operation.effect);
    description["side_effects"] = json!(operation.side_effects);
    description["common_patterns"] = json!(operation.patterns);
    description["errors"] = operation.errors.iter().map(describe_error).collect();
    description["tags"] = json!(operation.tags);
    description
}

fn describe_error(error: &ToolErrorDefinition) -> Value {
    let hint = json!([{ "action": "hint", "description": error.recovery }]);
    let recovery = if error.recoveries.is_empty() { hint } else { json!(error.recoveries) };
    json!({ "type": error.kind, "recovery": recovery })
}

fn describe_input(input: &ToolArgumentDefinition) -> Value {
    let kind = match input.kind {
        ToolArgumentType::String | ToolArgumentType::Enum => "string",
        ToolArgumentType::StringOrList => "string or array of strings",
        ToolArgumentType::StringList => "array of strings",
        ToolArgumentType::Integer => "integer",
        ToolArgumentType::Boolean => "boolean",
        ToolArgumentType::Json => "json",
    };
    without_nulls(json!({
        "name": input.name,
        "type": kind,
        "required": input.required,
        "description": input.description,
        "default": input.default,
        "values": Some(&input.values).filter(|values| !values.is_empty()),
        "schema": input.schema,
    }))
}

fn describe_outputs(operation: &ToolDefinition) -> Vec<Value> {
    let describe = |output: &ToolResultFieldDefinition| json!({ "name": output.name, "type": output.kind, "description": output.description });
    operation.outputs.iter().map(describe).collect()
}
