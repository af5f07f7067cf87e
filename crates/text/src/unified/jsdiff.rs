//! The unified diff as jsdiff writes it, byte for byte: an `Index:` line, a rule, both names, both counts in every
//! header, and the lines chosen by the same greedy search.
//!
//! Owns that form alone; people and `patch` are served by [`super::unified`]. Names of files are quoted as in C where
//! they hold what a header line cannot. Texts that differ too much for the search are compared the usual way instead,
//! so that no input makes it hang: the diff is then still right, only not line for line the one jsdiff would choose.

use std::fmt::Write as _;

use super::CONTEXT_LINES;
use crate::diff::line_hunks;

/// The rule below the index line.
const RULE: &str = "===================================================================";
/// Steps of the search after which texts are compared the usual way.
const STEPS_MAX: usize = 4_000_000;
/// "There is no component before."
const NONE: usize = usize::MAX;

/// The diff from `old` to `new` of one file; empty when they are the same.
#[must_use]
pub fn patch(name: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let runs = search(&old, &new).unwrap_or_else(|| usual(&old, &new));
    let shown = quoted(name);
    let mut text = format!("Index: {name}\n{RULE}\n--- {shown}\n+++ {shown}\n");
    for hunk in hunks(&runs) {
        write_hunk(&mut text, &old, &new, hunk);
    }
    text
}

/// A name as a header line can hold it.
fn quoted(name: &str) -> String {
    let plain = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    if name.bytes().all(plain) {
        return name.to_owned();
    }
    let mut shown = String::from("\"");
    for byte in name.bytes() {
        match byte {
            0x07 => shown.push_str("\\a"),
            0x08 => shown.push_str("\\b"),
            b'\t' => shown.push_str("\\t"),
            b'\n' => shown.push_str("\\n"),
            0x0b => shown.push_str("\\v"),
            0x0c => shown.push_str("\\f"),
            b'\r' => shown.push_str("\\r"),
            b'"' | b'\\' => {
                shown.push('\\');
                shown.push(char::from(byte));
            }
            byte if plain(byte) => shown.push(char::from(byte)),
            // Writing to a `String` cannot fail.
            byte => write!(shown, "\\{byte:03o}").unwrap_or_default(),
        }
    }
    shown.push('"');
    shown
}

/// What becomes of a run of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Added,
    Removed,
}

/// Lines that share their fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    fate: Fate,
    count: usize,
    /// The first of them in the old text, or where it would be.
    old: usize,
    /// The same in the new text.
    new: usize,
}

/// A run on a path of the search, linked to the one before it.
#[derive(Clone, Copy)]
struct Component {
    fate: Fate,
    count: usize,
    before: usize,
}

/// How far a path has come in the old text, and its last run.
#[derive(Clone, Copy)]
struct Reach {
    old: usize,
    last: usize,
}

/// The greedy search by number of edits. On every diagonal it goes on from whichever neighbour came farther in the old
/// text, the removing one when they came equally far.
struct Greedy<'a> {
    old: &'a [&'a str],
    new: &'a [&'a str],
    components: Vec<Component>,
}

impl Greedy<'_> {
    fn push(&mut self, from: Reach, fate: Fate) -> Reach {
        let last = match self.components.get(from.last) {
            Some(last) if last.fate == fate => Component { count: last.count + 1, ..*last },
            Some(_) | None => Component { fate, count: 1, before: from.last },
        };
        self.components.push(last);
        let step = usize::from(fate == Fate::Removed);
        Reach { old: from.old + step, last: self.components.len() - 1 }
    }

    /// Follows equal lines; answers how far that leads in the new text.
    fn follow(&mut self, reach: &mut Reach, mut at_new: usize) -> usize {
        let mut count = 0;
        while reach.old < self.old.len() && at_new < self.new.len() && self.old[reach.old] == self.new[at_new]
        {
            reach.old += 1;
            at_new += 1;
            count += 1;
        }
        if count > 0 {
            self.components.push(Component { fate: Fate::Kept, count, before: reach.last });
            reach.last = self.components.len() - 1;
        }
        at_new
    }

    fn runs(&self, mut last: usize) -> Vec<Run> {
        let mut chain = Vec::new();
        while let Some(component) = self.components.get(last) {
            chain.push(*component);
            last = component.before;
        }
        let (mut old, mut new) = (0, 0);
        let run = |component: &Component| {
            let run = Run { fate: component.fate, count: component.count, old, new };
            match component.fate {
                Fate::Kept => (old, new) = (old + component.count, new + component.count),
                Fate::Added => new += component.count,
                Fate::Removed => old += component.count,
            }
            run
        };
        chain.iter().rev().map(run).collect()
    }
}

