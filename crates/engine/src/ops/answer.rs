//! How answers are built: an ordered object for machines and a text twin for models, from the same facts.
//!
//! Owns the field names that several operations share, the one spelling of a time, and the cut of a text into pages.
//! Never looks at a workspace.

use journal::ChangeKind;
use serde_json::{Map, Value};
use text::{
    lines,
    visible::{visible, visible_line},
};

use super::recorded::Shown;
use crate::{
    engine::Answer,
    limits,
    version::Version,
    workspace::{Committed, Stored},
};

/// The fields of an answer, in the order they are given.
#[derive(Debug, Default)]
pub(crate) struct Facts(Map<String, Value>);

impl Facts {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds one field.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Adds one field if there is something to say.
    pub(crate) fn maybe(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds the fields of another object.
    pub(crate) fn extended(mut self, fields: Map<String, Value>) -> Self {
        self.0.extend(fields);
        self
    }

    /// Adds which version a file has: the full sha256 and its short name.
    pub(crate) fn file(self, version: &Version, rev: impl Into<String>) -> Self {
        self.with("version", version.to_string()).with("rev", rev.into())
    }

    /// Adds what a commit answers: the entry, its chain hash, and notices if there are any.
    pub(crate) fn committed(self, committed: &Committed) -> Self {
        let notices = (!committed.notices.is_empty()).then(|| committed.notices.clone());
        self.with("entry", committed.number)
            .with("hash", committed.hash.to_string())
            .maybe("notices", notices)
    }

    /// One field.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// The fields as an object, for a place inside another answer.
    pub(crate) fn object(self) -> Map<String, Value> {
        self.0
    }

    /// The answer with its text twin. Names may hold anything, so what a terminal would obey is spelled out.
    pub(crate) fn answer(self, text: impl AsRef<str>) -> Answer {
        Answer { json: self.0, text: visible(text.as_ref()).into_owned(), evidence: Vec::new(), switch: None }
    }

    /// The same for a text of one line: no name can make it two.
    pub(crate) fn line(self, text: impl AsRef<str>) -> Answer {
        Answer {
            json: self.0,
            text: visible_line(text.as_ref()).into_owned(),
            evidence: Vec::new(),
            switch: None,
        }
    }

    /// The same for a text that holds the content of a file, which is shown as it is.
    pub(crate) fn verbatim(self, text: impl Into<String>) -> Answer {
        Answer { json: self.0, text: text.into(), evidence: Vec::new(), switch: None }
    }
}

/// The answer of an earlier call, from the entry it made: what a repeated idempotency key gets.
pub(crate) fn answer_from_entry(stored: &Stored) -> Answer {
    let entry = &stored.entry;
    let shown: Vec<Shown> =
        entry.changes.iter().take(limits::HISTORY_CHANGES_MAX).map(Shown::whole).collect();
    let omitted = entry.changes.len() - shown.len();
    let mut text = format!("already done by {} r{}; nothing was done again", entry.operation, entry.number);
    for change in &shown {
        text.push_str("\n  ");
        text.push_str(&change.line());
    }
    if omitted > 0 {
        text.push_str(&format!("\n  … and {omitted} more changes"));
    }
    let version = left_version(stored);
    Facts::new()
        .with("entry", entry.number)
        .with("hash", stored.hash.to_string())
        .with("replayed", true)
        .with("operation", entry.operation.clone())
        .maybe("version", version.map(|version| version.to_string()))
        .maybe("rev", version.map(|_| format!("r{}", entry.number)))
        .with("changes", shown.into_iter().map(|change| Value::Object(change.object())).collect::<Vec<_>>())
        .maybe("changes_omitted", (omitted > 0).then_some(omitted))
        .answer(text)
}

/// The version an entry left, when it is about one file.
fn left_version(stored: &Stored) -> Option<Version> {
    let mut files = stored.entry.changes.iter().filter_map(|change| match (change.kind, &change.after) {
        (ChangeKind::Remove, _) => None,
        (_, journal::State::File { version, .. }) => Some(Version(*version)),
        (
            _,
            journal::State::Absent
            | journal::State::Directory { .. }
            | journal::State::Link { .. }
            | journal::State::Tree { .. }
            | journal::State::Unknown { .. },
        ) => None,
    });
    let first = files.next()?;
    files.next().is_none().then_some(first)
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Days from 0000-03-01 to 1970-01-01, so that a year ends with its leap day.
const EPOCH_DAYS: i64 = 719_468;
/// Days in 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;

/// Lines as people name them: one, or from one to another.
pub(crate) fn span(first: usize, last: usize) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// Unix milliseconds as ISO 8601 in UTC: `2026-05-09T07:29:33.120Z`.
pub(crate) fn iso_utc(unix_ms: i64) -> String {
    let (days, ms) = (unix_ms.div_euclid(DAY_MS), unix_ms.rem_euclid(DAY_MS));
    let shifted = days + EPOCH_DAYS;
    let (era, day_of_era) = (shifted.div_euclid(ERA_DAYS), shifted.rem_euclid(ERA_DAYS));
    // Leap days so far: one in 4 years, not in 100, but in 400; each taken off once its day has passed.
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March on run 31, 30, 31, 30, 31 days over and over: 153 days in five.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000)
}

/// Where a page of text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Everything fits.
    Whole,
    /// Before the first line that does not fit.
    Line,
    /// Inside a line that alone is more than a page.
    Inside,
}

