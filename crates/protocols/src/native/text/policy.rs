//! Renders the outcome of `policy` as text.
use stead_engine::ops::{
    ExplainedCall, ExplainedVerdict, InspectPolicyOutcome, InspectedPolicyRuleList, InspectedPolicyRuleRow,
};

use super::{RenderableOutcome, escape_lines, usage::render_quota_lines};
use crate::native::CallNotation;

impl RenderableOutcome for InspectPolicyOutcome {
    fn native_text(&self, _notation: CallNotation) -> String {
        let (text, quota) = match self {
            InspectPolicyOutcome::Rules(list) => (render_rules(list), &list.quota),
            InspectPolicyOutcome::Call(call) => (render_verdict(call), &call.quota),
        };
        escape_lines(text) + &quota.as_ref().map_or_else(String::new, render_quota_lines)
    }
}

fn render_rules(list: &InspectedPolicyRuleList) -> String {
    let render_rule = |rule: &InspectedPolicyRuleRow| format!("{}: {} -> {}", rule.layer, rule.name, rule.tier);
    let lines: Vec<String> = list.rules.iter().map(render_rule).collect();
    format!("policy {} for {}\n{}", list.version, list.principal, lines.join("\n"))
}

fn render_verdict(call: &ExplainedCall) -> String {
    let ExplainedCall { principal, operation, verdict, .. } = call;
    match verdict {
        ExplainedVerdict::Tier { tier, why, .. } => format!("{principal} {operation}: {tier} ({why})"),
        ExplainedVerdict::Error { kind, why, next_step, .. } => {
            let next_step = next_step.as_ref().map_or_else(String::new, |next_step| format!(" ({next_step})"));
            format!("{principal} {operation}: {kind}: {why}{next_step}")
        }
    }
}
