//! How refusals tell places and lines of a text: each place with its definition and with the line that makes it unique,
//! lines with their numbers, characters by code point. Owns the words and facts, so that every operation uses the same
//! ones. Never decides anything.

use std::ops::RangeInclusive;

use serde_json::{Value, json};
use text::{
    edit::Spot,
    locate::{Difference, Finder, Side},
};

/// A place for machines.
pub(crate) fn fact(spot: &Spot) -> Value {
    let mut fact = json!({ "line": spot.lines.start() });
    if let Some(definition) = &spot.within {
        fact["in"] = json!(cut(&definition.text));
    }
    if let Some(extra) = &spot.extra {
        let side = match extra.side {
            Side::Within => "whole_line",
            Side::Before => "before",
            Side::After => "after",
        };
        fact["unique_with"] = json!({ side: extra.text });
    }
    fact
}

/// A place as people read it.
pub(crate) fn told(spot: &Spot) -> String {
    let within = spot.within.as_ref().map(|definition| format!(" in {}", cut(&definition.text)));
    let extra = spot.extra.as_ref().map(|extra| match extra.side {
        Side::Within => format!(", unique as the whole line: {}", cut(&extra.text)),
        Side::Before => format!(", unique with the line before: {}", cut(&extra.text)),
        Side::After => format!(", unique with the line after: {}", cut(&extra.text)),
    });
    format!("line {}{}{}\n", spot.lines.start(), within.unwrap_or_default(), extra.unwrap_or_default())
}

/// Lines with their numbers, at most `most` of them.
pub(crate) fn numbered(finder: &Finder<'_>, lines: &RangeInclusive<usize>, most: usize) -> String {
    let mut shown: String =
        lines.clone().take(most).map(|number| format!("{number}\t{}\n", finder.line(number))).collect();
    if lines.clone().count() > most {
        shown.push_str(&format!("… and {} more lines\n", lines.clone().count() - most));
    }
    shown
}

/// Where a quote and the text part.
pub(crate) fn difference(difference: &Difference) -> Value {
    json!({ "line": difference.text_line, "column": difference.column,
        "quoted": difference.quoted.map(code_point), "actual": difference.actual.map(code_point) })
}

/// A character by its code point, and itself where it can be seen.
pub(crate) fn code_point(character: char) -> String {
    let number = format!("U+{:04X}", u32::from(character));
    let seen = !character.is_whitespace() && !text::visible::is_deceptive(character);
    if seen { format!("{number} {character}") } else { number }
}

/// The first line of a text, cut where it is long.
pub(crate) fn cut(text: &str) -> String {
    const CHARS_MAX: usize = 100;
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let cut: String = line.chars().take(CHARS_MAX).collect();
    if cut.len() < line.len() { format!("{cut}…") } else { cut }
}
