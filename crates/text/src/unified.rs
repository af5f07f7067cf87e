//! Writes unified diffs, for people and for `patch`.
//!
//! A unified diff contains the lines of both texts unchanged, including control characters. Pass a unified diff through
//! [`crate::visible::escape_deceptive`] before you display it. In a unified diff, lines end at `\n` only, unlike in
//! [`crate::lines`].

pub mod jsdiff;

use std::fmt::Write as _;
use std::ops::Range;

use crate::diff::{DiffHunkRanges, line_hunks};
use crate::visible::escape_deceptive_line;

/// The usual number of context lines around a change in a unified diff.
pub const CONTEXT_LINES: usize = 3;

/// The names of the two texts in a unified diff, after `---` and `+++`.
#[derive(Debug, Clone, Copy)]
pub struct DiffLabels<'a> {
    pub old: &'a str,
    pub new: &'a str,
}

/// A unified diff, possibly truncated at a line limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnifiedDiffText {
    /// The text of the unified diff; empty if nothing changed.
    pub text: String,
    /// The number of lines of the unified diff that were omitted because of the line limit.
    pub omitted_lines: usize,
}

impl UnifiedDiffText {
    /// Whether lines of the unified diff were omitted because of the line limit.
    pub fn is_truncated(&self) -> bool {
        self.omitted_lines > 0
    }
}

/// Writes the unified diff from `old` to `new`, of at most `limit_lines` lines.
///
/// Invisible or misleading characters and line breaks in the names after `---` and `+++` are escaped.
pub fn unified_diff(
    old: &str,
    new: &str,
    labels: DiffLabels<'_>,
    context_lines: usize,
    limit_lines: usize,
) -> UnifiedDiffText {
    let mut output = LineLimitedDiffText { text: String::new(), remaining_lines: limit_lines, omitted_lines: 0 };
    if old != new {
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let new: Vec<&str> = new.split_inclusive('\n').collect();
        output.line("--- ", &escape_deceptive_line(labels.old));
        output.line("+++ ", &escape_deceptive_line(labels.new));
        let hunks = line_hunks(&as_bytes(&old), &as_bytes(&new));
        let near = |hunk: &DiffHunkRanges, next: &DiffHunkRanges| {
            next.old.start - hunk.old.end <= context_lines.saturating_mul(2)
        };
        for group in hunks.chunk_by(near) {
            write_group(&mut output, &old, &new, group, context_lines);
        }
    }
    UnifiedDiffText { text: output.text, omitted_lines: output.omitted_lines }
}

fn as_bytes<'a>(lines: &[&'a str]) -> Vec<&'a [u8]> {
    lines.iter().map(|line| line.as_bytes()).collect()
}

/// Hunks are written under one header if their context lines touch or overlap.
fn write_group(
    output: &mut LineLimitedDiffText,
    old: &[&str],
    new: &[&str],
    group: &[DiffHunkRanges],
    context_lines: usize,
) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let before = first.old.start.min(context_lines);
    let after = (old.len() - last.old.end).min(context_lines);
    let old_span = first.old.start - before..last.old.end + after;
    let new_span = first.new.start - before..last.new.end + after;
    output.line("@@ ", &format!("-{} +{} @@", format_range(&old_span), format_range(&new_span)));
    let mut at = old_span.start;
    for hunk in group {
        output.push_lines(" ", &old[at..hunk.old.start]);
        output.push_lines("-", &old[hunk.old.clone()]);
        output.push_lines("+", &new[hunk.new.clone()]);
        at = hunk.old.end;
    }
    output.push_lines(" ", &old[at..old_span.end]);
}

/// In a unified diff, the count of a range of one line is omitted.
fn format_range(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        length => format!("{},{length}", range.start + 1),
    }
}

struct LineLimitedDiffText {
    text: String,
    remaining_lines: usize,
    omitted_lines: usize,
}

impl LineLimitedDiffText {
    fn line(&mut self, prefix: &str, body: &str) {
        if self.remaining_lines == 0 {
            self.omitted_lines += 1;
            return;
        }
        self.remaining_lines -= 1;
        // Writing to a `String` cannot fail.
        writeln!(self.text, "{prefix}{body}").unwrap_or_default();
    }

    fn push_lines(&mut self, prefix: &str, lines: &[&str]) {
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

    const LABELS: DiffLabels<'static> = DiffLabels { old: "a/x", new: "b/x" };

    fn diff(old: &str, new: &str) -> String {
        unified_diff(old, new, LABELS, CONTEXT_LINES, usize::MAX).text
    }

    fn numbered_lines(range: Range<u32>) -> String {
        range.map(|number| format!("{number}\n")).collect()
    }

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(diff("a\n", "a\n"), "");
    }

    #[test]
    fn changes_are_shown_with_context() {
        let old = numbered_lines(1..10);
        let new = old.replace("5\n", "five\r\n");
        let expected = "--- a/x\n+++ b/x\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\r\n 6\n 7\n 8\n";
        assert_eq!(diff(&old, &new), expected);
    }

    #[test]
    fn near_changes_share_a_header_and_distant_ones_do_not() {
        let old = numbered_lines(0..40);
        let near = old.replace("\n10\n", "\nten\n").replace("\n17\n", "\n");
        assert_eq!(diff(&old, &near).matches("@@ -").count(), 1);
        let far = old.replace("\n10\n", "\nten\n").replace("\n18\n", "\n");
        assert_eq!(diff(&old, &far).matches("@@ -").count(), 2);
    }

    #[test]
    fn empty_sides_and_missing_newlines_follow_the_format() {
        assert_eq!(diff("", "a\n"), "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+a\n");
        assert_eq!(diff("a\n", ""), "--- a/x\n+++ b/x\n@@ -1 +0,0 @@\n-a\n");
        assert_eq!(
            diff("a\nb", "a\nb\n"),
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
        );
    }

    #[test]
    fn omitted_lines_are_counted() {
        let old = numbered_lines(0..10);
        let cut = unified_diff(&old, "", LABELS, CONTEXT_LINES, 4);
        assert_eq!(cut.text, "--- a/x\n+++ b/x\n@@ -1,10 +0,0 @@\n-0\n");
        assert_eq!(cut.omitted_lines, 9);
        assert!(cut.is_truncated());
    }

    #[test]
    fn labels_cannot_inject_lines() {
        let labels = DiffLabels { old: "x\n@@ -1 +1 @@\n-y", new: "\u{202e}x" };
        let text = unified_diff("a\n", "b\n", labels, 0, usize::MAX).text;
        assert_eq!(text, "--- x\\u{a}@@ -1 +1 @@\\u{a}-y\n+++ \\u{202e}x\n@@ -1 +1 @@\n-a\n+b\n");
    }
}
