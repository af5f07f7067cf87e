//! Index of the lines of a file: equal lines have equal numbers. Owns the comparison of whole lines under each
//! [`MatchPass`] and the search for a run of them. Promises time bounded by [`WORK_MAX`], however often lines repeat.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::ops::Range;

use crate::lines;
use crate::locate::{IndentationShift, MatchPass, replace_look_alikes};

/// The most lines compared for one patch of one file.
const WORK_MAX: usize = 20_000_000;

#[derive(Debug, Clone, Copy)]
pub(super) struct FileLine<'t> {
    /// The line without its terminator.
    pub(super) body: &'t str,
    /// Empty at the end of an unterminated text.
    pub(super) terminator: &'t str,
}

/// A line to search for.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinePattern<'s> {
    pub(super) text: &'s str,
    /// An alternative text.
    pub(super) alternative: Option<&'s str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineRunMatch {
    pub(super) start: usize,
    pub(super) indentation_shift: Option<IndentationShift>,
}

/// The search exceeded [`WORK_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SearchBudgetExceeded;

pub(super) struct LineIndex<'t> {
    pub(super) lines: Vec<FileLine<'t>>,
    pass_indexes: [OnceCell<PassIndex>; 4],
    work: Cell<usize>,
}

/// The lines as compared by one pass.
struct PassIndex {
    number_by_line: HashMap<String, usize>,
    line_numbers: Vec<usize>,
    /// The lines of each number, in order.
    lines_by_number: Vec<Vec<usize>>,
}

impl<'t> LineIndex<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let lines = lines::iter(text)
            .map(|line| {
                let (body, terminator) = lines::split_terminator(line);
                FileLine { body, terminator }
            })
            .collect();
        Self { lines, pass_indexes: Default::default(), work: Cell::new(0) }
    }

    /// Every position of the lines that starts within `within`, in order.
    pub(super) fn find_line_run(
        &self,
        pattern: &[LinePattern<'_>],
        pass: MatchPass,
        within: &Range<usize>,
    ) -> Result<Vec<LineRunMatch>, SearchBudgetExceeded> {
        let is_blank = pattern.iter().all(|line| line.text.trim().is_empty());
        if pattern.is_empty() || (is_blank && pass > MatchPass::LineEndings) {
            return Ok(Vec::new());
        }
        let layer = self.pass_index(pass);
        let mut pattern_numbers: Vec<[Option<usize>; 2]> = Vec::with_capacity(pattern.len());
        for line in pattern {
            let numbers = [Some(line.text), line.alternative].map(|text| layer.line_number(text?, pass));
            if numbers == [None, None] {
                return Ok(Vec::new());
            }
            pattern_numbers.push(numbers);
        }
        let Some((rarest, starts)) = layer.rarest_line(&pattern_numbers) else { return Ok(Vec::new()) };
        let mut hits = Vec::new();
        let first = starts.partition_point(|&at| at < within.start + rarest);
        for start in starts[first..].iter().map(|at| at - rarest) {
            if start >= within.end || start + pattern.len() > self.lines.len() {
                break;
            }
            if self.matches_at(layer, &pattern_numbers, start)?
                && let Some(delta) = self.shift_at(pattern, pass, start)
            {
                hits.push(LineRunMatch { start, indentation_shift: delta });
            }
        }
        Ok(hits)
    }

    fn matches_at(
        &self,
        layer: &PassIndex,
        pattern_numbers: &[[Option<usize>; 2]],
        start: usize,
    ) -> Result<bool, SearchBudgetExceeded> {
        for (compared, numbers) in pattern_numbers.iter().enumerate() {
            let found = Some(layer.line_numbers[start + compared]);
            if !numbers.contains(&found) {
                self.spend_budget(compared + 1)?;
                return Ok(false);
            }
        }
        self.spend_budget(pattern_numbers.len())?;
        Ok(true)
    }

    /// The indentation shift; the outer `None` if it is not uniform.
    fn shift_at(&self, pattern: &[LinePattern<'_>], pass: MatchPass, start: usize) -> Option<Option<IndentationShift>> {
        match pass {
            MatchPass::Exact | MatchPass::LineEndings | MatchPass::TrailingSpace | MatchPass::LookAlike => Some(None),
            MatchPass::Indentation => {
                let pairs = || {
                    pattern
                        .iter()
                        .zip(&self.lines[start..])
                        .filter(|(line, _)| !line.text.trim().is_empty())
                        .map(|(line, there)| (indentation(line.text), indentation(there.body)))
                };
                IndentationShift::from_uniform_difference(&pairs).map(Some)
            }
        }
    }

    fn spend_budget(&self, lines: usize) -> Result<(), SearchBudgetExceeded> {
        self.work.set(self.work.get().saturating_add(lines));
        if self.work.get() > WORK_MAX { Err(SearchBudgetExceeded) } else { Ok(()) }
    }

    fn pass_index(&self, pass: MatchPass) -> &PassIndex {
        let at = match pass {
            MatchPass::Exact | MatchPass::LineEndings => 0,
            MatchPass::TrailingSpace => 1,
            MatchPass::LookAlike => 2,
            MatchPass::Indentation => 3,
        };
        self.pass_indexes[at].get_or_init(|| PassIndex::new(&self.lines, pass))
    }
}

impl PassIndex {
    fn new(lines: &[FileLine<'_>], pass: MatchPass) -> Self {
        let mut layer = Self { number_by_line: HashMap::new(), line_numbers: Vec::new(), lines_by_number: Vec::new() };
        for (at, line) in lines.iter().enumerate() {
            let next = layer.lines_by_number.len();
            let number = *layer.number_by_line.entry(normalise_line(pass, line.body).into_owned()).or_insert(next);
            if number == next {
                layer.lines_by_number.push(Vec::new());
            }
            layer.lines_by_number[number].push(at);
            layer.line_numbers.push(number);
        }
        layer
    }

    fn line_number(&self, text: &str, pass: MatchPass) -> Option<usize> {
        self.number_by_line.get(normalise_line(pass, text).as_ref()).copied()
    }

    /// The line of the pattern with the fewest occurrences, and those.
    fn rarest_line(&self, pattern_numbers: &[[Option<usize>; 2]]) -> Option<(usize, Vec<usize>)> {
        let occurrence_count = |numbers: &[Option<usize>; 2]| -> usize {
            numbers.iter().flatten().map(|number| self.lines_by_number[*number].len()).sum()
        };
        let (rarest, numbers) =
            pattern_numbers.iter().enumerate().min_by_key(|(_, numbers)| occurrence_count(numbers))?;
        let mut at: Vec<usize> =
            numbers.iter().flatten().flat_map(|number| &self.lines_by_number[*number]).copied().collect();
        at.sort_unstable();
        at.dedup();
        Some((rarest, at))
    }
}

/// A line as a pass compares it.
fn normalise_line(pass: MatchPass, body: &str) -> Cow<'_, str> {
    match pass {
        MatchPass::Exact | MatchPass::LineEndings => Cow::Borrowed(body),
        MatchPass::TrailingSpace => Cow::Borrowed(body.trim_end_matches([' ', '\t'])),
        MatchPass::LookAlike => Cow::Owned(replace_look_alikes(body)),
        MatchPass::Indentation => Cow::Owned(replace_look_alikes(&body[indentation(body).len()..])),
    }
}

fn indentation(body: &str) -> &str {
    &body[..body.len() - body.trim_start_matches([' ', '\t']).len()]
}
