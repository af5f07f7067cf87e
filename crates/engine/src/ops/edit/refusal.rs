//! How `edit` fails. Owns the words and facts of each refusal: which edit, what is there instead, what would make the
//! next call right, and that nothing was written.

use std::ops::RangeInclusive;

use path::RelPath;
use serde_json::{Map, Value, json};
use text::{
    edit::{Edit as Quoted, Missing, Reason, Refusal, Spot, Touched},
    lines,
    locate::{Borders, Finder, Limit},
    merge::ConflictRange,
    unified::{Labels, unified},
};

use super::{Current, bad, basis::Old};
use crate::{
    failure::{Failure, Kind},
    limits,
    operation::Target,
    ops::{
        older::{self, Now, Older},
        spots::{self, cut, difference, numbered},
    },
    resolve,
    terms::Evidence,
    view::View,
};

/// The file is no text.
pub(super) fn not_text(path: &RelPath) -> Failure {
    Failure::new(Kind::NotText, format!("{path} is not text; nothing was written"))
        .hint("write the whole file with encoding base64")
        .fact("path", path.to_string())
}

/// The base is not what is there, and must be.
pub(super) fn stale(view: &View<'_>, target: &Target, current: &Current, old: Option<&Old>) -> Failure {
    let path = &target.path;
    let failure =
        Failure::new(Kind::Stale, format!("{path} is no longer the version you saw; nothing was written"));
    let failure = resolve::with_current(view, failure, path, current.version);
    match old {
        Some(old) => with_diff(failure, old, current)
            .hint("look at the diff since your base, then repeat with the current version as base"),
        None => failure.hint(format!(
            "the version you saw is not kept, so what changed cannot be told: read {path} again"
        )),
    }
}

/// Both sides changed the same lines.
pub(super) fn conflict(
    view: &View<'_>,
    target: &Target,
    current: &Current,
    old: &Old,
    ours: &str,
    ranges: &[ConflictRange],
) -> Failure {
    let path = &target.path;
    let part = |text: &str, range: &std::ops::Range<usize>| {
        lines::slice(text, range.start + 1..=range.end).unwrap_or_default().to_owned()
    };
    let shown: Vec<Value> = ranges
        .iter()
        .take(limits::FAILURE_PLACES_MAX)
        .map(|range| {
            json!({ "line": range.theirs.start + 1, "base": part(&old.text, &range.base),
                "yours": part(ours, &range.ours), "theirs": part(&current.text, &range.theirs) })
        })
        .collect();
    let detail = format!(
        "your change and one made to {path} since {} touch the same lines; nothing was written",
        old.rev
    );
    let failure = resolve::with_current(view, Failure::new(Kind::Conflict, detail), path, current.version)
        .fact("conflicts", shown)
        .fact("conflicts_total", ranges.len());
    with_diff(failure, old, current)
        .hint("look at theirs, then edit the current text with the current version as base")
}

/// The failure for refused edits: the first in words, all in facts.
pub(super) fn refused(
    view: &View<'_>,
    target: &Target,
    current: &Current,
    edits: &[Quoted<'_>],
    refusals: &[Refusal],
    old: Option<&Old>,
) -> Failure {
    let Some(first) = refusals.first() else { return bad("no edit can be applied") };
    let scene = Scene { view, target, current, edits, old, finder: Finder::new(&current.text) };
    let failure = scene.failure(first);
    let failure =
        resolve::with_current(view, failure, &target.path, current.version).fact("edit", first.edit);
    if refusals.len() == 1 {
        return failure;
    }
    let others: Vec<Value> = refusals
        .iter()
        .skip(1)
        .take(limits::FAILURE_PLACES_MAX)
        .map(|refusal| {
            let other = scene.failure(refusal);
            let mut fact = Map::from_iter([
                ("edit".to_owned(), json!(refusal.edit)),
                ("kind".to_owned(), json!(other.kind.code())),
                ("detail".to_owned(), json!(other.detail)),
            ]);
            fact.extend(other.facts);
            Value::Object(fact)
        })
        .collect();
    failure.fact("also_refused", others)
}

/// Everything a refusal is told from.
struct Scene<'a> {
    view: &'a View<'a>,
    target: &'a Target,
    current: &'a Current,
    edits: &'a [Quoted<'a>],
    old: Option<&'a Old>,
    finder: Finder<'a>,
}

