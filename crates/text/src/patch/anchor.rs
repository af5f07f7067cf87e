//! Finds anchors, the texts after `@@`, in a file. A chunk is searched in the block below its anchor, such as a
//! function body. If the block does not contain the chunk, all lines up to the next occurrence of the anchor are
//! searched.

use crate::locate::FuzzyTextMatchPass;

use super::line_index::{LineLookupIndex, LineToFind, PatchSearchBudgetExceeded};

#[derive(Debug, Clone, Copy)]
pub(super) struct PatchAnchorMatch {
    /// The 0-based line of the text where the anchor was found.
    pub(super) line: usize,
    /// The scope of an anchor ends at its next position or at the end of the outer scope.
    scope_end: usize,
}

pub(super) struct PatchAnchorFinder<'i, 't> {
    index: &'i LineLookupIndex<'t>,
    passes: &'static [FuzzyTextMatchPass],
}

impl<'i, 't> PatchAnchorFinder<'i, 't> {
    pub(super) fn new(index: &'i LineLookupIndex<'t>, passes: &'static [FuzzyTextMatchPass]) -> Self {
        Self { index, passes }
    }

    /// Finds the positions of the last of `anchors`, which are listed outermost first.
    pub(super) fn find_nested(&self, anchors: &[String]) -> Result<Vec<PatchAnchorMatch>, PatchSearchBudgetExceeded> {
        let mut outer: Option<Vec<PatchAnchorMatch>> = None;
        for anchor in anchors {
            outer = Some(self.find_within(anchor, outer.as_deref())?);
        }
        Ok(outer.unwrap_or_default())
    }

    /// Returns the first anchor that is not in the text or, if all are in the text, the last anchor.
    pub(super) fn first_missing<'a>(&self, anchors: &'a [String]) -> Option<&'a String> {
        let is_missing = |anchor: &&String| self.find_within(anchor, None).is_ok_and(|anchored| anchored.is_empty());
        anchors.iter().find(is_missing).or(anchors.last())
    }

    /// If no line equals the anchor, all lines that start with the text of the anchor match.
    fn find_within(
        &self,
        anchor: &str,
        outer: Option<&[PatchAnchorMatch]>,
    ) -> Result<Vec<PatchAnchorMatch>, PatchSearchBudgetExceeded> {
        for &pass in self.passes {
            let hits = self.index.find_line_run(&[LineToFind { text: anchor, alternative: None }], pass)?;
            let lines: Vec<usize> = hits.iter().map(|hit| hit.start).collect();
            let found = self.matches_in_scopes(outer, &lines);
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let begins = |at: &usize| self.index.lines[*at].body.trim_start().starts_with(anchor.trim());
        let lines: Vec<usize> = (0..self.index.lines.len()).filter(begins).collect();
        Ok(self.matches_in_scopes(outer, &lines))
    }

    fn matches_in_scopes(&self, outer: Option<&[PatchAnchorMatch]>, lines: &[usize]) -> Vec<PatchAnchorMatch> {
        match outer {
            None => split_into_scopes(lines, self.index.lines.len()).collect(),
            Some(outer) => outer
                .iter()
                .flat_map(|above| split_into_scopes(self.lines_below(above, above.line + 1, lines), above.scope_end))
                .collect(),
        }
    }

    /// Returns those of `lines` from the line `first` on that are in the block below an anchor, or in the anchor's scope
    /// if the block has none.
    pub(super) fn lines_below<'l>(&self, above: &PatchAnchorMatch, first: usize, lines: &'l [usize]) -> &'l [usize] {
        let from = lines.partition_point(|line| *line < first);
        let to = lines.partition_point(|line| *line < above.scope_end).max(from);
        let below = &lines[from..to];
        let (Some(last), 2..) = (below.last(), below.len()) else { return below };
        let scope = self.scope_end(above.line, *last);
        match below.partition_point(|line| *line < scope) {
            0 => below,
            inside => &below[..inside],
        }
    }

    /// The block of an anchor ends at the first line that is not blank, not deeper indented, and not a bracket.
    fn scope_end(&self, anchor: usize, last: usize) -> usize {
        const BRACKETS: [char; 4] = ['}', ')', ']', '{'];
        let depth = |body: &str| body.len() - body.trim_start().len();
        let lines = &self.index.lines;
        let outer = depth(lines[anchor].body);
        let ends_block = |at: &usize| {
            let body = lines[*at].body;
            !body.trim().is_empty() && depth(body) <= outer && !body.trim_start().starts_with(BRACKETS)
        };
        (anchor + 1..=last).find(ends_block).unwrap_or(last + 1)
    }
}

/// The scope of each anchor position ends where the next position begins.
fn split_into_scopes(lines: &[usize], end: usize) -> impl Iterator<Item = PatchAnchorMatch> {
    let ends = lines.iter().skip(1).copied().chain(std::iter::once(end));
    lines.iter().zip(ends).map(|(line, end)| PatchAnchorMatch { line: *line, scope_end: end })
}
