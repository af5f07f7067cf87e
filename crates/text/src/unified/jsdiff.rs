//! Writes unified diffs that equal the output of jsdiff byte for byte.
//!
//! To bound the time, texts that differ too much for the search of jsdiff are compared by [`crate::diff`]. The diff of
//! very different texts is correct, but may differ from the diff of jsdiff.

use std::fmt::Write as _;

use super::{CONTEXT_LINES, as_bytes};
use crate::diff::line_hunks;

const SEPARATOR_LINE: &str = "===================================================================";
/// The most steps of the greedy search, beyond which [`crate::diff`] compares the texts.
const STEPS_MAX: usize = 4_000_000;
const NO_NODE: usize = usize::MAX;

/// Writes the diff of one file from `old` to `new` in the format of jsdiff. Equal texts give an empty diff.
pub fn jsdiff_patch(name: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let runs = find_runs(&old, &new).unwrap_or_else(|| runs_from_hunks(&old, &new));
    let quoted = quote_name(name);
    let mut text = format!("Index: {name}\n{SEPARATOR_LINE}\n--- {quoted}\n+++ {quoted}\n");
    for hunk in group_into_hunks(&runs) {
        write_hunk(&mut text, &old, &new, hunk);
    }
    text
}

/// The file name is C-quoted if a header line cannot hold it as it is.
fn quote_name(name: &str) -> String {
    let plain = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    if name.bytes().all(plain) {
        return name.to_owned();
    }
    let mut quoted = String::from("\"");
    for byte in name.bytes() {
        match byte {
            0x07 => quoted.push_str("\\a"),
            0x08 => quoted.push_str("\\b"),
            b'\t' => quoted.push_str("\\t"),
            b'\n' => quoted.push_str("\\n"),
            0x0b => quoted.push_str("\\v"),
            0x0c => quoted.push_str("\\f"),
            b'\r' => quoted.push_str("\\r"),
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(char::from(byte));
            }
            byte if plain(byte) => quoted.push(char::from(byte)),
            // Writing to a `String` cannot fail.
            byte => write!(quoted, "\\{byte:03o}").unwrap_or_default(),
        }
    }
    quoted.push('"');
    quoted
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiffRunKind {
    Equal,
    Added,
    Removed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DiffRun {
    kind: DiffRunKind,
    count: usize,
    /// The 0-based line of the old text where the run starts, or before which added lines are inserted.
    old: usize,
    /// The 0-based line of the new text where the run starts, or before which removed lines were.
    new: usize,
}

#[derive(Clone, Copy)]
struct MyersPathNode {
    kind: DiffRunKind,
    count: usize,
    previous: usize,
}

#[derive(Clone, Copy)]
struct MyersFurthestPoint {
    old: usize,
    last_node: usize,
}

/// The greedy search of Myers for the smallest number of edits. The search extends the path that has advanced furthest
/// in the old text. If two paths have advanced equally far, the search removes a line rather than adding one.
struct MyersSearch<'a> {
    old: &'a [&'a str],
    new: &'a [&'a str],
    nodes: Vec<MyersPathNode>,
}

impl MyersSearch<'_> {
    fn push_node(&mut self, from: MyersFurthestPoint, kind: DiffRunKind) -> MyersFurthestPoint {
        let last = match self.nodes.get(from.last_node) {
            Some(last) if last.kind == kind => MyersPathNode { count: last.count + 1, ..*last },
            Some(_) | None => MyersPathNode { kind, count: 1, previous: from.last_node },
        };
        self.nodes.push(last);
        let step = usize::from(kind == DiffRunKind::Removed);
        MyersFurthestPoint { old: from.old + step, last_node: self.nodes.len() - 1 }
    }

    /// Skips equal lines of both texts and returns the resulting position in the new text.
    fn follow_equal_lines(&mut self, point: &mut MyersFurthestPoint, mut at_new: usize) -> usize {
        let mut count = 0;
        while point.old < self.old.len() && at_new < self.new.len() && self.old[point.old] == self.new[at_new] {
            point.old += 1;
            at_new += 1;
            count += 1;
        }
        if count > 0 {
            self.nodes.push(MyersPathNode { kind: DiffRunKind::Equal, count, previous: point.last_node });
            point.last_node = self.nodes.len() - 1;
        }
        at_new
    }

    fn collect_runs(&self, mut last: usize) -> Vec<DiffRun> {
        let mut path = Vec::new();
        while let Some(node) = self.nodes.get(last) {
            path.push(*node);
            last = node.previous;
        }
        let (mut old, mut new) = (0, 0);
        let to_run = |node: &MyersPathNode| {
            let run = DiffRun { kind: node.kind, count: node.count, old, new };
            match node.kind {
                DiffRunKind::Equal => (old, new) = (old + node.count, new + node.count),
                DiffRunKind::Added => new += node.count,
                DiffRunKind::Removed => old += node.count,
            }
            run
        };
        path.iter().rev().map(to_run).collect()
    }
}