impl Scene<'_> {
    fn failure(&self, refusal: &Refusal) -> Failure {
        let index = refusal.edit;
        let detail = |what: String| format!("edit {index}: {what}; nothing was written");
        match &refusal.reason {
            Reason::EmptyOld => bad(detail("old is empty".to_owned()))
                .hint("quote the lines beside the new text in old and repeat them in new, or use write for a whole file"),
            Reason::NotFound(missing) => self.not_found(index, missing),
            Reason::Ambiguous { total, spots, .. } => {
                let what = format!("old is in {total} places, {}", lines_of(spots));
                self.places(Failure::new(Kind::Ambiguous, detail(what)), *total, spots).hint(format!(
                    "{}; or say near_line, count: {total} or all: true",
                    distinction(spots)
                ))
            }
            Reason::WrongCount { expected, total, spots } => {
                let what = format!("old is in {total} places, not {expected}, {}", lines_of(spots));
                self.places(Failure::new(Kind::Ambiguous, detail(what)), *total, spots)
                    .fact("expected", *expected)
                    .hint(format!("say count: {total} if these are meant, or quote more"))
            }
            Reason::Overlap { other, lines } => {
                let what = format!("it shares text with edit {other} at line {}", lines.start());
                Failure::new(Kind::Overlap, detail(what))
                    .hint("make one edit of both")
                    .fact("edits", json!([other, index]))
                    .fact("line", *lines.start())
            }
            Reason::Elided { line, text } => {
                bad(detail(format!("line {line} of new leaves text out: {}", cut(text))))
                    .hint("write out everything that shall stand there; what is not quoted in old stays by itself")
                    .fact("line", *line)
                    .fact("reason", "elided")
            }
            Reason::Unindentable { line, .. } => {
                let what = format!(
                    "old is quoted deeper than it stands in the file, and line {line} of new cannot be moved left as far"
                );
                Failure::new(Kind::TextNotFound, detail(what))
                    .hint("quote old and write new with the file's own indentation")
                    .fact("reason", "indentation")
            }
            Reason::TooLong => {
                let most = text::edit::RESULT_BYTES_MAX;
                Failure::new(Kind::TooLarge, detail(format!("it would put more than {most} bytes into the file")))
                    .hint("replace fewer places, or by less")
                    .fact("limit_bytes", most)
            }
            Reason::Touched(touched) => self.touched(index, touched),
        }
    }

    fn not_found(&self, index: usize, missing: &Missing) -> Failure {
        let mut what = format!("edit {index}: old is not in {}", self.target.path);
        if let Some(other) = missing.made_by {
            what.push_str(&format!(
                "; it is in the new text of edit {other}, but edits do not see each other"
            ));
        }
        if let Some(line) = &missing.elided {
            what.push_str(&format!("; its line {} stands for others instead of quoting them", cut(line)));
        }
        let now = Now { path: &self.target.path, version: self.current.version, text: &self.current.text };
        let older = older::holding(self.view, now, self.edits[index].old, Borders::Anywhere);
        if let Some(older) = &older {
            what.push_str(&format!("; {}", older.sentence()));
        }
        let mut failure = Failure::new(Kind::TextNotFound, format!("{what}; nothing was written"));
        if let Some(other) = missing.made_by {
            failure = failure.fact("made_by", other);
        }
        if !missing.new_at.is_empty() {
            let at: Vec<usize> = missing.new_at.iter().map(|lines| *lines.start()).collect();
            failure = failure.fact("new_is_at", at);
        }
        if let Some(limit) = missing.limit {
            failure = failure.fact("search_limit", limit_name(limit));
        }
        let mut shown = String::new();
        let mut hint = format!("read {} and quote what is there", self.target.path);
        // Where the journal knows what the quote became, nothing has to be guessed.
        let became = older.as_ref().and_then(Older::lines);
        if let Some(lines) = became.or(missing.nearest.as_ref().map(|nearest| &nearest.lines)) {
            let (first, last) = (*lines.start(), *lines.end());
            let numbered = self.numbered(lines);
            hint = format!("the nearest lines are {first}-{last}: quote them as they are now");
            shown.push_str(&numbered);
            failure = failure.fact("nearest", numbered).fact("nearest_from", first).fact("nearest_to", last);
            let nearest = missing.nearest.as_ref().filter(|nearest| nearest.lines == *lines);
            let differs: Vec<Value> =
                nearest.iter().flat_map(|nearest| &nearest.differences).map(difference).collect();
            if !differs.is_empty() {
                failure = failure.fact("differs", differs);
            }
        }
        if let Some(older) = &older {
            hint = format!("look at the diff since {}, then quote what is there now", older.rev());
            shown.push_str(older.diff());
            failure = failure.fact("older", older.fact());
        }
        failure.hint(hint).shows(shown)
    }

    fn touched(&self, index: usize, touched: &Touched) -> Failure {
        let rev = self.old.map_or("your base", |old| &old.rev);
        let what = match &touched.lines {
            Some(lines) => {
                format!("the text it quotes changed since {rev}, at lines {}-{}", lines.start(), lines.end())
            }
            None => format!("the text it quotes went away since {rev}"),
        };
        let mut failure = Failure::new(Kind::Stale, format!("edit {index}: {what}; nothing was written"))
            .hint("quote the text as it is now, with the current version as base; or say mode: merge");
        if let Some(lines) = &touched.base_lines {
            failure = failure.fact("base_lines", json!([lines.start(), lines.end()]));
        }
        let mut shown = String::new();
        if let Some(lines) = &touched.lines {
            shown = self.numbered(lines);
            failure = failure
                .fact("nearest", shown.clone())
                .fact("nearest_from", *lines.start())
                .fact("nearest_to", *lines.end());
        }
        match self.old {
            Some(old) => with_diff(failure.shows(shown), old, self.current),
            None => failure.shows(shown),
        }
    }

    fn places(&self, failure: Failure, total: usize, spots: &[Spot]) -> Failure {
        let place = |spot: &Spot| {
            let mut fact = spots::fact(spot);
            if self.view.terms.evidence == Evidence::Bytes {
                fact["to_line"] = json!(spot.lines.end());
                let text = &self.current.text;
                fact["units"] = json!([units(&text[..spot.bytes.start]), units(&text[..spot.bytes.end])]);
            }
            fact
        };
        let places: Vec<Value> = spots.iter().take(limits::FAILURE_PLACES_MAX).map(place).collect();
        let shown: String = spots.iter().take(limits::FAILURE_PLACES_MAX).map(spots::told).collect();
        failure.fact("places", places).fact("places_total", total).shows(shown)
    }

    /// Lines with their numbers, a bounded number of them.
    fn numbered(&self, lines: &RangeInclusive<usize>) -> String {
        numbered(&self.finder, lines, limits::FAILURE_LINES_MAX)
    }
}

