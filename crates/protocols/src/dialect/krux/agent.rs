//! Capabilities that do not act on a file: session, agent, policy, alerts, disk usage, watches and events. The events
//! of a watch are pushed if the protocol supports notifications; `session.events` also returns them.

use crate::native::RenderedOutcome;
use serde_json::{Map, Value, json};
use stead_engine::{CallOptions, Error, SupervisionTier};

use super::{
    super::{Dialect, TranslatedCall, rendering::CallOutcomeFieldsExt},
    KruxCall,
    inputs::KruxAgentAndSessionInput,
    paths::{KruxPathMapper, require_absolute},
};
use crate::definition::{ToolArgumentDefinition, ToolDefinition};

const DEFAULT_CAPABILITY_VERSION: &str = "1.0";
const FILE_CHANGED_EVENT: &str = "file_changed";

pub(super) fn translate(
    call: &KruxCall<'_>,
    input: &KruxAgentAndSessionInput,
    mut options: CallOptions,
) -> Result<TranslatedCall, Error> {
    let (operation, arguments) = match input {
        KruxAgentAndSessionInput::Alert(input) => {
            ("alert", json!({ "message": input.message, "severity": input.severity }))
        }
        KruxAgentAndSessionInput::DiskUsage(_) => ("usage", json!({})),
        KruxAgentAndSessionInput::BeginSession(_) => ("session", json!({ "action": "begin" })),
        KruxAgentAndSessionInput::EndSession(input) => {
            let mut arguments = json!({ "action": "end" });
            if let Some(id) = &input.session_id {
                arguments["id"] = id.as_str().into();
            }
            ("session", arguments)
        }
        KruxAgentAndSessionInput::ListEvents(input) => {
            let mut arguments = json!({ "wait_ms": input.wait_ms.unwrap_or(0) });
            if let Some(cursor) = &input.cursor {
                arguments["since"] = cursor.as_str().into();
            }
            ("events", arguments)
        }
        KruxAgentAndSessionInput::Policy(_) | KruxAgentAndSessionInput::Capabilities(_) => {
            options.offered_tools = call.dialect.offered_tools();
            ("policy", json!({}))
        }
        KruxAgentAndSessionInput::Session(_) | KruxAgentAndSessionInput::Whoami(_) => ("session", json!({})),
        KruxAgentAndSessionInput::Watch(input) => {
            let path = require_absolute("path", &input.path)?;
            // An empty list of event types means all event types.
            let types = input.event_types.as_deref().unwrap_or_default();
            let mut arguments = json!({ "path": path, "recursive": input.recursive, "types": types });
            if let Some(pattern) = &input.pattern {
                arguments["glob"] = pattern.as_str().into();
            }
            ("watch", arguments)
        }
        KruxAgentAndSessionInput::Unwatch(input) => ("unwatch", json!({ "watch": input.watch_id })),
    };
    Ok(TranslatedCall::new(operation, arguments, options))
}

pub(super) fn render_outcome(
    call: &KruxCall<'_>,
    input: &KruxAgentAndSessionInput,
    outcome: &RenderedOutcome,
) -> Value {
    let field = |name: &str| outcome.json.get(name).cloned().unwrap_or_default();
    let path = || field("path").as_str().map(|path| call.dialect.paths.absolute_path(path));
    match input {
        KruxAgentAndSessionInput::Session(_) => render_session(call, outcome),
        KruxAgentAndSessionInput::Whoami(_) => render_whoami(outcome),
        KruxAgentAndSessionInput::Capabilities(input) => render_capabilities(call, input.category.as_deref(), outcome),
        KruxAgentAndSessionInput::Policy(_) => render_policy(call, outcome),
        KruxAgentAndSessionInput::Alert(_) => {
            json!({ "alert_id": field("alert"), "status": "sent", "sent_at": field("time") })
        }
        KruxAgentAndSessionInput::DiskUsage(_) => render_disk_usage(call, outcome),
        KruxAgentAndSessionInput::BeginSession(_) => json!({
            "session_id": field("session"),
            "agent": agent_name(&field("principal")),
            "created_at": field("started"),
        }),
        KruxAgentAndSessionInput::ListEvents(_) => {
            let events = outcome.list_field("events").iter().filter_map(Value::as_object);
            let events: Vec<Value> = events.map(|event| render_session_event(call, event)).collect();
            json!({ "events": events, "cursor": field("cursor"), "truncated": field("truncated") })
        }
        KruxAgentAndSessionInput::EndSession(_) => json!({
            "session_id": field("session"),
            "ended_at": field("ended"),
            "duration_seconds": field("seconds"),
            "invocation_count": field("calls"),
        }),
        KruxAgentAndSessionInput::Watch(_) => json!({
            "watch_id": field("watch"), "path": path(), "recursive": field("recursive"), "cursor": field("cursor"),
        }),
        KruxAgentAndSessionInput::Unwatch(_) => {
            json!({ "watch_id": field("watch"), "path": path(), "cancelled": true })
        }
    }
}

fn render_session(call: &KruxCall<'_>, outcome: &RenderedOutcome) -> Value {
    let field = |name: &str| outcome.json.get(name).cloned().unwrap_or_default();
    let paths = |name: &str| -> Vec<String> {
        let paths = outcome.list_field(name).iter().filter_map(Value::as_str);
        paths.map(|path| call.dialect.paths.absolute_path(path)).collect()
    };
    let (used, limit) = (outcome.number_field("kept_bytes"), outcome.number_field("kept_bytes_max"));
    let mut session = json!({
        "session_id": field("session"),
        "connected_at": field("started"),
        "duration_seconds": field("seconds"),
        "invocation_count": field("calls"),
        "resource_usage": {
            "cpu_ms": null,
            "memory_bytes": null,
            "io_bytes_read": field("bytes_read"),
            "io_bytes_written": field("bytes_written"),
        },
        "workspace_path": call.dialect.paths.workspace_root,
        "state_quota": { "used_bytes": used, "limit_bytes": limit, "percent": percent(used, limit) },
        "readable": paths("readable"),
        "writable": paths("writable"),
    });
    add_quota(&mut session, outcome);
    session
}

