//! The unified diff format.
//!
//! Owns how hunks are written for people and for `patch`. Promises output that standard tools apply, as long as it is
//! not truncated; a truncated one says so and says how much is missing. Content is left exactly as it is, control
//! characters included: pass the text through [`crate::visible::visible`] before a person sees it.
//!
//! Lines here end at `\n` only, as the format has it, so in a text with lone `\r` the numbers differ from those of
//! [`crate::lines`].

pub mod jsdiff;

use std::fmt::Write as _;
use std::ops::Range;

use crate::diff::{Hunk, line_hunks};
use crate::visible::visible_line;

/// The lines of context that people expect around a change.
pub const CONTEXT_LINES: usize = 3;

/// The names of the two sides, as they stand behind `---` and `+++`.
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a> {
    /// The name of the old side.
    pub old: &'a str,
    /// The name of the new side.
    pub new: &'a str,
}

/// A unified diff, or the start of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unified {
    /// The diff; empty when nothing changed.
    pub text: String,
    /// How many lines the limit cut off the end.
    pub omitted_lines: usize,
}

impl Unified {
    /// Whether the limit cut something off.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.omitted_lines > 0
    }
}

/// The unified diff from `old` to `new`, of at most `limit_lines` lines.
///
/// Labels are kept on their line: characters in them that would break out or mislead are escaped.
#[must_use]
pub fn unified(
    old: &str,
    new: &str,
    labels: Labels<'_>,
    context_lines: usize,
    limit_lines: usize,
) -> Unified {
    let mut output = Output { text: String::new(), left: limit_lines, omitted: 0 };
    if old != new {
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let new: Vec<&str> = new.split_inclusive('\n').collect();
        output.line("--- ", &visible_line(labels.old));
        output.line("+++ ", &visible_line(labels.new));
        let hunks = line_hunks(&as_bytes(&old), &as_bytes(&new));
        let near =
            |pair: &Hunk, next: &Hunk| next.old.start - pair.old.end <= context_lines.saturating_mul(2);
        for group in hunks.chunk_by(near) {
            write_group(&mut output, &old, &new, group, context_lines);
        }
    }
    Unified { text: output.text, omitted_lines: output.omitted }
}

fn as_bytes<'a>(lines: &[&'a str]) -> Vec<&'a [u8]> {
    lines.iter().map(|line| line.as_bytes()).collect()
}

/// Writes hunks that share their context, under one header.
fn write_group(output: &mut Output, old: &[&str], new: &[&str], group: &[Hunk], context_lines: usize) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let before = first.old.start.min(context_lines);
    let after = (old.len() - last.old.end).min(context_lines);
    let old_span = first.old.start - before..last.old.end + after;
    let new_span = first.new.start - before..last.new.end + after;
    output.line("@@ ", &format!("-{} +{} @@", span(&old_span), span(&new_span)));
    let mut at = old_span.start;
    for hunk in group {
        output.content(" ", &old[at..hunk.old.start]);
        output.content("-", &old[hunk.old.clone()]);
        output.content("+", &new[hunk.new.clone()]);
        at = hunk.old.end;
    }
    output.content(" ", &old[at..old_span.end]);
}

/// A range as the format writes it: 1-based, the length left out when it is 1, and an empty range named by the line
/// before it.
fn span(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        length => format!("{},{length}", range.start + 1),
    }
}

/// Collects lines up to a limit and counts the rest.
struct Output {
    text: String,
    left: usize,
    omitted: usize,
}

impl Output {
    fn line(&mut self, prefix: &str, body: &str) {
        if self.left == 0 {
            self.omitted += 1;
            return;
        }
        self.left -= 1;
        // Writing to a `String` cannot fail.
        writeln!(self.text, "{prefix}{body}").unwrap_or_default();
    }

    fn content(&mut self, prefix: &str, lines: &[&str]) {
        for line in lines {
            match line.strip_suffix('\n') {
                Some(body) => self.line(prefix, body),
                None => {
                    self.line(prefix, line);
                    self.line("\\ ", "No newline at end of file");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: Labels<'static> = Labels { old: "a/x", new: "b/x" };

    fn diff(old: &str, new: &str) -> String {
        unified(old, new, LABELS, CONTEXT_LINES, usize::MAX).text
    }

    fn numbers(range: Range<u32>) -> String {
        range.map(|number| format!("{number}\n")).collect()
    }

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(diff("a\n", "a\n"), "");
    }

    #[test]
    fn a_change_stands_in_its_context() {
        let old = numbers(1..10);
        let new = old.replace("5\n", "five\r\n");
        let expected = "--- a/x\n+++ b/x\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\r\n 6\n 7\n 8\n";
        assert_eq!(diff(&old, &new), expected);
    }

    #[test]
    fn near_changes_share_a_header_and_distant_ones_do_not() {
        let old = numbers(0..40);
        let near = old.replace("\n10\n", "\nten\n").replace("\n17\n", "\n");
        assert_eq!(diff(&old, &near).matches("@@ -").count(), 1);
        let far = old.replace("\n10\n", "\nten\n").replace("\n18\n", "\n");
        assert_eq!(diff(&old, &far).matches("@@ -").count(), 2);
    }

    #[test]
    fn empty_sides_and_missing_newlines_are_written_as_the_format_has_it() {
        assert_eq!(diff("", "a\n"), "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+a\n");
        assert_eq!(diff("a\n", ""), "--- a/x\n+++ b/x\n@@ -1 +0,0 @@\n-a\n");
        assert_eq!(
            diff("a\nb", "a\nb\n"),
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
        );
    }

    #[test]
    fn a_cut_is_counted() {
        let old = numbers(0..10);
        let cut = unified(&old, "", LABELS, CONTEXT_LINES, 4);
        assert_eq!(cut.text, "--- a/x\n+++ b/x\n@@ -1,10 +0,0 @@\n-0\n");
        assert_eq!(cut.omitted_lines, 9);
        assert!(cut.truncated());
    }

    #[test]
    fn a_label_cannot_forge_a_line() {
        let labels = Labels { old: "x\n@@ -1 +1 @@\n-y", new: "\u{202e}x" };
        let text = unified("a\n", "b\n", labels, 0, usize::MAX).text;
        assert_eq!(text, "--- x\\u{a}@@ -1 +1 @@\\u{a}-y\n+++ \\u{202e}x\n@@ -1 +1 @@\n-a\n+b\n");
    }
}