/// Adds what changed since an older text.
fn with_diff(failure: Failure, old: &Old, current: &Current) -> Failure {
    let labels = Labels { old: &old.rev, new: "now" };
    let lines = limits::FAILURE_LINES_MAX;
    let diff = unified(&old.text, &current.text, labels, limits::DIFF_CONTEXT_LINES, lines);
    let diff = older::shown(&diff);
    let shown = format!("{}{diff}", failure.shown().unwrap_or_default());
    failure.fact("base_version", old.version.to_string()).fact("diff", diff).shows(shown)
}

fn distinction(spots: &[Spot]) -> &'static str {
    let told = spots.iter().any(|spot| spot.extra.is_some());
    if told {
        "add the line that makes yours unique to old and new"
    } else {
        "quote more of the text around it"
    }
}

fn lines_of(spots: &[Spot]) -> String {
    let listed: Vec<String> = spots.iter().map(|spot| spot.lines.start().to_string()).collect();
    format!("at lines {}", listed.join(", "))
}

fn limit_name(limit: Limit) -> &'static str {
    match limit {
        Limit::Bytes => "the file is too large for more than an exact search",
        Limit::Places => "there are too many places",
        Limit::Work => "the file repeats too much to compare every place",
    }
}

/// The length of a text in UTF-16 units, every line end counted as one: how editors count.
fn units(text: &str) -> usize {
    text.encode_utf16().count() - text.matches("\r\n").count()
}
