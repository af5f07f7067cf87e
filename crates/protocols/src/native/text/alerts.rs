//! Renders the outcomes of `alert`, `alerts` and `respond` as text.

use stead_engine::ops::{AlertFields, AlertOutcome, ListAlertsOutcome, SentOrAnsweredAlert};
use stead_text::visible::escape_deceptive_line;

use super::{RenderableOutcome, escape_lines, escape_one_line};
use crate::native::CallStyle;

impl RenderableOutcome for ListAlertsOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        if self.alerts.is_empty() {
            return "no alerts".to_owned();
        }
        let lines: Vec<String> = self.alerts.iter().map(render_alert).collect();
        escape_lines(lines.join("\n"))
    }
}

fn render_alert(alert: &AlertFields) -> String {
    let AlertFields { alert: id, time, from, severity, message, .. } = alert;
    let mut text = format!("{id}  {time}  {from}  {severity}  {}", escape_deceptive_line(message));
    if let (Some(answer), Some(person)) = (&alert.answer, &alert.answered_by) {
        text.push_str(&format!("\n  answered by {person}: {}", escape_deceptive_line(answer)));
    }
    text
}

impl RenderableOutcome for AlertOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let verb = match self.change {
            SentOrAnsweredAlert::Sent => "sent",
            SentOrAnsweredAlert::Answered => "answered",
        };
        escape_one_line(match &self.alert {
            Some(alert) => format!("{verb} alert {}", alert.alert),
            None => "no alert".to_owned(),
        })
    }
}
