//! What `edit` answers: the new version, the size of the change, where it is, and, only if something was found in
//! another way than byte for byte, how, with the lines that now stand there.

use serde_json::{Value, json};
use text::{
    diff::{self, Hunk},
    edit::{Applied, How},
    locate::Finder,
    unified::{Labels, unified},
};

use super::{Current, Outcome, basis::Old};
use crate::{
    engine::{Answer, Held},
    limits,
    operation::Target,
    ops::{answer::Facts, encoded::Encoded, older, spots},
    plan::Expect,
    terms::Evidence,
    version::Version,
    view::View,
    workspace::Committed,
};

/// What the edits stood on.
pub(super) enum Standing {
    /// What is there now.
    Current,
    /// An older text; so many lines changed since.
    Rebased { from: String, changed: diff::Change },
    /// An older text, and what changed since was merged.
    Merged { from: String, changed: diff::Change },
    /// A text that is not kept; every quote stands as it was written.
    Unverified { from: String },
}

impl Standing {
    pub(super) fn rebased(old: &Old, current: &str) -> Self {
        Self::Rebased { from: old.rev.clone(), changed: diff::summary(&old.text, current) }
    }

    pub(super) fn merged(old: &Old, current: &str) -> Self {
        Self::Merged { from: old.rev.clone(), changed: diff::summary(&old.text, current) }
    }

    fn fact(&self, to: &str) -> Option<Value> {
        match self {
            Self::Current => None,
            Self::Rebased { from, changed } => {
                Some(json!({ "from": from, "to": to, "added": changed.added, "removed": changed.removed }))
            }
            Self::Merged { from, changed } => Some(json!({ "from": from, "to": to, "added": changed.added,
                "removed": changed.removed, "merged": true })),
            Self::Unverified { from } => Some(json!({ "from": from, "to": to, "unverified": true })),
        }
    }

    fn sentence(&self, to: &str) -> Option<String> {
        match self {
            Self::Current => None,
            Self::Rebased { from, changed } => Some(format!(
                "rebased over {from}→{to} (+{} -{} lines by others)",
                changed.added, changed.removed
            )),
            Self::Merged { from, changed } => Some(format!(
                "merged with {from}→{to} (+{} -{} lines by others)",
                changed.added, changed.removed
            )),
            Self::Unverified { from } => {
                Some(format!("{from} is not kept; every quote stands in {to} as you wrote it"))
            }
        }
    }
}

/// Everything an answer is made from, without a hold on the workspace.
pub(super) struct Report {
    path: String,
    version: Version,
    size: usize,
    created: bool,
    change: diff::Change,
    /// Lines of the result that are new, each as `from` and `to`.
    ranges: Vec<(usize, usize)>,
    edits: Vec<Value>,
    already: Vec<usize>,
    notes: Vec<String>,
    rebased: Option<Value>,
    window: Option<String>,
    unusual: Option<&'static str>,
    evidence: Option<Held>,
}

/// Lines shown above and below a place that was found in another way.
const WINDOW_LINES: usize = 3;

/// Ranges of changed lines that an answer lists; the last one covers the rest.
const RANGES_MAX: usize = 32;

impl Report {
    pub(super) fn new(
        view: &View<'_>,
        target: &Target,
        current: &Current,
        outcome: &Outcome,
        encoded: &Encoded,
        version: Version,
    ) -> Self {
        let hunks = diff::hunks(&current.text, &outcome.text);
        let applied = outcome.edited.as_ref().map_or(&[][..], |edited| &edited.applied);
        let told = |applied: &&(usize, &Applied)| {
            !applied.1.how.is_plain() || view.terms.evidence == Evidence::Bytes
        };
        let numbered: Vec<(usize, &Applied)> = applied.iter().enumerate().collect();
        let rev = view.rev(&target.path, &current.version);
        let mut notes: Vec<String> =
            numbered.iter().filter_map(|(index, applied)| note(*index, applied)).collect();
        notes.extend(outcome.standing.sentence(&rev));
        let already =
            |&(index, applied): &(usize, &Applied)| (applied.how == How::AlreadyApplied).then_some(index);
        Self {
            path: target.path.to_string(),
            version,
            size: encoded.bytes.len(),
            created: current.expect == Expect::Absent,
            change: diff::summarise(&hunks),
            ranges: ranges(&hunks),
            edits: numbered.iter().filter(told).map(|(index, applied)| fact(*index, applied)).collect(),
            already: numbered.iter().filter_map(already).collect(),
            notes,
            rebased: outcome.standing.fact(&rev),
            window: window(&outcome.text, applied),
            unusual: encoded.unusual,
            evidence: view.evidence(&target.path, Some(&current.bytes), Some(&encoded.bytes)),
        }
    }

    fn facts(&self, rev: String, changed: Changed) -> Facts {
        let ranges: Vec<Value> = self.ranges.iter().map(|(from, to)| json!(format!("{from}-{to}"))).collect();
        Facts::new()
            .with("path", self.path.clone())
            .file(&self.version, rev)
            .with("size", self.size)
            .maybe("created", self.created.then_some(true))
            .with("changed", changed == Changed::Yes)
            .with("diff", json!({ "added": self.change.added, "removed": self.change.removed }))
            .with("lines", ranges)
            .maybe("already_applied", (!self.already.is_empty()).then(|| self.already.clone()))
            .maybe("edits", (!self.edits.is_empty()).then(|| self.edits.clone()))
            .maybe("rebased", self.rebased.clone())
            .maybe("window", self.window.clone())
            .maybe("encoding", self.unusual)
    }

