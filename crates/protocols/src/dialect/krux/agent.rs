//! Capabilities that do not act on a file: session, agent, policy, alerts, disk usage, watches and events. The events
//! of a watch are pushed if the protocol supports notifications; `session.events` also returns them.

use std::sync::Arc;

use serde_json::{Value, json};
use stead_engine::{
    CallOptions, Error, ErrorKind, SupervisionTier,
    ops::{
        AlertOutcome, InspectPolicyArgs, InspectPolicyOutcome, InspectedPolicyRuleList, JournalCursorArgument,
        PollSessionEventsArgs, RequestedSessionAction, SendAlertArgs, SessionEventRow, SessionEventsOutcome,
        SessionFields, SessionOperationArgs, SessionOutcome, UnwatchArgs, UsageArgs, UsageOutcome, WatchArgs,
        WatchEventRow,
    },
};

use super::{
    super::{Dialect, DialectReply, DialectToolCall},
    KruxCall, KruxPreparedCall,
    inputs::KruxAgentAndSessionInput,
    paths::{KruxPathMapper, require_absolute},
};
use crate::{
    definition::{ToolArgumentDefinition, ToolDefinition},
    native::{to_json_object, without_nulls},
    prepared_call::PreparedCall,
};

const DEFAULT_CAPABILITY_VERSION: &str = "1.0";

pub(super) fn translate(
    call: &Arc<KruxCall>,
    input: &KruxAgentAndSessionInput,
    options: CallOptions,
) -> KruxPreparedCall {
    let session = |action, id| SessionOperationArgs { action, id };
    Ok(match input {
        KruxAgentAndSessionInput::Alert(input) => {
            let (message, severity) = (input.message.clone(), Some(input.severity.clone()));
            call.prepare(SendAlertArgs { message, severity }, options, |_, alert| Ok(render_alert(&alert.outcome)))
        }
        KruxAgentAndSessionInput::DiskUsage(_) => {
            call.prepare(UsageArgs {}, options, |call, usage| Ok(render_disk_usage(call, &usage.outcome)))
        }
        KruxAgentAndSessionInput::BeginSession(_) => {
            let arguments = session(Some(RequestedSessionAction::Begin), None);
            call.prepare(arguments, options, |call, session| render_session_outcome(call, &session.outcome))
        }
        KruxAgentAndSessionInput::EndSession(input) => {
            let arguments = session(Some(RequestedSessionAction::End), input.session_id.clone());
            call.prepare(arguments, options, |call, session| render_session_outcome(call, &session.outcome))
        }
        KruxAgentAndSessionInput::Session(_) => {
            call.prepare(session(None, None), options, |call, session| render_session_outcome(call, &session.outcome))
        }
        KruxAgentAndSessionInput::Whoami(_) => {
            call.prepare(session(None, None), options, |_, session| match session.outcome {
                SessionOutcome::Shown(session) => Ok(render_whoami(&session)),
                SessionOutcome::Begun(_) | SessionOutcome::Ended(_) => Err(other_outcome_error()),
            })
        }
        KruxAgentAndSessionInput::ListEvents(input) => {
            let since = input.cursor.clone().map(JournalCursorArgument::Text);
            let arguments = PollSessionEventsArgs { since, wait_ms: Some(input.wait_ms.unwrap_or(0)) };
            call.prepare(arguments, options, |call, events| Ok(render_session_events(call, &events.outcome)))
        }
        KruxAgentAndSessionInput::Policy(_) => prepare_policy(call, options, render_policy),
        KruxAgentAndSessionInput::Capabilities(input) => {
            let input = input.clone();
            prepare_policy(call, options, move |call, rules| {
                render_capabilities(call, input.category.as_deref(), rules)
            })
        }
        KruxAgentAndSessionInput::Watch(input) => {
            let arguments = WatchArgs {
                path: Some(require_absolute("path", &input.path)?.to_owned()),
                recursive: input.recursive,
                // An empty list of event types means all event types.
                types: input.event_types.clone().unwrap_or_default(),
                glob: input.pattern.clone(),
                ..WatchArgs::default()
            };
            call.prepare(arguments, options, |call, watch| {
                let (watch, path) = (&watch.outcome, call.dialect.paths.absolute_path(&watch.outcome.path));
                Ok(json!({
                    "watch_id": watch.watch, "path": path, "recursive": watch.recursive, "cursor": watch.cursor,
                }))
            })
        }
        KruxAgentAndSessionInput::Unwatch(input) => {
            call.prepare(UnwatchArgs { watch: input.watch_id.clone() }, options, |call, watch| {
                let path = call.dialect.paths.absolute_path(&watch.outcome.path);
                Ok(json!({ "watch_id": watch.outcome.watch, "path": path, "cancelled": true }))
            })
        }
    })
}

