//! Renders the outcomes of the operations with which callers coordinate as text: sessions, leases, watches, events,
//! alerts, approvals, policy, reviews and buffers.

use stead_engine::{
    Completeness, NextStep, SuggestedCall,
    ops::{
        AcquiredOrReleasedLease, AlertFields, AlertOutcome, AnswerApprovalOutcome, ApprovalFields, BeginTurnOutcome,
        BegunOrEndedWatch, BufferChangeOutcome, BufferCloseOutcome, BufferFields, BufferListOutcome, BufferListRow,
        BufferOpenOutcome, BufferSaveOutcome, ChangeEventRow, ChangesArgs, ChangesOutcome, ClosedBufferOrDraftKind,
        EventRowJournalEntryFields, ExplainedCall, ExplainedVerdict, InspectPolicyOutcome, InspectedPolicyRuleList,
        InspectedPolicyRuleRow, JournalCursor, KeepChangesOutcome, LeaseOutcome, ListAlertsOutcome,
        ListApprovalsOutcome, PollSessionEventsArgs, PollWatchEventsArgs, RejectChangesOutcome, ReviewArgs,
        ReviewOutcome, ReviewedFileRow, SentOrAnsweredAlert, SessionEventRow, SessionEventsOutcome, SessionFields,
        SessionOutcome, WatchArgs, WatchEventRow, WatchEventsOutcome, WatchOutcome, render_line_ranges,
    },
};
use stead_path::RelPath;
use stead_text::visible::escape_deceptive_line;

use super::{RenderableOutcome, escape_lines, escape_one_line, usage::render_quota_lines};
use crate::native::CallStyle;

impl RenderableOutcome for SessionOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        escape_one_line(match self {
            SessionOutcome::Shown(shown) => {
                let SessionFields { session, principal, calls, readable, writable, .. } = &**shown;
                let (readable, writable) = (render_paths(readable), render_paths(writable));
                format!(
                    "session {session} of {principal}, {calls} calls so far; may read {readable} and change {writable}"
                )
            }
            SessionOutcome::Begun(begun) => match &begun.session {
                Some(new) => format!("began session {}", new.session),
                None => "no session".to_owned(),
            },
            SessionOutcome::Ended(ended) => format!("ended session {}", ended.session.session),
        })
    }
}

fn render_paths(paths: &[RelPath]) -> String {
    if paths.is_empty() {
        return "nothing".to_owned();
    }
    paths.iter().map(RelPath::to_string).collect::<Vec<_>>().join(", ")
}

impl RenderableOutcome for LeaseOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        escape_one_line(match self.change {
            AcquiredOrReleasedLease::Acquired => {
                format!("locked {} until {}, fence {}", self.path, self.ends, self.fence)
            }
            AcquiredOrReleasedLease::Released => format!("unlocked {}", self.path),
        })
    }
}

impl RenderableOutcome for WatchOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let Self { watch, path, .. } = self;
        escape_one_line(match self.change {
            BegunOrEndedWatch::Started => format!("watching {path} as {watch}; call watched for events"),
            BegunOrEndedWatch::Ended => format!("stopped watching {path} as {watch}"),
        })
    }

    fn watch(&self) -> Option<(BegunOrEndedWatch, String)> {
        Some((self.change, self.watch.clone()))
    }
}

impl RenderableOutcome for ChangesOutcome {
    fn native_text(&self, style: CallStyle) -> String {
        let lines: String = self.events.iter().map(ChangeEventRow::render_line).collect();
        let lines = if lines.is_empty() { "no changes\n" } else { &lines };
        let end = render_page_end(&self.completeness, self.cursor, style, |cursor| {
            ChangesArgs { since: cursor.into(), wait_ms: None }.into()
        });
        escape_lines(format!("{lines}{end}"))
    }
}

impl RenderableOutcome for SessionEventsOutcome {
    fn native_text(&self, style: CallStyle) -> String {
        let lines: String = self.events.iter().map(render_session_event).collect();
        let lines = if lines.is_empty() { "no events\n" } else { &lines };
        let end = render_page_end(&self.completeness, self.cursor, style, |cursor| {
            PollSessionEventsArgs { since: Some(cursor.into()), wait_ms: None }.into()
        });
        escape_lines(format!("{lines}{end}"))
    }
}

impl RenderableOutcome for WatchEventsOutcome {
    fn native_text(&self, style: CallStyle) -> String {
        let lines: String = self.events.iter().map(render_watch_event).collect();
        let lines = match (self.events.is_empty(), self.watches) {
            (false, _) => lines,
            (true, 0) => {
                let step = NextStep::call(WatchArgs::default(), "start one");
                format!("you have no watches; {}\n", style.render_step(&step).unwrap_or_default())
            }
            (true, _) => "no events\n".to_owned(),
        };
        let end = render_page_end(&self.completeness, self.cursor, style, |cursor| {
            PollWatchEventsArgs { cursor: Some(cursor.into()), ..PollWatchEventsArgs::default() }.into()
        });
        escape_lines(format!("{lines}{end}"))
    }
}

fn render_page_end<A>(
    completeness: &Completeness<A>,
    cursor: JournalCursor,
    style: CallStyle,
    call_since: impl FnOnce(JournalCursor) -> SuggestedCall,
) -> String {
    match completeness {
        Completeness::Truncated { .. } => format!("… more: {}", style.render_call(call_since(cursor))),
        Completeness::Complete => match style.render_command(call_since(cursor)) {
            Some(command) => format!("[later events: {command}]"),
            None => format!("[cursor {cursor}]"),
        },
    }
}

