//! Renders the outcomes of `review`, `keep`, `reject` and `turn` as text.

use stead_engine::ops::{
    BeginTurnOutcome, KeepChangesOutcome, RejectChangesOutcome, ReviewArgs, ReviewOutcome, ReviewedFileRow,
};
use stead_path::RelPath;

use super::{RenderableOutcome, escape_lines, escape_one_line};
use crate::native::CallStyle;

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