fn prepare_policy(
    call: &Arc<KruxCall>,
    options: CallOptions,
    render: impl FnOnce(&KruxCall, &InspectedPolicyRuleList) -> Value + Send + 'static,
) -> PreparedCall<DialectReply> {
    let arguments = InspectPolicyArgs { offered_tools: call.dialect.offered_tools(), ..InspectPolicyArgs::default() };
    call.prepare(arguments, options, |call, policy| match &policy.outcome {
        InspectPolicyOutcome::Rules(rules) => Ok(render(call, rules)),
        InspectPolicyOutcome::Call(_) => Err(other_outcome_error()),
    })
}

fn other_outcome_error() -> Error {
    Error::new(ErrorKind::Io, "internal error: the operation returned the outcome of another request")
}

fn render_alert(outcome: &AlertOutcome) -> Value {
    let (id, time) = outcome.alert.as_ref().map(|alert| (&alert.alert, alert.time)).unzip();
    json!({ "alert_id": id, "status": "sent", "sent_at": time })
}

fn render_session_outcome(call: &KruxCall, outcome: &SessionOutcome) -> Result<Value, Error> {
    match outcome {
        SessionOutcome::Shown(session) => Ok(render_session(call, session)),
        SessionOutcome::Begun(begun) => {
            let session = begun.session.as_ref().ok_or_else(other_outcome_error)?;
            Ok(json!({
                "session_id": session.session,
                "agent": agent_name(&session.principal),
                "created_at": session.started,
            }))
        }
        SessionOutcome::Ended(ended) => Ok(json!({
            "session_id": ended.session.session,
            "ended_at": ended.ended,
            "duration_seconds": ended.session.seconds,
            "invocation_count": ended.session.calls,
        })),
    }
}

fn render_session(call: &KruxCall, shown: &SessionFields) -> Value {
    let paths = &call.dialect.paths;
    let (used, limit) = (shown.history_bytes, shown.history_bytes_max);
    without_nulls(json!({
        "session_id": shown.session,
        "connected_at": shown.started,
        "duration_seconds": shown.seconds,
        "invocation_count": shown.calls,
        "resource_usage": {
            "cpu_ms": null,
            "memory_bytes": null,
            "io_bytes_read": shown.bytes_read,
            "io_bytes_written": shown.bytes_written,
        },
        "workspace_path": paths.workspace_root,
        "state_quota": { "used_bytes": used, "limit_bytes": limit, "percent": percent(used, limit) },
        "readable": shown.readable.iter().map(|path| paths.absolute_path(path)).collect::<Vec<_>>(),
        "writable": shown.writable.iter().map(|path| paths.absolute_path(path)).collect::<Vec<_>>(),
        "quota": shown.quota,
    }))
}

fn render_whoami(session: &SessionFields) -> Value {
    without_nulls(json!({
        "agent": agent_name(&session.principal),
        "principal": session.principal,
        "session_id": session.session,
        "on_behalf_of": session.on_behalf_of,
    }))
}

fn agent_name(principal: &str) -> &str {
    principal.split_once(':').map_or("", |(_, name)| name)
}

