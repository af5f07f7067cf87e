//! Renders the outcome of `policy` as text.
use stead_engine::ops::{
    ExplainedCall, ExplainedVerdict, InspectPolicyOutcome, InspectedPolicyRuleList, InspectedPolicyRuleRow,
};

use super::{RenderableOutcome, escape_lines, usage::render_quota_lines};
use crate::native::CallStyle;

impl RenderableOutcome for InspectPolicyOutcome {
    fn native_text(&self, style: CallStyle) -> String {
        let (text, quota) = match self {
            InspectPolicyOutcome::Rules(list) => (render_rules(list), &list.quota),
            InspectPolicyOutcome::Call(call) => (render_verdict(call, style), &call.quota),
        };
        escape_lines(text) + &quota.as_ref().map_or_else(String::new, render_quota_lines)
    }
}

fn render_rules(list: &InspectedPolicyRuleList) -> String {
    let render_rule = |rule: &InspectedPolicyRuleRow| format!("{}: {} -> {}", rule.layer, rule.name, rule.tier);
    let lines: Vec<String> = list.rules.iter().map(render_rule).collect();
    format!("policy {} for {}\n{}", list.version, list.principal, lines.join("\n"))
}

fn render_verdict(call: &ExplainedCall, style: CallStyle) -> String {
    let ExplainedCall { principal, operation, verdict, .. } = call;
    match verdict {
        ExplainedVerdict::Tier { tier, why, .. } => format!("{principal} {operation}: {tier} ({why})"),
        ExplainedVerdict::Error { kind, why, next_step, .. } => {
            let hint = next_step.as_ref().and_then(|step| style.render_step(step));
            let hint = hint.map_or_else(String::new, |hint| format!(" ({hint})"));
            format!("{principal} {operation}: {kind}: {why}{hint}")
        }
    }
}