fn add_quota(object: &mut Value, outcome: &RenderedOutcome) {
    if let Some(quota) = outcome.json.get("quota") {
        object["quota"] = quota.clone();
    }
}

fn render_whoami(outcome: &RenderedOutcome) -> Value {
    let field = |name: &str| outcome.json.get(name).cloned().unwrap_or_default();
    let mut who = json!({
        "agent": agent_name(&field("principal")),
        "principal": field("principal"),
        "session_id": field("session"),
    });
    if let Some(person) = outcome.json.get("on_behalf_of") {
        who["on_behalf_of"] = person.clone();
    }
    who
}

fn agent_name(principal: &Value) -> &str {
    principal.as_str().and_then(|text| text.split_once(':')).map_or("", |(_, name)| name)
}

/// The list of capabilities omits capabilities that the policy blocks on every path.
fn render_capabilities(call: &KruxCall<'_>, category: Option<&str>, outcome: &RenderedOutcome) -> Value {
    let in_category = |tool: &&ToolDefinition| {
        category.is_none_or(|category| tool.name.split('.').next() == Some(category) || tool.name == category)
    };
    let allowed = |tool: &&ToolDefinition| !is_blocked(call, outcome, tool);
    let declared = call.dialect.definition.operations.iter();
    let listed: Vec<Value> = declared.filter(in_category).filter(allowed).map(render_capability).collect();
    json!({ "total": listed.len(), "capabilities": listed })
}

fn is_blocked(call: &KruxCall<'_>, outcome: &RenderedOutcome, capability: &ToolDefinition) -> bool {
    let full_name = call.dialect.full_name(&capability.name);
    outcome.list_field("blocked").iter().any(|blocked| blocked.as_str() == full_name.as_deref())
}

fn render_capability(operation: &ToolDefinition) -> Value {
    let input = |input: &ToolArgumentDefinition| json!({ "name": input.name, "required": input.required, "description": input.description });
    json!({
        "name": operation.name,
        "version": operation.version.as_deref().unwrap_or(DEFAULT_CAPABILITY_VERSION),
        "purpose": operation.summary,
        "permission_tier": operation.tier.unwrap_or_default(),
        "inputs": operation.inputs.iter().map(input).collect::<Vec<_>>(),
        "tags": operation.tags,
    })
}

/// The tier of a capability is `blocked` if the policy blocks the capability on every path. A policy rule may be
/// stricter than the tier that the definition of a capability declares.
fn render_policy(call: &KruxCall<'_>, outcome: &RenderedOutcome) -> Value {
    let tier_rule = |tool: &ToolDefinition| {
        let blocked = is_blocked(call, outcome, tool);
        let tier = if blocked { SupervisionTier::Blocked } else { tool.tier.unwrap_or_default() };
        json!({ "capability": tool.name, "tier": tier })
    };
    let mut rules: Vec<Value> = call.dialect.definition.operations.iter().map(tier_rule).collect();
    rules.extend_from_slice(outcome.list_field("rules"));
    let mut policy = json!({
        "policy_group": outcome.json.get("principal"),
        "rules": rules,
        "default_tier": SupervisionTier::default(),
        "version": outcome.json.get("version"),
    });
    add_quota(&mut policy, outcome);
    policy
}

fn render_disk_usage(call: &KruxCall<'_>, outcome: &RenderedOutcome) -> Value {
    let (total, free) = (outcome.number_field("total_bytes"), outcome.number_field("free_bytes"));
    let used = total.saturating_sub(free);
    let mut usage = json!({
        "path": call.dialect.paths.workspace_root,
        "total_bytes": total,
        "free_bytes": free,
        "used_bytes": used,
        "percent_used": percent(used, total),
        "trash_bytes": outcome.number_field("trash_bytes"),
        "history_bytes": outcome.number_field("kept_bytes"),
        "history_limit_bytes": outcome.number_field("kept_bytes_max"),
    });
    add_quota(&mut usage, outcome);
    usage
}

/// The reply of `session.events` shows a watch event in the same form as a pushed watch event. An event that is not a
/// watch event, such as an answered approval, has the members `type`, `timestamp` and `data`.
fn render_session_event(call: &KruxCall<'_>, native: &Map<String, Value>) -> Value {
    let (kind, time) = (native.get("type"), native.get("time"));
    if kind.and_then(Value::as_str) == Some(FILE_CHANGED_EVENT) {
        return Value::Object(render_watch_event(&call.dialect.paths, native));
    }
    let mut fields = native.clone();
    fields.retain(|name, _| !["type", "time"].contains(&name.as_str()));
    json!({ "type": kind, "timestamp": time, "data": fields })
}

fn percent(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100).checked_div(whole).unwrap_or_default()
}

pub(super) fn render_watch_event(paths: &KruxPathMapper, native: &Map<String, Value>) -> Map<String, Value> {
    let mut event = Map::new();
    let mut insert = |name: &str, value: Value| drop(event.insert(name.to_owned(), value));
    insert("type", FILE_CHANGED_EVENT.into());
    for (name, value) in native {
        match (name.as_str(), value) {
            ("type", _) => {}
            ("watch", id) => insert("watch_id", id.clone()),
            ("time", time) => insert("timestamp", time.clone()),
            ("path" | "new_path", Value::String(path)) => insert(name, paths.absolute_path(path).into()),
            (_, value) => insert(name, value.clone()),
        }
    }
    event
}