/// The list of capabilities omits capabilities that the policy blocks on every path.
fn render_capabilities(call: &KruxCall, category: Option<&str>, rules: &InspectedPolicyRuleList) -> Value {
    let in_category = |tool: &&ToolDefinition| {
        category.is_none_or(|category| tool.name.split('.').next() == Some(category) || tool.name == category)
    };
    let allowed = |tool: &&ToolDefinition| !is_blocked(call, rules, tool);
    let declared = call.dialect.definition.operations.iter();
    let listed: Vec<Value> = declared.filter(in_category).filter(allowed).map(render_capability).collect();
    json!({ "total": listed.len(), "capabilities": listed })
}

fn is_blocked(call: &KruxCall, rules: &InspectedPolicyRuleList, capability: &ToolDefinition) -> bool {
    let full_name = call.dialect.full_name(&capability.name);
    rules.blocked.iter().flatten().any(|blocked| Some(blocked) == full_name.as_ref())
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
fn render_policy(call: &KruxCall, policy: &InspectedPolicyRuleList) -> Value {
    let tier_rule = |tool: &ToolDefinition| {
        let blocked = is_blocked(call, policy, tool);
        let tier = if blocked { SupervisionTier::Blocked } else { tool.tier.unwrap_or_default() };
        json!({ "capability": tool.name, "tier": tier })
    };
    let mut rules: Vec<Value> = call.dialect.definition.operations.iter().map(tier_rule).collect();
    rules.extend(policy.rules.iter().map(|rule| json!(rule)));
    without_nulls(json!({
        "policy_group": policy.principal,
        "rules": rules,
        "default_tier": SupervisionTier::default(),
        "version": policy.version,
        "quota": policy.quota,
    }))
}

fn render_disk_usage(call: &KruxCall, usage: &UsageOutcome) -> Value {
    let used = usage.total_bytes.saturating_sub(usage.free_bytes);
    without_nulls(json!({
        "path": call.dialect.paths.workspace_root,
        "total_bytes": usage.total_bytes,
        "free_bytes": usage.free_bytes,
        "used_bytes": used,
        "percent_used": percent(used, usage.total_bytes),
        "trash_bytes": usage.trash_bytes,
        "history_bytes": usage.kept_bytes,
        "history_limit_bytes": usage.kept_bytes_max,
        "quota": usage.quota,
    }))
}

fn percent(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100).checked_div(whole).unwrap_or_default()
}

fn render_session_events(call: &KruxCall, page: &SessionEventsOutcome) -> Value {
    let events: Vec<Value> = page.events.iter().map(|event| render_session_event(call, event)).collect();
    json!({ "events": events, "cursor": page.cursor, "truncated": page.completeness.is_truncated() })
}

/// The reply of `session.events` shows a watch event in the same form as a pushed watch event. An event that is not a
/// watch event, such as an answered approval, has the members `type`, `timestamp` and `data`.
fn render_session_event(call: &KruxCall, event: &SessionEventRow) -> Value {
    let (kind, mut data) = match event {
        SessionEventRow::FileChanged(event) => return render_watch_event(&call.dialect.paths, event),
        SessionEventRow::AlertAnswered(event) => ("alert_answered", to_json_object(event)),
        SessionEventRow::ApprovalResolved(event) => ("approval_resolved", to_json_object(event)),
    };
    let time = data.shift_remove("time");
    json!({ "type": kind, "timestamp": time, "data": data })
}

pub(super) fn render_watch_event(paths: &KruxPathMapper, event: &WatchEventRow) -> Value {
    let version = event.version.as_ref();
    without_nulls(json!({
        "type": "file_changed",
        "watch_id": event.watch,
        "event": event.event,
        "path": paths.absolute_path(&event.path),
        "new_path": event.new_path.as_ref().map(|path| paths.absolute_path(path)),
        "before": event.before,
        "version": version.map(|fields| fields.version),
        "rev": version.map(|fields| &fields.rev),
        "unsaved": version.and_then(|fields| fields.unsaved),
        "lines": event.lines,
        "actor": event.actor,
        "session": event.session,
        "operation": event.operation,
        "timestamp": event.time,
        "entry": event.entry,
    }))
}