/// The runs that lead from one text to the other; nothing when that takes too many steps to find.
fn search(old: &[&str], new: &[&str]) -> Option<Vec<Run>> {
    let mut greedy = Greedy { old, new, components: Vec::new() };
    let mut start = Reach { old: 0, last: NONE };
    let reached = greedy.follow(&mut start, 0);
    if start.old >= old.len() && reached >= new.len() {
        return Some(greedy.runs(start.last));
    }
    // Diagonal `old - new` lies at `diagonal + middle`; one spare place on each side.
    let middle = new.len() + 1;
    let mut best: Vec<Option<Reach>> = vec![None; old.len() + new.len() + 3];
    best[middle] = Some(start);
    // Beyond a diagonal on which an edge was reached nothing can be shorter.
    let mut lowest = if reached >= new.len() { middle + 1 } else { 1 };
    let mut highest = if start.old >= old.len() { middle - 1 } else { old.len() + new.len() + 1 };
    let mut steps = 0;
    for edits in 1..=old.len() + new.len() {
        // An edge that was reached may shift which of every two diagonals are looked at; jsdiff does it so.
        let mut at = lowest.max(middle.saturating_sub(edits));
        while at <= highest.min(middle + edits) {
            steps += 1;
            if steps > STEPS_MAX {
                return None;
            }
            let (removing, adding) = (best[at - 1].take(), best[at + 1]);
            // Where an insertion from the diagonal above would put the next line of the new text.
            let new_at =
                |reach: &Reach| (reach.old + middle).checked_sub(at + 1).filter(|line| *line < new.len());
            let adding = adding.filter(|reach| new_at(reach).is_some());
            let removing = removing.filter(|reach| reach.old < old.len());
            let mut reach = match (removing, adding) {
                (None, None) => {
                    best[at] = None;
                    at += 2;
                    continue;
                }
                (Some(removing), Some(adding)) if removing.old < adding.old => {
                    greedy.push(adding, Fate::Added)
                }
                (Some(removing), _) => greedy.push(removing, Fate::Removed),
                (None, Some(adding)) => greedy.push(adding, Fate::Added),
            };
            let new_position = reach.old + middle - at;
            let reached = greedy.follow(&mut reach, new_position);
            if reach.old >= old.len() && reached >= new.len() {
                return Some(greedy.runs(reach.last));
            }
            best[at] = Some(reach);
            if reach.old >= old.len() {
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

/// The runs of the usual comparison.
fn usual(old: &[&str], new: &[&str]) -> Vec<Run> {
    let bytes = super::as_bytes;
    let mut runs = Vec::new();
    let (mut at_old, mut at_new) = (0, 0);
    let mut push = |fate, count, old, new| {
        if count > 0 {
            runs.push(Run { fate, count, old, new });
        }
    };
    for hunk in line_hunks(&bytes(old), &bytes(new)) {
        push(Fate::Kept, hunk.old.start - at_old, at_old, at_new);
        push(Fate::Removed, hunk.old.len(), hunk.old.start, hunk.new.start);
        push(Fate::Added, hunk.new.len(), hunk.old.end, hunk.new.start);
        (at_old, at_new) = (hunk.old.end, hunk.new.end);
    }
    push(Fate::Kept, old.len() - at_old, at_old, at_new);
    runs
}

/// Runs that share a header: changes that no more than twice the context lies between.
fn hunks(runs: &[Run]) -> impl Iterator<Item = &[Run]> {
    let parts = move |run: &Run| run.fate == Fate::Kept && run.count > 2 * CONTEXT_LINES;
    let trimmed = |group: &[Run]| {
        let first = group.iter().position(|run| run.fate != Fate::Kept);
        let last = group.iter().rposition(|run| run.fate != Fate::Kept);
        first.zip(last)
    };
    let mut groups = Vec::new();
    let mut start = 0;
    for end in (0..runs.len()).filter(|at| parts(&runs[*at])).chain([runs.len()]) {
        if let Some((first, last)) = trimmed(&runs[start..end]) {
            groups.push(&runs[start + first..=start + last]);
        }
        start = end + 1;
    }
    groups.into_iter()
}

fn write_hunk(text: &mut String, old: &[&str], new: &[&str], hunk: &[Run]) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return };
    let (old_end, new_end) = match last.fate {
        Fate::Added => (last.old, last.new + last.count),
        Fate::Removed | Fate::Kept => (last.old + last.count, last.new),
    };
    let before = first.old.min(first.new).min(CONTEXT_LINES).min(same_before(old, new, first));
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
        match run.fate {
            Fate::Kept => write_lines(text, ' ', &old[run.old..run.old + run.count]),
            Fate::Removed => write_lines(text, '-', &old[run.old..run.old + run.count]),
            Fate::Added => write_lines(text, '+', &new[run.new..run.new + run.count]),
        }
    }
    write_lines(text, ' ', &old[old_end..old_end + after]);
}

/// How many lines above a change are the same on both sides.
fn same_before(old: &[&str], new: &[&str], first: &Run) -> usize {
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

    fn body(old: &str, new: &str) -> String {
        let whole = patch("f", old, new);
        whole.strip_prefix(&format!("Index: f\n{RULE}\n--- f\n+++ f\n")).unwrap_or(&whole).to_owned()
    }

    #[test]
    fn both_counts_are_always_written() {
        for (old, new, expected) in [
            ("", "hi\n", "@@ -0,0 +1,1 @@\n+hi\n"),
            ("bye\n", "", "@@ -1,1 +0,0 @@\n-bye\n"),
            (
                "a",
                "m",
                "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+m\n\\ No newline at end of file\n",
            ),
            ("one\ntwo\n", "uno\ndos\n", "@@ -1,2 +1,2 @@\n-one\n-two\n+uno\n+dos\n"),
            ("a\nb\nc\nd\n", "A\nb\nc\nD\n", "@@ -1,4 +1,4 @@\n-a\n+A\n b\n c\n-d\n+D\n"),
            ("a\nB\nc\n", "TOP\na\nB\nc\n", "@@ -1,3 +1,4 @@\n+TOP\n a\n B\n c\n"),
            ("a\r\nb\r\n", "a\r\nB\r\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+B\r\n"),
            ("x\n", "x\n", ""),
        ] {
            assert_eq!(body(old, new), expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn distant_changes_have_headers_of_their_own() {
        let old: String = (1..=20).map(|line| format!("{line}\n")).collect();
        let near = old.replace("\n5\n", "\nV\n").replace("\n12\n", "\nXII\n");
        assert_eq!(body(&old, &near).matches("@@ -").count(), 1);
        let far = old.replace("\n5\n", "\nV\n").replace("\n13\n", "\nXIII\n");
        let shown = body(&old, &far);
        assert!(
            shown.starts_with("@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+V\n 6\n 7\n 8\n@@ -10,7 +10,7 @@\n"),
            "{shown}"
        );
    }

    #[test]
    fn names_are_quoted_below_the_index_line_only() {
        let shown = patch("é \"q\"", "a\n", "b\n");
        assert!(shown.starts_with("Index: é \"q\"\n"), "{shown}");
        assert!(shown.contains("\n--- \"\\303\\251 \\\"q\\\"\"\n+++ \"\\303\\251"), "{shown}");
    }

    #[test]
    fn texts_without_an_equal_line_do_not_hang() {
        let lines = |mark: &str| (0..6000).map(|line| format!("{mark}{line}\n")).collect::<String>();
        let shown = body(&lines("a"), &lines("b"));
        assert!(shown.starts_with("@@ -1,6000 +1,6000 @@\n-a0\n"));
    }

    /// The lines of one side that the runs stand for.
    fn side<'a>(runs: &[Run], lines: &[&'a str], own: Fate) -> Vec<&'a str> {
        let start = |run: &Run| if own == Fate::Removed { run.old } else { run.new };
        let of = |run: &Run| lines[start(run)..start(run) + run.count].to_vec();
        runs.iter().filter(|run| run.fate == Fate::Kept || run.fate == own).flat_map(of).collect()
    }

    proptest::proptest! {
        #[test]
        fn runs_lead_from_one_text_to_the_other(old in "([ab]\n|[ab]){0,14}", new in "([abc]\n|[ab]){0,14}") {
            let old: Vec<&str> = old.split_inclusive('\n').collect();
            let new: Vec<&str> = new.split_inclusive('\n').collect();
            for runs in search(&old, &new).into_iter().chain([usual(&old, &new)]) {
                proptest::prop_assert_eq!(side(&runs, &old, Fate::Removed), old.clone());
                proptest::prop_assert_eq!(side(&runs, &new, Fate::Added), new.clone());
            }
        }
    }
}