    fn text(&self, head: String) -> String {
        let mut text = head;
        for note in &self.notes {
            text.push('\n');
            text.push_str(note);
        }
        if let Some(window) = &self.window {
            text.push('\n');
            text.push_str(window.trim_end_matches('\n'));
        }
        text
    }

    fn sized(&self, rev: &str) -> String {
        let ranges: Vec<String> = self.ranges.iter().map(|(from, to)| span(*from, *to)).collect();
        let at = if ranges.is_empty() { String::new() } else { format!(", lines {}", ranges.join(", ")) };
        let (added, removed) = (self.change.added, self.change.removed);
        format!("{} ({rev}, {} bytes, +{added} -{removed}{at})", self.path, self.size)
    }

    /// The answer once the entry is known.
    pub(super) fn done(self, committed: &Committed) -> Answer {
        let rev = format!("r{}", committed.number);
        let verb = if self.created { "created" } else { "edited" };
        let text = self.text(format!("{verb} {}", self.sized(&rev)));
        self.facts(rev, Changed::Yes).committed(committed).answer(text).with_evidence(self.evidence)
    }

    /// The answer when the file already is as it should be.
    pub(super) fn unchanged(self, view: &View<'_>, target: &Target) -> Answer {
        let rev = view.rev(&target.path, &self.version);
        let why =
            if self.already.is_empty() { "already has this content" } else { "already has these edits" };
        let text = self.text(format!("{} {why} ({rev}); nothing was changed", self.path));
        self.facts(rev, Changed::No).answer(text).with_evidence(self.evidence)
    }

    /// The answer of a dry run: the same plan, and what it would change.
    pub(super) fn preview(self, before: &str, after: &str) -> Answer {
        let labels = Labels { old: &self.path, new: &self.path };
        let diff = unified(before, after, labels, limits::DIFF_CONTEXT_LINES, limits::DIFF_LINES_MAX);
        let shown = older::shown(&diff);
        let text = self.text(format!("would edit {}", self.sized("dry run")));
        let text = format!("{text}\n{shown}");
        self.facts("dry_run".to_owned(), Changed::No)
            .with("dry_run", true)
            .with("preview", shown)
            .answer(text)
            .with_evidence(self.evidence)
    }
}

/// Whether a call changed something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Changed {
    Yes,
    No,
}

fn ranges(hunks: &[Hunk]) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> =
        hunks.iter().map(|hunk| (hunk.new.start + 1, hunk.new.end.max(hunk.new.start + 1))).collect();
    if let Some(&(_, last)) = ranges.last()
        && ranges.len() > RANGES_MAX
    {
        ranges.truncate(RANGES_MAX);
        if let Some(kept) = ranges.last_mut() {
            kept.1 = last;
        }
    }
    ranges
}

fn span(from: usize, to: usize) -> String {
    if from == to { from.to_string() } else { format!("{from}-{to}") }
}

fn fact(index: usize, applied: &Applied) -> Value {
    let lines: Vec<String> =
        applied.places.iter().map(|place| span(*place.after.start(), *place.after.end())).collect();
    let mut fact = json!({ "edit": index, "how": applied.how.name(), "lines": lines });
    if !applied.look_alikes.is_empty() {
        let points: Vec<String> = applied.look_alikes.iter().map(|c| spots::code_point(*c)).collect();
        fact["look_alikes"] = json!(points);
    }
    if let Some(matched) = &applied.matched {
        fact["matched"] = json!(matched);
    }
    fact
}

/// How an edit was found, in words, unless there is nothing to say.
fn note(index: usize, applied: &Applied) -> Option<String> {
    let line = applied.places.first().map_or(0, |place| *place.before.start());
    let way = match &applied.how {
        How::Pass(pass) => match pass {
            text::locate::Pass::Exact => return None,
            text::locate::Pass::Endings => "matched with other line endings",
            text::locate::Pass::TrailingSpace => "matched without spaces at line ends",
            text::locate::Pass::LookAlike => "matched by look-alike characters",
            text::locate::Pass::Indentation => "matched at another indentation, new text moved along",
        },
        How::Unnumbered(_) => "matched without its line numbers",
        How::Unescaped(_) => "matched with its \\n and \\t read as what they stand for",
        How::Fallback(_) => "matched by resemblance",
        How::Unchanged => return Some(format!("edit {index} changes nothing: old and new are the same")),
        How::AlreadyApplied => {
            return Some(format!("edit {index} was already applied: new stands at line {line}"));
        }
    };
    let points: Vec<String> = applied.look_alikes.iter().map(|c| spots::code_point(*c)).collect();
    let points = if points.is_empty() { String::new() } else { format!(" ({})", points.join(", ")) };
    Some(format!("edit {index} {way}{points} at line {line}"))
}

/// The lines that now stand where something was found in another way.
fn window(text: &str, applied: &[Applied]) -> Option<String> {
    let finder = Finder::new(text);
    let mut shown = String::new();
    let mut left = limits::FAILURE_LINES_MAX;
    for place in
        applied.iter().filter(|applied| !applied.how.is_plain()).filter_map(|applied| applied.places.first())
    {
        let from = place.after.start().saturating_sub(WINDOW_LINES).max(1);
        let to = (place.after.end() + WINDOW_LINES).min(finder.line_count());
        if from > to || left == 0 {
            continue;
        }
        shown.push_str(&spots::numbered(&finder, &(from..=to), left));
        left = left.saturating_sub(to + 1 - from);
    }
    (!shown.is_empty()).then_some(shown)
}