/// Finds the runs of a diff; `None` means that the search would take too many steps.
fn find_runs(old: &[&str], new: &[&str]) -> Option<Vec<DiffRun>> {
    let mut search = MyersSearch { old, new, nodes: Vec::new() };
    let mut start = MyersFurthestPoint { old: 0, last_node: NO_NODE };
    let reached = search.follow_equal_lines(&mut start, 0);
    if start.old >= old.len() && reached >= new.len() {
        return Some(search.collect_runs(start.last_node));
    }
    // The diagonal `old - new` has the index `old - new + middle`. There is one spare entry on each side.
    let middle = new.len() + 1;
    let mut best: Vec<Option<MyersFurthestPoint>> = vec![None; old.len() + new.len() + 3];
    best[middle] = Some(start);
    // If the path on a diagonal reached the end of a text, diagonals beyond it cannot give a shorter path.
    let mut lowest = if reached >= new.len() { middle + 1 } else { 1 };
    let mut highest = if start.old >= old.len() { middle - 1 } else { old.len() + new.len() + 1 };
    let mut steps = 0;
    for edits in 1..=old.len() + new.len() {
        // If `lowest` changes, a round may visit the other half of the diagonals; jsdiff does the same.
        let mut at = lowest.max(middle.saturating_sub(edits));
        while at <= highest.min(middle + edits) {
            steps += 1;
            if steps > STEPS_MAX {
                return None;
            }
            let (removing, adding) = (best[at - 1].take(), best[at + 1]);
            // The line of the new text that an insertion from the diagonal above adds.
            let new_at =
                |point: &MyersFurthestPoint| (point.old + middle).checked_sub(at + 1).filter(|line| *line < new.len());
            let adding = adding.filter(|point| new_at(point).is_some());
            let removing = removing.filter(|point| point.old < old.len());
            let mut point = match (removing, adding) {
                (None, None) => {
                    best[at] = None;
                    at += 2;
                    continue;
                }
                (Some(removing), Some(adding)) if removing.old < adding.old => {
                    search.push_node(adding, DiffRunKind::Added)
                }
                (Some(removing), _) => search.push_node(removing, DiffRunKind::Removed),
                (None, Some(adding)) => search.push_node(adding, DiffRunKind::Added),
            };
            let new_position = point.old + middle - at;
            let reached = search.follow_equal_lines(&mut point, new_position);
            if point.old >= old.len() && reached >= new.len() {
                return Some(search.collect_runs(point.last_node));
            }
            best[at] = Some(point);
            if point.old >= old.len() {
                highest = highest.min(at - 1);
            }
            if reached >= new.len() {
                lowest = lowest.max(at + 1);
            }
            at += 2;
        }
    }
    None
}

fn runs_from_hunks(old: &[&str], new: &[&str]) -> Vec<DiffRun> {
    let mut runs = Vec::new();
    let (mut at_old, mut at_new) = (0, 0);
    let mut push = |kind, count, old, new| {
        if count > 0 {
            runs.push(DiffRun { kind, count, old, new });
        }
    };
    for hunk in line_hunks(&as_bytes(old), &as_bytes(new)) {
        push(DiffRunKind::Equal, hunk.old.start - at_old, at_old, at_new);
        push(DiffRunKind::Removed, hunk.old.len(), hunk.old.start, hunk.new.start);
        push(DiffRunKind::Added, hunk.new.len(), hunk.old.end, hunk.new.start);
        (at_old, at_new) = (hunk.old.end, hunk.new.end);
    }
    push(DiffRunKind::Equal, old.len() - at_old, at_old, at_new);
    runs
}

/// Two changes are in the same hunk if at most twice [`CONTEXT_LINES`] equal lines are between them. A hunk starts and
/// ends with added or removed lines.
fn group_into_hunks(runs: &[DiffRun]) -> impl Iterator<Item = &[DiffRun]> {
    runs.split(|run| run.kind == DiffRunKind::Equal && run.count > 2 * CONTEXT_LINES).filter_map(|group| {
        let first = group.iter().position(|run| run.kind != DiffRunKind::Equal)?;
        let last = group.iter().rposition(|run| run.kind != DiffRunKind::Equal)?;
        Some(&group[first..=last])
    })
}

