//! What is not about files: the session, the agent itself, alerts, and how full it is.

use engine::{Answer, Terms, Tier};
use serde_json::{Map, Value, json};

use super::{
    super::{Dialect, Request},
    Scene, object,
    tool::Desk,
    watching::{self, FILE_CHANGED},
};
use crate::definition::{Input, Operation};

/// The version of a capability that declares none.
const UNVERSIONED: &str = "1.0";

/// The engine's call.
pub(super) fn request(scene: &Scene<'_>, desk: Desk, mut terms: Terms) -> Request {
    let asked = &scene.asked;
    let (operation, arguments) = match desk {
        Desk::Alert => {
            let severity = asked.maybe("severity").unwrap_or("info");
            ("alert", json!({ "message": asked.text("message"), "severity": severity }))
        }
        Desk::DiskUsage => ("usage", json!({})),
        Desk::Begin => ("session", json!({ "action": "begin" })),
        Desk::End => {
            let mut arguments = json!({ "action": "end" });
            if let Some(id) = asked.maybe("session_id") {
                arguments["id"] = id.into();
            }
            ("session", arguments)
        }
        Desk::Events => {
            let mut arguments = json!({ "wait_ms": asked.number("wait_ms").unwrap_or(0) });
            if let Some(cursor) = asked.maybe("cursor") {
                arguments["since"] = cursor.into();
            }
            ("events", arguments)
        }
        Desk::Policy | Desk::Capabilities => {
            terms.offers = scene.krux.offers();
            ("policy", json!({}))
        }
        Desk::Session | Desk::Whoami => ("session", json!({})),
    };
    Request { operation: operation.to_owned(), arguments: object(arguments), terms }
}

/// What it answers.
pub(super) fn told(scene: &Scene<'_>, desk: Desk, answer: &Answer) -> Value {
    let fact = |name: &str| answer.json.get(name).cloned().unwrap_or_default();
    match desk {
        Desk::Session => session(scene, answer),
        Desk::Whoami => whoami(answer),
        Desk::Capabilities => capabilities(scene, answer),
        Desk::Policy => policy(scene, answer),
        Desk::Alert => json!({ "alert_id": fact("alert"), "status": "sent", "sent_at": fact("time") }),
        Desk::DiskUsage => usage(scene, answer),
        Desk::Begin => json!({
            "session_id": fact("session"),
            "agent": agent(&fact("principal")),
            "created_at": fact("started"),
        }),
        Desk::Events => {
            let events = answer.json.get("events").and_then(Value::as_array).into_iter().flatten();
            let events: Vec<Value> =
                events.filter_map(Value::as_object).map(|one| event(scene, one)).collect();
            json!({ "events": events, "cursor": fact("cursor"), "truncated": fact("truncated") })
        }
        Desk::End => json!({
            "session_id": fact("session"),
            "ended_at": fact("ended"),
            "duration_seconds": fact("seconds"),
            "invocation_count": fact("calls"),
        }),
    }
}

fn session(scene: &Scene<'_>, answer: &Answer) -> Value {
    let fact = |name: &str| answer.json.get(name).cloned().unwrap_or_default();
    let places = |name: &str| -> Vec<String> {
        let places = answer.json.get(name).and_then(Value::as_array).into_iter().flatten();
        places.filter_map(Value::as_str).map(|place| scene.krux.spots.absolute(place)).collect()
    };
    let (used, limit) = (count(answer, "kept_bytes"), count(answer, "kept_bytes_max"));
    let mut told = json!({
        "session_id": fact("session"),
        "connected_at": fact("started"),
        "duration_seconds": fact("seconds"),
        "invocation_count": fact("calls"),
        "resource_usage": {
            "cpu_ms": null,
            "memory_bytes": null,
            "io_bytes_read": fact("bytes_read"),
            "io_bytes_written": fact("bytes_written"),
        },
        "workspace_path": scene.krux.spots.workspace,
        "state_quota": { "used_bytes": used, "limit_bytes": limit, "percent": percent(used, limit) },
        "readable": places("readable"),
        "writable": places("writable"),
    });
    tell_quota(&mut told, answer);
    told
}

/// The limits that hold for the agent, where there are any.
fn tell_quota(told: &mut Value, answer: &Answer) {
    if let Some(quota) = answer.json.get("quota") {
        told["quota"] = quota.clone();
    }
}

