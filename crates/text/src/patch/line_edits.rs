//! Builds the patched text from the old lines that the patch keeps and the lines that the patch inserts. An unchanged
//! line keeps its bytes, except that a line before an inserted line gets a missing terminator.

use std::collections::BTreeMap;

use super::apply::PatchChunkMatching;
use super::interpretations::PatchStatedLineTerminator;
use super::line_index::LineWithTerminator;

#[derive(Debug, Clone)]
pub(super) struct PatchInsertedLine {
    pub(super) text: String,
    pub(super) terminator: &'static str,
    pub(super) stated_terminator: PatchStatedLineTerminator,
    /// Whether the chunk that inserts the line contains a marker `\ No newline at end of file`.
    pub(super) is_explicit: bool,
}

#[derive(Debug)]
pub(super) struct PatchLineEdits {
    /// For each line of the text, the index of the chunk that removes the line.
    pub(super) removed_by: Vec<Option<usize>>,
    /// For each line of the text, the index of the last chunk that quotes the line.
    pub(super) quoted_by: Vec<Option<usize>>,
    /// The inserted lines, by the index of the line of the text that they precede. In a text of n lines, index n holds
    /// the lines that follow the last line. In a text of n lines, index n + 1 holds the lines that chunks without
    /// context append.
    pub(super) inserted: BTreeMap<usize, Vec<PatchInsertedLine>>,
}

struct PatchedOutputLine<'a> {
    text: &'a str,
    terminator: &'a str,
    new: Option<&'a PatchInsertedLine>,
}

impl PatchLineEdits {
    pub(super) fn new(lines: usize) -> Self {
        Self { removed_by: vec![None; lines], quoted_by: vec![None; lines], inserted: BTreeMap::new() }
    }

    pub(super) fn added_count(&self) -> usize {
        self.inserted.values().map(Vec::len).sum()
    }

    pub(super) fn removed_count(&self) -> usize {
        self.removed_by.iter().flatten().count()
    }

    pub(super) fn text(&self, lines: &[LineWithTerminator<'_>], matching: PatchChunkMatching) -> String {
        let mut out: Vec<PatchedOutputLine<'_>> = Vec::with_capacity(lines.len() + self.added_count());
        for at in 0..=lines.len() + 1 {
            for new in self.inserted.get(&at).into_iter().flatten() {
                out.push(PatchedOutputLine { text: &new.text, terminator: new.terminator, new: Some(new) });
            }
            if let Some(line) = lines.get(at).filter(|_| self.removed_by[at].is_none()) {
                out.push(PatchedOutputLine { text: line.body, terminator: line.terminator, new: None });
            }
        }
        let mut previous = default_terminator(lines);
        let last = out.len().saturating_sub(1);
        for line in out.iter_mut().take(last) {
            if line.terminator.is_empty() {
                line.terminator = previous;
            }
            previous = line.terminator;
        }
        if let Some(line) = out.last_mut() {
            line.terminator = self.last_terminator(line, lines, matching);
        }
        out.iter().flat_map(|line| [line.text, line.terminator]).collect()
    }

    fn last_terminator<'a>(
        &self,
        line: &PatchedOutputLine<'a>,
        lines: &[LineWithTerminator<'_>],
        matching: PatchChunkMatching,
    ) -> &'a str {
        let lacked_newline = lines.last().is_some_and(|line| line.terminator.is_empty());
        let was_replaced = self.removed_by.last().is_some_and(Option::is_some);
        let ends_without = match (line.new, matching) {
            (Some(new), _) if new.is_explicit => new.stated_terminator == PatchStatedLineTerminator::NoNewline,
            (Some(_), PatchChunkMatching::Tolerant) => lacked_newline && !was_replaced,
            (None, PatchChunkMatching::Tolerant) => false,
            (Some(_) | None, PatchChunkMatching::Strict) => lacked_newline,
        };
        if ends_without { "" } else { line.terminator }
    }
}

pub(super) fn default_terminator(lines: &[LineWithTerminator<'_>]) -> &'static str {
    lines.iter().map(|line| line.terminator).find_map(static_terminator).unwrap_or("\n")
}

pub(super) fn static_terminator(terminator: &str) -> Option<&'static str> {
    match terminator {
        "\n" => Some("\n"),
        "\r\n" => Some("\r\n"),
        "\r" => Some("\r"),
        _ => None,
    }
}