fn render_session_event(event: &SessionEventRow) -> String {
    let (what, EventRowJournalEntryFields { entry, principal, .. }) = match event {
        SessionEventRow::FileChanged(event) => return render_watch_event(event),
        SessionEventRow::AlertAnswered(event) => ("alert answered", &event.entry),
        SessionEventRow::ApprovalResolved(event) => ("approval resolved", &event.entry),
    };
    format!("r{entry} {what} by {principal}\n")
}

fn render_watch_event(event: &WatchEventRow) -> String {
    let WatchEventRow { entry, actor, event: kind, path, .. } = event;
    let mut line = format!("r{entry} {actor} {} {}", kind.as_str(), escape_deceptive_line(&path.to_wire()));
    if let Some(new_path) = &event.new_path {
        line.push_str(&format!(" -> {}", escape_deceptive_line(&new_path.to_wire())));
    }
    if let Some(lines) = event.lines.as_deref().filter(|lines| !lines.is_empty()) {
        line.push_str(&render_line_ranges(lines));
    }
    line + "\n"
}

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

impl RenderableOutcome for ReviewOutcome {
    fn native_text(&self, style: CallStyle) -> String {
        let heading = self.other_sessions.as_deref().map(|others| render_heading(self, others, style));
        let mut text = heading.unwrap_or_default();
        text.extend(self.files.iter().map(render_reviewed_file));
        let omitted = self.total - self.files.len();
        if self.total == 0 {
            text.push_str("no changes to review\n");
        } else if omitted > 0 {
            text.push_str(&format!("… and {omitted} more files: pass a path\n"));
        }
        escape_lines(text)
    }
}

fn render_heading(review: &ReviewOutcome, others: &[String], style: CallStyle) -> String {
    let ReviewOutcome { author, session, .. } = review;
    let others = others.first().map_or_else(String::new, |next| {
        let arguments = ReviewArgs { session: Some(next.clone()), ..ReviewArgs::default() };
        let call = style.render_call(arguments);
        let plural = if others.len() == 1 { "" } else { "s" };
        format!("; {} earlier session{plural} also changed files, to see the latest of them {call}", others.len())
    });
    format!("session {session} of {author}{others}\n")
}

fn render_reviewed_file(file: &ReviewedFileRow) -> String {
    let ReviewedFileRow { change, format, lines, diff, .. } = file;
    let (path, actors) = (escape_one_line(file.path.to_wire()), file.actors.join(", "));
    let Some(lines) = lines else { return format!("{change} {path} ({actors}), not text\n") };
    let format: String = format.line_endings.iter().chain(&format.encoding).map(|word| format!(", {word}")).collect();
    let diff = diff.as_deref().unwrap_or_default();
    format!("{change} {path} +{} -{} ({actors}){format}\n{diff}", lines.added, lines.removed)
}

impl RenderableOutcome for KeepChangesOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        escape_lines(format!("kept {}", join_paths(&self.kept)))
    }
}

impl RenderableOutcome for RejectChangesOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let rejected = join_paths(&self.rejected);
        let Some(recorded) = &self.recorded else { return escape_lines(format!("would reject {rejected}")) };
        let left: String = self.left.iter().map(|file| format!("\nleft {}: {}", file.path, file.reason)).collect();
        escape_lines(format!("rejected {rejected} (r{}){left}", recorded.entry))
    }
}

fn join_paths(paths: &[RelPath]) -> String {
    paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl RenderableOutcome for BeginTurnOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        escape_one_line(format!("started a turn of session {} at r{}", self.session, self.recorded.entry))
    }
}

impl RenderableOutcome for BufferOpenOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let BufferFields { buffer: id, path, revision, .. } = &self.buffer;
        escape_one_line(match self.text {
            Some(_) => format!("resumed draft {id} of {path}"),
            None => format!("opened {path} at revision {revision}"),
        })
    }
}

impl RenderableOutcome for BufferChangeOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let verb = if self.merged { "merged into" } else { "changed" };
        escape_one_line(format!("{verb} {} at revision {}", self.buffer.path, self.buffer.revision))
    }
}

impl RenderableOutcome for BufferSaveOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let BufferFields { path, size, .. } = &self.buffer;
        escape_one_line(match &self.rev {
            Some(rev) => format!("saved {path} ({rev}, {size} bytes)"),
            None => format!("{path} is already saved"),
        })
    }
}

impl RenderableOutcome for BufferCloseOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let verb = match self.kind {
            ClosedBufferOrDraftKind::OpenBuffer => "closed",
            ClosedBufferOrDraftKind::Draft => "dropped",
        };
        let suffix = if self.discarded { " without saving" } else { "" };
        escape_one_line(format!("{verb} {}{suffix}", self.buffer.path))
    }
}

impl RenderableOutcome for BufferListOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let mut text: String = self.buffers.iter().map(render_buffer).collect();
        if self.buffers.is_empty() {
            text.push_str("no open buffers\n");
        } else if self.omitted > 0 {
            text.push_str(&format!("… and {} more: pass a path\n", self.omitted));
        }
        escape_lines(text)
    }
}

fn render_buffer(row: &BufferListRow) -> String {
    let BufferFields { buffer: id, state, path, revision, owner, .. } = &row.buffer;
    format!("{id} {} {path} r{revision} {owner}\n", state.as_str())
}