/// As much of a text as one answer carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Page<'a> {
    /// The start of the text.
    pub(crate) text: &'a str,
    /// How many lines of it, a cut one included.
    pub(crate) lines: usize,
    /// Where it ends.
    pub(crate) cut: Cut,
}

/// The first `chars_max` characters of a text, ending at a line border where there is one.
pub(crate) fn page(text: &str, chars_max: usize) -> Page<'_> {
    let (mut end, mut chars, mut count) = (0, 0, 0);
    for line in lines::iter(text) {
        chars += line.chars().count();
        if chars > chars_max {
            if count > 0 {
                return Page { text: &text[..end], lines: count, cut: Cut::Line };
            }
            let inside = text.char_indices().nth(chars_max).map_or(text.len(), |(at, _)| at);
            return Page { text: &text[..inside], lines: 1, cut: Cut::Inside };
        }
        end += line.len();
        count += 1;
    }
    Page { text, lines: count, cut: Cut::Whole }
}

/// The start of what a caller wrote, for showing it back in a failure.
pub(crate) fn excerpt(written: &str) -> String {
    let start: String = written.chars().take(EXCERPT_CHARS).collect();
    text::visible::visible_line(&start).into_owned()
}

/// How much of a wrong argument is shown back.
const EXCERPT_CHARS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spelled_in_utc() {
        for (unix_ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_709_164_800_123, "2024-02-29T00:00:00.123Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso_utc(unix_ms), expected, "{unix_ms}");
        }
    }

    #[test]
    fn pages_end_at_lines_where_they_can() {
        let check = |text: &str, max: usize, expected: &str, lines: usize, cut: Cut| {
            let found = page(text, max);
            assert_eq!((found.text, found.lines, found.cut), (expected, lines, cut), "{text:?} {max}");
        };
        check("", 4, "", 0, Cut::Whole);
        check("ab\ncd\n", 6, "ab\ncd\n", 2, Cut::Whole);
        check("ab\ncd\n", 5, "ab\n", 1, Cut::Line);
        check("ab\r\ncd", 4, "ab\r\n", 1, Cut::Line);
        check("abcdef\n", 4, "abcd", 1, Cut::Inside);
        check("äöü", 2, "äö", 1, Cut::Inside);
        check("äöü", 3, "äöü", 1, Cut::Whole);
        check("a\nbcdef", 3, "a\n", 1, Cut::Line);
    }
}
