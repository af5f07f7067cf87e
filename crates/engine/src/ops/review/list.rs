//! `review`: the files that a session changed, with hunks and authors.

use serde::Deserialize;
use serde_json::{Value, json};
use stead_path::RelPath;
use stead_text::{
    diff::diff_stat,
    encoding::{DetectedContent, Encoding, detect_content},
    lines,
    unified::{DiffLabels, unified_diff},
    visible::escape_deceptive_line,
};

use super::{
    ReviewStart, resolve_session,
    session_changes::{self, ReviewedFile},
};
use crate::{
    call_context::CallContext,
    errors::Error,
    limits,
    operation::{Operation, PlannedEffect, RequestedPath, ResolvedTarget},
    ops::outcome_builder::OutcomeBuilder,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReviewArgs {
    path: Option<String>,
    session: Option<String>,
    author: Option<String>,
    #[serde(default)]
    since: ReviewStart,
}

impl Operation for ReviewArgs {
    fn requested_paths(&self, _context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        Ok(self.path.iter().map(|path| RequestedPath::read(path)).collect())
    }

    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let session = resolve_session(context, self.author.as_deref(), self.session.as_deref())?;
        let only: Option<&RelPath> = targets.first().map(|target| &target.path);
        let work = session_changes::find_session_changes(context, &session, self.since, only)?;
        let total = work.files.len();
        let texts = if only.is_some() { FullTextInclusion::Include } else { FullTextInclusion::Omit };
        let mut lines_left = limits::DIFF_LINES_MAX;
        let mut text = String::new();
        let shown: Vec<Value> = work
            .files
            .iter()
            .take(limits::REVIEW_FILES_MAX)
            .map(|file| review_file_json(file, texts, &mut lines_left, &mut text))
            .collect();
        let truncated = work.truncated || shown.len() < total;
        if total == 0 {
            text.push_str("nothing to review\n");
        } else if shown.len() < total {
            text.push_str(&format!("… and {} more files: pass a path\n", total - shown.len()));
        }
        let answer = OutcomeBuilder::new()
            .with_field("author", session.principal)
            .with_field("session", session.session)
            .with_field("since", self.since.as_str())
            .with_field("files", shown)
            .with_field("total", total)
            .with_field("truncated", truncated)
            .build(text);
        Ok(PlannedEffect::Read { outcome: answer, bytes: 0 })
    }
}

fn change_kind_name(file: &ReviewedFile) -> &'static str {
    match (&file.before, &file.current, &file.moved_from) {
        (_, _, Some(_)) => "move",
        (None, Some(_), None) => "create",
        (_, None, None) => "remove",
        (Some(_), Some(_), None) => "modify",
    }
}

/// Encoding or line endings that differ from plain UTF-8 with LF.
struct UnusualFormat {
    encoding: Option<&'static str>,
    line_endings: Option<&'static str>,
}

impl UnusualFormat {
    fn for_file(file: &ReviewedFile) -> Self {
        let bytes = file.current.as_ref().map(|now| now.bytes.as_slice()).unwrap_or_default();
        let encoding = match detect_content(bytes) {
            DetectedContent::Text { encoding } if encoding != Encoding::Utf8 => Some(encoding.name()),
            DetectedContent::Text { .. } | DetectedContent::Binary => None,
        };
        let text = file.blame_and_hunks.as_ref().map(|(blame, _)| blame.text()).unwrap_or_default();
        let counted = lines::count_endings(text.as_bytes());
        let line_endings = match (counted.crlf, counted.lf + counted.cr) {
            (0, _) => None,
            (_, 0) => Some("crlf"),
            (_, _) => Some("mixed"),
        };
        Self { encoding, line_endings }
    }

    fn describe(&self) -> String {
        self.line_endings.iter().chain(&self.encoding).map(|word| format!(", {word}")).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FullTextInclusion {
    Include,
    Omit,
}

fn review_file_json(file: &ReviewedFile, texts: FullTextInclusion, lines_left: &mut usize, text: &mut String) -> Value {
    let path = file.path.to_string();
    let mut fields = OutcomeBuilder::new()
        .with_field("path", path.clone())
        .with_some("moved_from", file.moved_from.as_ref().map(ToString::to_string))
        .with_field("change", change_kind_name(file))
        .with_some("version", file.current.as_ref().map(|now| now.observed.version.to_string()))
        .with_field("actors", file.actors.clone());
    let form = UnusualFormat::for_file(file);
    fields = fields.with_some("encoding", form.encoding).with_some("line_endings", form.line_endings);
    let actors = file.actors.join(", ");
    let Some((blame, hunks)) = &file.blame_and_hunks else {
        text.push_str(&format!("{} {} ({actors}), not text\n", change_kind_name(file), escape_deceptive_line(&path)));
        return Value::Object(fields.with_field("hunks", Vec::<Value>::new()).into_json());
    };
    let before = file.before.as_deref().unwrap_or_default();
    let lines = diff_stat(before, blame.text());
    text.push_str(&format!(
        "{} {} +{} -{} ({actors}){}\n",
        change_kind_name(file),
        escape_deceptive_line(&path),
        lines.added,
        lines.removed,
        form.describe(),
    ));
    let labels = DiffLabels { old: "before", new: "now" };
    let diff = unified_diff(before, blame.text(), labels, limits::DIFF_CONTEXT_LINES, *lines_left);
    *lines_left = lines_left.saturating_sub(diff.text.lines().count());
    text.push_str(&diff.text);
    let left_out = hunks.len().saturating_sub(limits::REVIEW_HUNKS_MAX);
    let shown: Vec<Value> =
        hunks.iter().take(limits::REVIEW_HUNKS_MAX).map(super::hunks::ReviewHunk::to_json).collect();
    fields = fields
        .with_field("added", lines.added)
        .with_field("removed", lines.removed)
        .with_field("hunks", shown)
        .with_some("hunks_left_out", (left_out > 0).then_some(left_out))
        .with_field("diff", diff.text)
        .with_some("diff_left_out_lines", (diff.omitted_lines > 0).then_some(diff.omitted_lines));
    if texts == FullTextInclusion::Include {
        fields = fields.with_field("old_text", file.before.clone().map_or(Value::Null, Value::String));
        fields = fields.with_field("new_text", file.current.as_ref().map_or(Value::Null, |_| json!(blame.text())));
    }
    Value::Object(fields.into_json())
}
