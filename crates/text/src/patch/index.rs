//! The lines of a file, numbered so that equal ones have equal numbers. Owns the comparison of whole lines under each
//! [`Pass`] and the search for a run of them. Promises time bounded by [`WORK_MAX`], whatever the text repeats.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::ops::Range;

use crate::lines;
use crate::locate::{Delta, Pass, plain_body};

/// The most lines compared for one patch of one file.
const WORK_MAX: usize = 20_000_000;

/// One line of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileLine<'t> {
    /// Without its terminator.
    pub(super) body: &'t str,
    /// Empty at the end of an unterminated text.
    pub(super) terminator: &'t str,
}

/// A line that is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sought<'s> {
    pub(super) text: &'s str,
    /// What it may be as well.
    pub(super) other: Option<&'s str>,
}

/// Where a run of lines starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hit {
    /// The 0-based line.
    pub(super) start: usize,
    /// How its indentation differs.
    pub(super) delta: Option<Delta>,
}

/// More work than is worth it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exhausted;

/// The lines of a text, ready to be searched many times.
pub(super) struct Index<'t> {
    pub(super) lines: Vec<FileLine<'t>>,
    layers: [OnceCell<Layer>; 4],
    work: Cell<usize>,
}

/// The lines under one pass.
struct Layer {
    numbers: HashMap<String, usize>,
    /// The number of each line.
    of_line: Vec<usize>,
    /// The lines of each number, in order.
    places: Vec<Vec<usize>>,
}

impl<'t> Index<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let lines = lines::iter(text)
            .map(|line| {
                let (body, terminator) = lines::split_terminator(line);
                FileLine { body, terminator }
            })
            .collect();
        Self { lines, layers: Default::default(), work: Cell::new(0) }
    }

    /// Every place where the lines stand and start within `within`, in order.
    pub(super) fn find(
        &self,
        sought: &[Sought<'_>],
        pass: Pass,
        within: &Range<usize>,
    ) -> Result<Vec<Hit>, Exhausted> {
        let is_blank = sought.iter().all(|line| line.text.trim().is_empty());
        if sought.is_empty() || (is_blank && pass > Pass::Endings) {
            return Ok(Vec::new());
        }
        let layer = self.layer(pass);
        let mut wanted: Vec<[Option<usize>; 2]> = Vec::with_capacity(sought.len());
        for line in sought {
            let numbers = [Some(line.text), line.other].map(|text| layer.number(text?, pass));
            if numbers == [None, None] {
                return Ok(Vec::new());
            }
            wanted.push(numbers);
        }
        let Some((rarest, starts)) = layer.rarest(&wanted) else { return Ok(Vec::new()) };
        let mut hits = Vec::new();
        let first = starts.partition_point(|&at| at < within.start + rarest);
        for start in starts[first..].iter().map(|at| at - rarest) {
            if start >= within.end || start + sought.len() > self.lines.len() {
                break;
            }
            if self.matches(layer, &wanted, start)?
                && let Some(delta) = self.delta(sought, pass, start)
            {
                hits.push(Hit { start, delta });
            }
        }
        Ok(hits)
    }

    fn matches(&self, layer: &Layer, wanted: &[[Option<usize>; 2]], start: usize) -> Result<bool, Exhausted> {
        for (compared, numbers) in wanted.iter().enumerate() {
            let found = Some(layer.of_line[start + compared]);
            if !numbers.contains(&found) {
                self.spend(compared + 1)?;
                return Ok(false);
            }
        }
        self.spend(wanted.len())?;
        Ok(true)
    }

    /// How the indentation differs; the outer nothing if it does so unevenly.
    fn delta(&self, sought: &[Sought<'_>], pass: Pass, start: usize) -> Option<Option<Delta>> {
        match pass {
            Pass::Exact | Pass::Endings | Pass::TrailingSpace | Pass::LookAlike => Some(None),
            Pass::Indentation => {
                let pairs = || {
                    sought
                        .iter()
                        .zip(&self.lines[start..])
                        .filter(|(line, _)| !line.text.trim().is_empty())
                        .map(|(line, there)| (indentation(line.text), indentation(there.body)))
                };
                Delta::uniform(&pairs).map(Some)
            }
        }
    }

    fn spend(&self, lines: usize) -> Result<(), Exhausted> {
        self.work.set(self.work.get().saturating_add(lines));
        if self.work.get() > WORK_MAX { Err(Exhausted) } else { Ok(()) }
    }

    fn layer(&self, pass: Pass) -> &Layer {
        let at = match pass {
            Pass::Exact | Pass::Endings => 0,
            Pass::TrailingSpace => 1,
            Pass::LookAlike => 2,
            Pass::Indentation => 3,
        };
        self.layers[at].get_or_init(|| Layer::new(&self.lines, pass))
    }
}

impl Layer {
    fn new(lines: &[FileLine<'_>], pass: Pass) -> Self {
        let mut layer = Self { numbers: HashMap::new(), of_line: Vec::new(), places: Vec::new() };
        for (at, line) in lines.iter().enumerate() {
            let next = layer.places.len();
            let number = *layer.numbers.entry(seen_by(pass, line.body).into_owned()).or_insert(next);
            if number == next {
                layer.places.push(Vec::new());
            }
            layer.places[number].push(at);
            layer.of_line.push(number);
        }
        layer
    }

    fn number(&self, text: &str, pass: Pass) -> Option<usize> {
        self.numbers.get(seen_by(pass, text).as_ref()).copied()
    }

    /// The sought line that stands in the fewest places, and those places.
    fn rarest(&self, wanted: &[[Option<usize>; 2]]) -> Option<(usize, Vec<usize>)> {
        let places = |numbers: &[Option<usize>; 2]| -> usize {
            numbers.iter().flatten().map(|number| self.places[*number].len()).sum()
        };
        let (rarest, numbers) = wanted.iter().enumerate().min_by_key(|(_, numbers)| places(numbers))?;
        let mut at: Vec<usize> =
            numbers.iter().flatten().flat_map(|number| &self.places[*number]).copied().collect();
        at.sort_unstable();
        at.dedup();
        Some((rarest, at))
    }
}

/// A line as a pass sees it.
fn seen_by(pass: Pass, body: &str) -> Cow<'_, str> {
    match pass {
        Pass::Exact | Pass::Endings => Cow::Borrowed(body),
        Pass::TrailingSpace => Cow::Borrowed(body.trim_end_matches([' ', '\t'])),
        Pass::LookAlike => Cow::Owned(plain_body(body)),
        Pass::Indentation => Cow::Owned(plain_body(&body[indentation(body).len()..])),
    }
}

fn indentation(body: &str) -> &str {
    &body[..body.len() - body.trim_start_matches([' ', '\t']).len()]
}
