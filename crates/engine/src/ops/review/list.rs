//! `review`: the files that a session changed, with hunks and who made them.

use path::RelPath;
use serde::Deserialize;
use serde_json::{Value, json};
use text::{
    diff::summary,
    encoding::{Detected, Encoding, detect},
    lines,
    unified::{Labels, unified},
    visible::visible_line,
};

use super::{
    Since,
    tracks::{self, Tracked},
    whose,
};
use crate::{
    failure::Failure,
    limits,
    operation::{Ask, Operation, Planned, Target},
    ops::answer::Facts,
    view::View,
};

/// The arguments of `review`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Review {
    path: Option<String>,
    session: Option<String>,
    author: Option<String>,
    #[serde(default)]
    since: Since,
}

impl Operation for Review {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(self.path.iter().map(|path| Ask::read(path)).collect())
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let whose = whose(view, self.author.as_deref(), self.session.as_deref())?;
        let only: Option<&RelPath> = targets.first().map(|target| &target.path);
        let work = tracks::find(view, &whose, self.since, only)?;
        let total = work.files.len();
        let texts = if only.is_some() { Texts::Whole } else { Texts::LeftOut };
        let mut lines_left = limits::DIFF_LINES_MAX;
        let mut text = String::new();
        let shown: Vec<Value> = work
            .files
            .iter()
            .take(limits::REVIEW_FILES_MAX)
            .map(|file| one(file, texts, &mut lines_left, &mut text))
            .collect();
        let truncated = work.truncated || shown.len() < total;
        if total == 0 {
            text.push_str("nothing to review\n");
        } else if shown.len() < total {
            text.push_str(&format!("… and {} more files: name a path\n", total - shown.len()));
        }
        let answer = Facts::new()
            .with("author", whose.principal)
            .with("session", whose.session)
            .with("since", self.since.word())
            .with("files", shown)
            .with("total", total)
            .with("truncated", truncated)
            .answer(text);
        Ok(Planned::Read { answer, bytes: 0 })
    }
}

/// What happened to a file, in a word.
fn change(file: &Tracked) -> &'static str {
    match (&file.before, &file.now, &file.moved_from) {
        (_, _, Some(_)) => "move",
        (None, Some(_), None) => "create",
        (_, None, None) => "remove",
        (Some(_), Some(_), None) => "modify",
    }
}

/// What is out of the ordinary about the form of a file. An agent that writes plain text leaves it as it is.
struct Form {
    encoding: Option<&'static str>,
    endings: Option<&'static str>,
}

impl Form {
    fn of(file: &Tracked) -> Self {
        let bytes = file.now.as_ref().map(|now| now.bytes.as_slice()).unwrap_or_default();
        let encoding = match detect(bytes) {
            Detected::Text { encoding } if encoding != Encoding::Utf8 => Some(encoding.name()),
            Detected::Text { .. } | Detected::Binary => None,
        };
        let text = file.text.as_ref().map(|(blame, _)| blame.text()).unwrap_or_default();
        let counted = lines::endings(text.as_bytes());
        let endings = match (counted.crlf, counted.lf + counted.cr) {
            (0, _) => None,
            (_, 0) => Some("crlf"),
            (_, _) => Some("mixed"),
        };
        Self { encoding, endings }
    }

    /// For people.
    fn words(&self) -> String {
        self.endings.iter().chain(&self.encoding).map(|word| format!(", {word}")).collect()
    }
}

/// Whether both texts come along.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Texts {
    Whole,
    LeftOut,
}

fn one(file: &Tracked, texts: Texts, lines_left: &mut usize, text: &mut String) -> Value {
    let path = file.path.to_string();
    let mut facts = Facts::new()
        .with("path", path.clone())
        .maybe("moved_from", file.moved_from.as_ref().map(ToString::to_string))
        .with("change", change(file))
        .maybe("version", file.now.as_ref().map(|now| now.seen.version.to_string()))
        .with("actors", file.actors.clone());
    let form = Form::of(file);
    facts = facts.maybe("encoding", form.encoding).maybe("line_endings", form.endings);
    let actors = file.actors.join(", ");
    let Some((blame, hunks)) = &file.text else {
        text.push_str(&format!("{} {} ({actors}), not text\n", change(file), visible_line(&path)));
        return Value::Object(facts.with("hunks", Vec::<Value>::new()).object());
    };
    let before = file.before.as_deref().unwrap_or_default();
    let lines = summary(before, blame.text());
    text.push_str(&format!(
        "{} {} +{} -{} ({actors}){}\n",
        change(file),
        visible_line(&path),
        lines.added,
        lines.removed,
        form.words(),
    ));
    let labels = Labels { old: "before", new: "now" };
    let diff = unified(before, blame.text(), labels, limits::DIFF_CONTEXT_LINES, *lines_left);
    *lines_left = lines_left.saturating_sub(diff.text.lines().count());
    text.push_str(&diff.text);
    let left_out = hunks.len().saturating_sub(limits::REVIEW_HUNKS_MAX);
    let shown: Vec<Value> =
        hunks.iter().take(limits::REVIEW_HUNKS_MAX).map(super::hunk::Hunk::object).collect();
    facts = facts
        .with("added", lines.added)
        .with("removed", lines.removed)
        .with("hunks", shown)
        .maybe("hunks_left_out", (left_out > 0).then_some(left_out))
        .with("diff", diff.text)
        .maybe("diff_left_out_lines", (diff.omitted_lines > 0).then_some(diff.omitted_lines));
    if texts == Texts::Whole {
        facts = facts.with("old_text", file.before.clone().map_or(Value::Null, Value::String));
        facts = facts.with("new_text", file.now.as_ref().map_or(Value::Null, |_| json!(blame.text())));
    }
    Value::Object(facts.object())
}
