//! Which lines of the new text a change touched, as far as both texts are still kept and small. Where a change only
//! took lines away, the line that now stands in their place is named.

use journal::{Change, State};
use text::{
    diff::hunks,
    encoding::{Detected, decode, detect},
    lines::count,
};

use crate::{failure::Failure, limits, version::Version, workspace::Workspace};

/// Finds line ranges, within a budget for one answer.
pub(in crate::ops) struct Ranges<'a> {
    workspace: &'a dyn Workspace,
    left_bytes: u64,
}

impl<'a> Ranges<'a> {
    pub(in crate::ops) fn new(workspace: &'a dyn Workspace) -> Self {
        Self { workspace, left_bytes: limits::CHANGES_COMPARED_BYTES_MAX }
    }

    /// The lines a change touched, first and last, from 1; nothing when that is not known.
    pub(in crate::ops) fn of(&mut self, change: &Change) -> Result<Option<Vec<[usize; 2]>>, Failure> {
        // A move or a copy touches no line.
        if change.to.is_some() {
            return Ok(None);
        }
        let Some(new) = self.text(&change.after)? else { return Ok(None) };
        let old = match &change.before {
            State::Absent => Some(String::new()),
            State::File { .. } => self.text(&change.before)?,
            State::Directory { .. } | State::Link { .. } | State::Tree { .. } | State::Unknown { .. } => None,
        };
        Ok(old.map(|old| between(&old, &new)))
    }

    fn text(&mut self, state: &State) -> Result<Option<String>, Failure> {
        let (version, size) = match state {
            State::File { version, size, .. } => (Version(*version), *size),
            State::Absent
            | State::Directory { .. }
            | State::Link { .. }
            | State::Tree { .. }
            | State::Unknown { .. } => return Ok(None),
        };
        let Some(left) = self.left_bytes.checked_sub(size) else { return Ok(None) };
        let Some(bytes) = self.workspace.kept(&version)? else { return Ok(None) };
        self.left_bytes = left;
        Ok(match detect(&bytes) {
            Detected::Text { encoding } => decode(&bytes, encoding).ok().map(std::borrow::Cow::into_owned),
            Detected::Binary => None,
        })
    }
}

fn between(old: &str, new: &str) -> Vec<[usize; 2]> {
    let total = count(new.as_bytes());
    let mut ranges: Vec<[usize; 2]> = Vec::new();
    for hunk in hunks(old, new) {
        let last = hunk.new.end.max(hunk.new.start + 1).min(total);
        let first = (hunk.new.start + 1).min(last);
        match ranges.last_mut() {
            Some(range) if range[1] + 1 >= first => range[1] = last,
            Some(_) | None => ranges.push([first, last]),
        }
        if ranges.len() > limits::CHANGES_RANGES_MAX {
            merge_last(&mut ranges);
        }
    }
    ranges
}

/// Makes one range of the last two: coarse but true, where a missing one would not be.
fn merge_last(ranges: &mut Vec<[usize; 2]>) {
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
    fn ranges_name_lines_of_the_new_text() {
        for (old, new, expected) in [
            ("", "a\nb\n", vec![[1, 2]]),
            ("a\nb\nc\n", "a\nB\nc\n", vec![[2, 2]]),
            ("a\nb\nc\n", "a\nc\n", vec![[2, 2]]),
            ("a\nb\n", "a\n", vec![[1, 1]]),
            ("a\n", "", vec![[0, 0]]),
            ("a\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n", vec![[1, 1], [5, 5]]),
            ("a\n", "a\n", vec![]),
        ] {
            assert_eq!(between(old, new), expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn too_many_ranges_end_in_a_coarse_one() {
        let old: String = (0..400).map(|line| format!("{line}\n")).collect();
        let new: String = (0..400)
            .map(|line| if line % 4 == 0 { format!("x{line}\n") } else { format!("{line}\n") })
            .collect();
        let ranges = between(&old, &new);
        assert_eq!(ranges.len(), limits::CHANGES_RANGES_MAX);
        assert_eq!(ranges.last().unwrap()[1], 397);
    }
}
