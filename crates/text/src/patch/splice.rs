//! A text put together again from its own lines and new ones. Owns the terminators of new lines and the end of the
//! text. Promises that a line which stays keeps its bytes, save that the last one gets a terminator when something
//! comes behind it.

use std::collections::BTreeMap;

use super::index::FileLine;
use super::rescue::Said;

/// How a text ends once its last line was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// New last lines end with a newline, unless the line they come behind does not and stays.
    OfPatch,
    /// As before, unless the patch says otherwise.
    OfFile,
}

/// A line that comes.
#[derive(Debug, Clone)]
pub(super) struct NewLine {
    pub(super) text: String,
    pub(super) terminator: &'static str,
    pub(super) said: Said,
    /// Whether its chunk speaks of missing newlines at all.
    pub(super) outspoken: bool,
}

/// What becomes of the lines of a file.
#[derive(Debug)]
pub(super) struct Splice {
    /// Which chunk takes each line away.
    pub(super) removed_by: Vec<Option<usize>>,
    /// Which chunk quotes each line.
    pub(super) quoted_by: Vec<Option<usize>>,
    /// What comes before each line, behind the last one, and behind that.
    pub(super) inserted: BTreeMap<usize, Vec<NewLine>>,
}

/// A line of the result.
struct Out<'a> {
    text: &'a str,
    terminator: &'a str,
    new: Option<&'a NewLine>,
}

impl Splice {
    pub(super) fn new(lines: usize) -> Self {
        Self { removed_by: vec![None; lines], quoted_by: vec![None; lines], inserted: BTreeMap::new() }
    }

    pub(super) fn added(&self) -> usize {
        self.inserted.values().map(Vec::len).sum()
    }

    pub(super) fn removed(&self) -> usize {
        self.removed_by.iter().flatten().count()
    }

    /// The result.
    pub(super) fn text(&self, lines: &[FileLine<'_>], ending: Ending) -> String {
        let mut out: Vec<Out<'_>> = Vec::with_capacity(lines.len() + self.added());
        for at in 0..=lines.len() + 1 {
            for new in self.inserted.get(&at).into_iter().flatten() {
                out.push(Out { text: &new.text, terminator: new.terminator, new: Some(new) });
            }
            if let Some(line) = lines.get(at).filter(|_| self.removed_by[at].is_none()) {
                out.push(Out { text: line.body, terminator: line.terminator, new: None });
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

    fn last_terminator<'a>(&self, line: &Out<'a>, lines: &[FileLine<'_>], ending: Ending) -> &'a str {
        let open = lines.last().is_some_and(|line| line.terminator.is_empty());
        let replaced = self.removed_by.last().is_some_and(Option::is_some);
        match (line.new, ending) {
            (Some(new), _) if new.outspoken => {
                if new.said == Said::Missing {
                    ""
                } else {
                    line.terminator
                }
            }
            (Some(_), Ending::OfPatch) if open && !replaced => "",
            (Some(_) | None, Ending::OfFile) if open => "",
            (Some(_) | None, Ending::OfPatch | Ending::OfFile) => line.terminator,
        }
    }
}

/// The terminator for a new line that has no neighbour with one.
pub(super) fn default_terminator(lines: &[FileLine<'_>]) -> &'static str {
    lines.iter().map(|line| line.terminator).find_map(constant).unwrap_or("\n")
}

/// A terminator as a constant; nothing for none.
pub(super) fn constant(terminator: &str) -> Option<&'static str> {
    match terminator {
        "\n" => Some("\n"),
        "\r\n" => Some("\r\n"),
        "\r" => Some("\r"),
        _ => None,
    }
}
