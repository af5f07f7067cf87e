//! How errors describe locations in a text: each match with its enclosing definition and the line that makes it
//! unique, lines with numbers, characters by code point. Every operation uses the same words and fields.

use std::ops::RangeInclusive;

use serde_json::{Value, json};
use stead_text::{
    edit::MatchDescription,
    locate::{ContextSide, LineDifference, SearchableText},
};

pub(crate) fn location_json(location: &MatchDescription) -> Value {
    let mut fact = json!({ "line": location.lines.start() });
    if let Some(definition) = &location.enclosing_definition {
        fact["in"] = json!(shorten_text(&definition.text));
    }
    if let Some(extra) = &location.disambiguating_context {
        let side = match extra.side {
            ContextSide::SameLines => "whole_line",
            ContextSide::Before => "before",
            ContextSide::After => "after",
        };
        fact["unique_with"] = json!({ side: extra.text });
    }
    fact
}

pub(crate) fn render_location(location: &MatchDescription) -> String {
    let within =
        location.enclosing_definition.as_ref().map(|definition| format!(" in {}", shorten_text(&definition.text)));
    let extra = location.disambiguating_context.as_ref().map(|extra| match extra.side {
        ContextSide::SameLines => format!(", unique as the whole line: {}", shorten_text(&extra.text)),
        ContextSide::Before => format!(", unique with the line before: {}", shorten_text(&extra.text)),
        ContextSide::After => format!(", unique with the line after: {}", shorten_text(&extra.text)),
    });
    format!("line {}{}{}\n", location.lines.start(), within.unwrap_or_default(), extra.unwrap_or_default())
}

/// Lines with numbers, at most `most` of them.
pub(crate) fn render_numbered_lines(finder: &SearchableText<'_>, lines: &RangeInclusive<usize>, most: usize) -> String {
    let mut shown: String =
        lines.clone().take(most).map(|number| format!("{number}\t{}\n", finder.line(number))).collect();
    if lines.clone().count() > most {
        shown.push_str(&format!("… and {} more lines\n", lines.clone().count() - most));
    }
    shown
}

pub(crate) fn difference_json(difference: &LineDifference) -> Value {
    json!({ "line": difference.text_line, "column": difference.column,
        "quoted": difference.quoted.map(format_code_point), "actual": difference.actual.map(format_code_point) })
}

/// The code point, and the character itself if it is visible.
pub(crate) fn format_code_point(character: char) -> String {
    let number = format!("U+{:04X}", u32::from(character));
    let seen = !character.is_whitespace() && !stead_text::visible::is_deceptive(character);
    if seen { format!("{number} {character}") } else { number }
}

/// The first line of a text, shortened if it is long.
pub(crate) fn shorten_text(text: &str) -> String {
    const CHARS_MAX: usize = 100;
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let cut: String = line.chars().take(CHARS_MAX).collect();
    if cut.len() < line.len() { format!("{cut}…") } else { cut }
}
