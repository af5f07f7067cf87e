//! Renders the outcomes of `approvals`, `approve` and `deny` as text.
use stead_engine::ops::{AnswerApprovalOutcome, ApprovalFields, ListApprovalsOutcome};

use super::{RenderableOutcome, escape_lines, escape_one_line};
use crate::native::CallStyle;

impl RenderableOutcome for ListApprovalsOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let lines: Vec<String> = match self {
            ListApprovalsOutcome::One(approval) => vec![render_approval(approval)],
            ListApprovalsOutcome::List(list) if list.approvals.is_empty() => {
                vec!["no pending approval requests".to_owned()]
            }
            ListApprovalsOutcome::List(list) => list.approvals.iter().map(render_approval).collect(),
        };
        escape_lines(lines.join("\n"))
    }
}

impl RenderableOutcome for AnswerApprovalOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        escape_one_line(render_approval(&self.approval))
    }
}

fn render_approval(approval: &ApprovalFields) -> String {
    let ApprovalFields { id, state, principal, operation, tool, expires, plan_summary, .. } = approval;
    let tool = tool.as_ref().unwrap_or(operation);
    format!("{id} {state}: {principal} wants {tool}, to {plan_summary}, until {expires}")
}
