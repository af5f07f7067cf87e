//! An index of the lines of a file, for the search for consecutive lines with each [`FuzzyTextMatchPass`]. Every
//! distinct line has a number, and the search compares numbers.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

use crate::lines;
use crate::locate::{FuzzyTextMatchPass, IndentationShift, replace_look_alikes};

/// The most lines that are compared to apply one patch to one file.
const WORK_MAX: usize = 20_000_000;

#[derive(Debug, Clone, Copy)]
pub(super) struct LineWithTerminator<'t> {
    pub(super) body: &'t str,
    pub(super) terminator: &'t str,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct LineToFind<'s> {
    pub(super) text: &'s str,
    /// An alternative text of the line, which matches as well as `text`.
    pub(super) alternative: Option<&'s str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineRunMatch {
    pub(super) start: usize,
    pub(super) indentation_shift: Option<IndentationShift>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PatchSearchBudgetExceeded;

pub(super) struct LineLookupIndex<'t> {
    pub(super) lines: Vec<LineWithTerminator<'t>>,
    pass_indexes: [OnceCell<LinePositionsByNormalizedText>; FuzzyTextMatchPass::ALL.len()],
    work: Cell<usize>,
}

struct LinePositionsByNormalizedText {
    number_by_line: HashMap<String, usize>,
    line_numbers: Vec<usize>,
    lines_by_number: Vec<Vec<usize>>,
}

impl<'t> LineLookupIndex<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let lines = lines::iter(text)
            .map(|line| {
                let (body, terminator) = lines::split_terminator(line);
                LineWithTerminator { body, terminator }
            })
            .collect();
        Self { lines, pass_indexes: Default::default(), work: Cell::new(0) }
    }

    pub(super) fn find_line_run(
        &self,
        pattern: &[LineToFind<'_>],
        pass: FuzzyTextMatchPass,
    ) -> Result<Vec<LineRunMatch>, PatchSearchBudgetExceeded> {
        let is_blank = pattern.iter().all(|line| line.text.trim().is_empty());
        if pattern.is_empty() || (is_blank && pass > FuzzyTextMatchPass::LineEndings) {
            return Ok(Vec::new());
        }
        let new_index = || LinePositionsByNormalizedText::new(&self.lines, pass);
        let index = self.pass_indexes[pass as usize].get_or_init(new_index);
        let mut pattern_numbers: Vec<[Option<usize>; 2]> = Vec::with_capacity(pattern.len());
        for line in pattern {
            let numbers = [Some(line.text), line.alternative].map(|text| index.line_number(text?, pass));
            if numbers == [None, None] {
                return Ok(Vec::new());
            }
            pattern_numbers.push(numbers);
        }
        let Some((rarest, starts)) = index.rarest_line(&pattern_numbers) else { return Ok(Vec::new()) };
        let mut hits = Vec::new();
        for start in starts.iter().filter_map(|at| at.checked_sub(rarest)) {
            if start + pattern.len() > self.lines.len() {
                break;
            }
            if self.matches_at(index, &pattern_numbers, start)?
                && let Some(indentation_shift) = self.shift_at(pattern, pass, start)
            {
                hits.push(LineRunMatch { start, indentation_shift });
            }
        }
        Ok(hits)
    }

    fn matches_at(
        &self,
        index: &LinePositionsByNormalizedText,
        pattern_numbers: &[[Option<usize>; 2]],
        start: usize,
    ) -> Result<bool, PatchSearchBudgetExceeded> {
        for (compared, numbers) in pattern_numbers.iter().enumerate() {
            let found = Some(index.line_numbers[start + compared]);
            if !numbers.contains(&found) {
                self.spend_budget(compared + 1)?;
                return Ok(false);
            }
        }
        self.spend_budget(pattern_numbers.len())?;
        Ok(true)
    }

    /// Returns the indentation shift of a match; `None` means that the shift differs between its lines.
    fn shift_at(
        &self,
        pattern: &[LineToFind<'_>],
        pass: FuzzyTextMatchPass,
        start: usize,
    ) -> Option<Option<IndentationShift>> {
        if pass != FuzzyTextMatchPass::Indentation {
            return Some(None);
        }
        let pairs = || {
            let pairs = pattern.iter().zip(&self.lines[start..]).filter(|(line, _)| !line.text.trim().is_empty());
            pairs.map(|(line, actual)| (indentation(line.text), indentation(actual.body)))
        };
        IndentationShift::from_uniform_difference(&pairs).map(Some)
    }

    fn spend_budget(&self, lines: usize) -> Result<(), PatchSearchBudgetExceeded> {
        self.work.set(self.work.get().saturating_add(lines));
        if self.work.get() > WORK_MAX { Err(PatchSearchBudgetExceeded) } else { Ok(()) }
    }
}

impl LinePositionsByNormalizedText {
    fn new(lines: &[LineWithTerminator<'_>], pass: FuzzyTextMatchPass) -> Self {
        let mut index = Self { number_by_line: HashMap::new(), line_numbers: Vec::new(), lines_by_number: Vec::new() };
        for (at, line) in lines.iter().enumerate() {
            let next = index.lines_by_number.len();
            let number = *index.number_by_line.entry(normalise_line(pass, line.body).into_owned()).or_insert(next);
            if number == next {
                index.lines_by_number.push(Vec::new());
            }
            index.lines_by_number[number].push(at);
            index.line_numbers.push(number);
        }
        index
    }

    fn line_number(&self, text: &str, pass: FuzzyTextMatchPass) -> Option<usize> {
        self.number_by_line.get(normalise_line(pass, text).as_ref()).copied()
    }

    fn rarest_line(&self, pattern_numbers: &[[Option<usize>; 2]]) -> Option<(usize, Vec<usize>)> {
        let occurrence_count = |numbers: &[Option<usize>; 2]| -> usize {
            numbers.iter().flatten().map(|number| self.lines_by_number[*number].len()).sum()
        };
        let (rarest, numbers) =
            pattern_numbers.iter().enumerate().min_by_key(|(_, numbers)| occurrence_count(numbers))?;
        let mut lines: Vec<usize> =
            numbers.iter().flatten().flat_map(|number| &self.lines_by_number[*number]).copied().collect();
        lines.sort_unstable();
        lines.dedup();
        Some((rarest, lines))
    }
}

fn normalise_line(pass: FuzzyTextMatchPass, body: &str) -> Cow<'_, str> {
    match pass {
        FuzzyTextMatchPass::Exact | FuzzyTextMatchPass::LineEndings => Cow::Borrowed(body),
        FuzzyTextMatchPass::TrailingSpace => Cow::Borrowed(body.trim_end_matches([' ', '\t'])),
        FuzzyTextMatchPass::LookAlike => Cow::Owned(replace_look_alikes(body)),
        FuzzyTextMatchPass::Indentation => Cow::Owned(replace_look_alikes(&body[indentation(body).len()..])),
    }
}

fn indentation(body: &str) -> &str {
    &body[..body.len() - body.trim_start_matches([' ', '\t']).len()]
}
