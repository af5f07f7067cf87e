//! Rebuilds a text from its own lines and new ones. Owns the terminators of new lines and the end of the text.
//! Promises that an unchanged line keeps its bytes, except that the last one gets a terminator if a line follows it.

use std::collections::BTreeMap;

use super::interpretations::StatedTerminator;
use super::line_index::FileLine;

/// The end of a text after its last line was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileEndRule {
    /// New last lines end with a newline, unless they follow an unchanged line without one.
    FromPatch,
    /// As before, unless the patch says otherwise.
    FromFile,
}

#[derive(Debug, Clone)]
pub(super) struct InsertedLine {
    pub(super) text: String,
    pub(super) terminator: &'static str,
    pub(super) stated_terminator: StatedTerminator,
    /// Whether its chunk has a no-newline marker.
    pub(super) is_explicit: bool,
}

#[derive(Debug)]
pub(super) struct LineEdits {
    /// The chunk that removes each line.
    pub(super) removed_by: Vec<Option<usize>>,
    /// The chunk that quotes each line.
    pub(super) quoted_by: Vec<Option<usize>>,
    /// The lines inserted before each line, after the last one, and after those.
    pub(super) inserted: BTreeMap<usize, Vec<InsertedLine>>,
}

struct OutputLine<'a> {
    text: &'a str,
    terminator: &'a str,
    new: Option<&'a InsertedLine>,
}

impl LineEdits {
    pub(super) fn new(lines: usize) -> Self {
        Self { removed_by: vec![None; lines], quoted_by: vec![None; lines], inserted: BTreeMap::new() }
    }

    pub(super) fn added_count(&self) -> usize {
        self.inserted.values().map(Vec::len).sum()
    }

    pub(super) fn removed_count(&self) -> usize {
        self.removed_by.iter().flatten().count()
    }

    pub(super) fn text(&self, lines: &[FileLine<'_>], ending: FileEndRule) -> String {
        let mut out: Vec<OutputLine<'_>> = Vec::with_capacity(lines.len() + self.added_count());
        for at in 0..=lines.len() + 1 {
            for new in self.inserted.get(&at).into_iter().flatten() {
                out.push(OutputLine { text: &new.text, terminator: new.terminator, new: Some(new) });
            }
            if let Some(line) = lines.get(at).filter(|_| self.removed_by[at].is_none()) {
                out.push(OutputLine { text: line.body, terminator: line.terminator, new: None });
            }
        }
        let default = default_terminator(lines);
        let mut before = default;
        let last = out.len().saturating_sub(1);
        for line in out.iter_mut().take(last) {
            if line.terminator.is_empty() {
                line.terminator = before;
            }
            before = line.terminator;
        }
        if let Some(line) = out.last_mut() {
            line.terminator = self.last_terminator(line, lines, ending);
        }
        out.iter().flat_map(|line| [line.text, line.terminator]).collect()
    }

    fn last_terminator<'a>(&self, line: &OutputLine<'a>, lines: &[FileLine<'_>], ending: FileEndRule) -> &'a str {
        let open = lines.last().is_some_and(|line| line.terminator.is_empty());
        let replaced = self.removed_by.last().is_some_and(Option::is_some);
        match (line.new, ending) {
            (Some(new), _) if new.is_explicit => {
                if new.stated_terminator == StatedTerminator::NoNewline {
                    ""
                } else {
                    line.terminator
                }
            }
            (Some(_), FileEndRule::FromPatch) if open && !replaced => "",
            (Some(_) | None, FileEndRule::FromFile) if open => "",
            (Some(_) | None, FileEndRule::FromPatch | FileEndRule::FromFile) => line.terminator,
        }
    }
}

/// The terminator for a new line without a terminated neighbour.
pub(super) fn default_terminator(lines: &[FileLine<'_>]) -> &'static str {
    lines.iter().map(|line| line.terminator).find_map(static_terminator).unwrap_or("\n")
}

/// The terminator as a constant; `None` if it is none.
pub(super) fn static_terminator(terminator: &str) -> Option<&'static str> {
    match terminator {
        "\n" => Some("\n"),
        "\r\n" => Some("\r\n"),
        "\r" => Some("\r"),
        _ => None,
    }
}