fn write_hunk(text: &mut String, old: &[&str], new: &[&str], hunk: &[DiffRun]) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return };
    let (old_end, new_end) = match last.kind {
        DiffRunKind::Added => (last.old, last.new + last.count),
        DiffRunKind::Removed | DiffRunKind::Equal => (last.old + last.count, last.new),
    };
    let before = first.old.min(first.new).min(CONTEXT_LINES).min(equal_lines_before(old, new, first));
    let after = (old.len() - old_end).min(new.len() - new_end).min(CONTEXT_LINES);
    let span = |start: usize, end: usize| match end - start {
        0 => format!("{start},0"),
        count => format!("{},{count}", start + 1),
    };
    let spans = (span(first.old - before, old_end + after), span(first.new - before, new_end + after));
    // Writing to a `String` cannot fail.
    writeln!(text, "@@ -{} +{} @@", spans.0, spans.1).unwrap_or_default();
    write_lines(text, ' ', &old[first.old - before..first.old]);
    for run in hunk {
        match run.kind {
            DiffRunKind::Equal => write_lines(text, ' ', &old[run.old..run.old + run.count]),
            DiffRunKind::Removed => write_lines(text, '-', &old[run.old..run.old + run.count]),
            DiffRunKind::Added => write_lines(text, '+', &new[run.new..run.new + run.count]),
        }
    }
    write_lines(text, ' ', &old[old_end..old_end + after]);
}

fn equal_lines_before(old: &[&str], new: &[&str], first: &DiffRun) -> usize {
    old[..first.old].iter().rev().zip(new[..first.new].iter().rev()).take_while(|(a, b)| a == b).count()
}

fn write_lines(text: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch_body(old: &str, new: &str) -> String {
        let whole = jsdiff_patch("f", old, new);
        whole.strip_prefix(&format!("Index: f\n{SEPARATOR_LINE}\n--- f\n+++ f\n")).unwrap_or(&whole).to_owned()
    }

    #[test]
    fn both_counts_are_always_written() {
        for (old, new, expected) in [
            ("", "hi\n", "@@ -0,0 +1,1 @@\n+hi\n"),
            ("bye\n", "", "@@ -1,1 +0,0 @@\n-bye\n"),
            ("a", "m", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+m\n\\ No newline at end of file\n"),
            ("one\ntwo\n", "uno\ndos\n", "@@ -1,2 +1,2 @@\n-one\n-two\n+uno\n+dos\n"),
            ("a\nb\nc\nd\n", "A\nb\nc\nD\n", "@@ -1,4 +1,4 @@\n-a\n+A\n b\n c\n-d\n+D\n"),
            ("a\nB\nc\n", "TOP\na\nB\nc\n", "@@ -1,3 +1,4 @@\n+TOP\n a\n B\n c\n"),
            ("a\r\nb\r\n", "a\r\nB\r\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+B\r\n"),
            ("x\n", "x\n", ""),
        ] {
            assert_eq!(patch_body(old, new), expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn distant_changes_have_headers_of_their_own() {
        let old: String = (1..=20).map(|line| format!("{line}\n")).collect();
        let near = old.replace("\n5\n", "\nV\n").replace("\n12\n", "\nXII\n");
        assert_eq!(patch_body(&old, &near).matches("@@ -").count(), 1);
        let far = old.replace("\n5\n", "\nV\n").replace("\n13\n", "\nXIII\n");
        let quoted = patch_body(&old, &far);
        assert!(quoted.starts_with("@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+V\n 6\n 7\n 8\n@@ -10,7 +10,7 @@\n"), "{quoted}");
    }

    #[test]
    fn names_are_quoted_below_the_index_line_only() {
        let quoted = jsdiff_patch("é \"q\"", "a\n", "b\n");
        assert!(quoted.starts_with("Index: é \"q\"\n"), "{quoted}");
        assert!(quoted.contains("\n--- \"\\303\\251 \\\"q\\\"\"\n+++ \"\\303\\251"), "{quoted}");
    }

    #[test]
    fn texts_without_equal_lines_finish_in_bounded_time() {
        let lines = |mark: &str| (0..6000).map(|line| format!("{mark}{line}\n")).collect::<String>();
        let quoted = patch_body(&lines("a"), &lines("b"));
        assert!(quoted.starts_with("@@ -1,6000 +1,6000 @@\n-a0\n"));
    }

    fn lines_of_kind<'a>(runs: &[DiffRun], lines: &[&'a str], kind: DiffRunKind) -> Vec<&'a str> {
        let start = |run: &DiffRun| if kind == DiffRunKind::Removed { run.old } else { run.new };
        let run_lines = |run: &DiffRun| lines[start(run)..start(run) + run.count].to_vec();
        runs.iter().filter(|run| run.kind == DiffRunKind::Equal || run.kind == kind).flat_map(run_lines).collect()
    }

    proptest::proptest! {
        #[test]
        fn applying_runs_to_old_gives_new(old in "([ab]\n|[ab]){0,14}", new in "([abc]\n|[ab]){0,14}") {
            let old: Vec<&str> = old.split_inclusive('\n').collect();
            let new: Vec<&str> = new.split_inclusive('\n').collect();
            for runs in find_runs(&old, &new).into_iter().chain([runs_from_hunks(&old, &new)]) {
                proptest::prop_assert_eq!(lines_of_kind(&runs, &old, DiffRunKind::Removed), old.clone());
                proptest::prop_assert_eq!(lines_of_kind(&runs, &new, DiffRunKind::Added), new.clone());
            }
        }
    }
}