fn whoami(answer: &Answer) -> Value {
    let fact = |name: &str| answer.json.get(name).cloned().unwrap_or_default();
    let mut who = json!({
        "agent": agent(&fact("principal")),
        "principal": fact("principal"),
        "session_id": fact("session"),
    });
    if let Some(person) = answer.json.get("on_behalf_of") {
        who["on_behalf_of"] = person.clone();
    }
    who
}

fn agent(principal: &Value) -> &str {
    principal.as_str().and_then(|text| text.split_once(':')).map_or("", |(_, name)| name)
}

/// What can be called; what the policy blocks wherever it points is left out.
fn capabilities(scene: &Scene<'_>, answer: &Answer) -> Value {
    let category = scene.asked.maybe("category");
    let wanted = |one: &&Operation| {
        category.is_none_or(|category| one.name.split('.').next() == Some(category) || one.name == category)
    };
    let offered = |one: &&Operation| !is_blocked(scene, answer, one);
    let declared = scene.krux.definition.operations.iter();
    let listed: Vec<Value> = declared.filter(wanted).filter(offered).map(capability).collect();
    json!({ "total": listed.len(), "capabilities": listed })
}

/// Whether the policy blocks a capability wherever it points.
fn is_blocked(scene: &Scene<'_>, answer: &Answer, capability: &Operation) -> bool {
    let blocked = answer.json.get("blocked").and_then(Value::as_array).into_iter().flatten();
    let full = scene.krux.full_name(&capability.name);
    blocked.filter_map(Value::as_str).any(|name| Some(name) == full.as_deref())
}

fn capability(operation: &Operation) -> Value {
    let input = |input: &Input| json!({ "name": input.name, "required": input.required, "description": input.description });
    json!({
        "name": operation.name,
        "version": operation.version.as_deref().unwrap_or(UNVERSIONED),
        "purpose": operation.summary,
        "permission_tier": operation.tier.unwrap_or_default(),
        "inputs": operation.inputs.iter().map(input).collect::<Vec<_>>(),
        "tags": operation.tags,
    })
}

/// How far an agent may go alone: what the definitions say, then the rules of the policy, which may be stricter.
fn policy(scene: &Scene<'_>, answer: &Answer) -> Value {
    let declared = |one: &Operation| {
        let blocked = is_blocked(scene, answer, one);
        let tier = if blocked { Tier::Blocked } else { one.tier.unwrap_or_default() };
        json!({ "capability": one.name, "tier": tier })
    };
    let mut rules: Vec<Value> = scene.krux.definition.operations.iter().map(declared).collect();
    rules.extend(answer.json.get("rules").and_then(Value::as_array).into_iter().flatten().cloned());
    let mut told = json!({
        "policy_group": answer.json.get("principal"),
        "rules": rules,
        "default_tier": Tier::default(),
        "version": answer.json.get("version"),
    });
    tell_quota(&mut told, answer);
    told
}

fn usage(scene: &Scene<'_>, answer: &Answer) -> Value {
    let (total, free) = (count(answer, "total_bytes"), count(answer, "free_bytes"));
    let used = total.saturating_sub(free);
    let mut told = json!({
        "path": scene.krux.spots.workspace,
        "total_bytes": total,
        "free_bytes": free,
        "used_bytes": used,
        "percent_used": percent(used, total),
        "trash_bytes": count(answer, "trash_bytes"),
        "history_bytes": count(answer, "kept_bytes"),
        "history_limit_bytes": count(answer, "kept_bytes_max"),
    });
    tell_quota(&mut told, answer);
    told
}

/// One event: its type and time; then what a watch heard, as it is pushed, or what belongs to an answer.
fn event(scene: &Scene<'_>, native: &Map<String, Value>) -> Value {
    let (kind, time) = (native.get("type"), native.get("time"));
    if kind.and_then(Value::as_str) == Some(FILE_CHANGED) {
        return Value::Object(watching::event(&scene.krux.spots, native));
    }
    let mut fields = native.clone();
    fields.retain(|name, _| !["type", "time"].contains(&name.as_str()));
    json!({ "type": kind, "timestamp": time, "data": fields })
}

fn count(answer: &Answer, name: &str) -> u64 {
    answer.json.get(name).and_then(Value::as_u64).unwrap_or_default()
}

fn percent(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100).checked_div(whole).unwrap_or_default()
}
