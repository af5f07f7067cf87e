//! Finds the lines of a file that a recorded change touched, by comparing the old and the new version. Deleted lines
//! are reported as the line after the deletion.

use std::borrow::Cow;

use stead_journal::{PathState, RecordedChange};
use stead_path::RelPath;
use stead_text::{diff::hunks, lines::count_lines};

use super::{decode_diff_text, visible_change::recorded_file};
use crate::{errors::Error, limits, workspace_reader::WorkspaceReader};

pub(in crate::ops) struct ChangedLineFinder<'a> {
    workspace: &'a WorkspaceReader<'a>,
    budget_bytes: u64,
}

impl<'a> ChangedLineFinder<'a> {
    pub(in crate::ops) fn new(workspace: &'a WorkspaceReader<'a>) -> Self {
        Self { workspace, budget_bytes: limits::CHANGES_DIFF_BYTES_MAX }
    }

    /// Returns pairs of the first and the last changed line; `None` means that the changed lines are unknown.
    pub(in crate::ops) fn changed_ranges(&mut self, change: &RecordedChange) -> Result<Option<Vec<[usize; 2]>>, Error> {
        // A move or copy changes no lines.
        let (None, Ok(path)) = (&change.to, RelPath::from_wire(&change.path)) else { return Ok(None) };
        let Some(new) = self.retained_text(&path, &change.after)? else { return Ok(None) };
        let old = match &change.before {
            PathState::Absent => Some(String::new()),
            PathState::File { .. } => self.retained_text(&path, &change.before)?,
            PathState::Directory { .. }
            | PathState::Link { .. }
            | PathState::Tree { .. }
            | PathState::Unknown { .. } => None,
        };
        Ok(old.map(|old| line_ranges_between(&old, &new)))
    }

    fn retained_text(&mut self, path: &RelPath, state: &PathState) -> Result<Option<String>, Error> {
        let Some(file) = recorded_file(state) else { return Ok(None) };
        let Some(remaining) = self.budget_bytes.checked_sub(file.size) else { return Ok(None) };
        let Some(bytes) = self.workspace.retained_bytes(path, &file.version)? else { return Ok(None) };
        self.budget_bytes = remaining;
        Ok(decode_diff_text(&bytes).map(Cow::into_owned))
    }
}

fn line_ranges_between(old: &str, new: &str) -> Vec<[usize; 2]> {
    let total = count_lines(new.as_bytes());
    let mut ranges: Vec<[usize; 2]> = Vec::new();
    for hunk in hunks(old, new) {
        let last = hunk.new.end.max(hunk.new.start + 1).min(total);
        let first = (hunk.new.start + 1).min(last);
        match ranges.last_mut() {
            Some(range) if range[1] + 1 >= first => range[1] = last,
            Some(_) | None => ranges.push([first, last]),
        }
        if ranges.len() > limits::CHANGES_RANGES_MAX {
            merge_excess_ranges(&mut ranges);
        }
    }
    ranges
}

fn merge_excess_ranges(ranges: &mut Vec<[usize; 2]>) {
    if let Some(last) = ranges.pop()
        && let Some(range) = ranges.last_mut()
    {
        range[1] = last[1];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_use_new_line_numbers() {
        for (old, new, expected) in [
            ("", "a\nb\n", vec![[1, 2]]),
            ("a\nb\nc\n", "a\nB\nc\n", vec![[2, 2]]),
            ("a\nb\nc\n", "a\nc\n", vec![[2, 2]]),
            ("a\nb\n", "a\n", vec![[1, 1]]),
            ("a\n", "", vec![[0, 0]]),
            ("a\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n", vec![[1, 1], [5, 5]]),
            ("a\n", "a\n", vec![]),
        ] {
            assert_eq!(line_ranges_between(old, new), expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn excess_ranges_are_merged_into_the_last() {
        let old: String = (0..400).map(|line| format!("{line}\n")).collect();
        let new: String =
            (0..400).map(|line| if line % 4 == 0 { format!("x{line}\n") } else { format!("{line}\n") }).collect();
        let ranges = line_ranges_between(&old, &new);
        assert_eq!(ranges.len(), limits::CHANGES_RANGES_MAX);
        assert_eq!(ranges.last().unwrap()[1], 397);
    }
}
