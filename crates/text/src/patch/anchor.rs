//! The lines behind `@@`, and where they lead. Owns the search for them and what counts as below one: what its
//! definition holds, and only where that is nothing, what comes further on. Promises every place that they lead to, in
//! order, in time linear in the text. Never takes the first of several.

use crate::locate::Pass;

use super::index::{Exhausted, Index, Sought};

/// A line that anchors led to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchored {
    /// The anchor's own 0-based line, which the chunk may quote as well.
    pub(super) line: usize,
    /// The line where the stretch below it ends: the next such anchor, or the end of what is around it.
    end: usize,
}

/// Whether the anchor's own line counts as below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    Counts,
    Passed,
}

/// The anchors of one text.
pub(super) struct Anchors<'i, 't> {
    index: &'i Index<'t>,
    passes: &'static [Pass],
}

impl<'i, 't> Anchors<'i, 't> {
    pub(super) fn new(index: &'i Index<'t>, passes: &'static [Pass]) -> Self {
        Self { index, passes }
    }

    /// The places that stacked anchors lead to, the outermost given first.
    pub(super) fn all(&self, anchors: &[String]) -> Result<Vec<Anchored>, Exhausted> {
        let mut outer: Option<Vec<Anchored>> = None;
        for anchor in anchors {
            outer = Some(self.inside(anchor, outer.as_deref())?);
        }
        Ok(outer.unwrap_or_default())
    }

    /// The first of stacked anchors that is nowhere in the text; the last if each is somewhere.
    pub(super) fn missing<'a>(&self, anchors: &'a [String]) -> Option<&'a String> {
        let is_missing =
            |anchor: &&String| self.inside(anchor, None).is_ok_and(|anchored| anchored.is_empty());
        anchors.iter().find(is_missing).or(anchors.last())
    }

    /// Where one anchor stands: by the passes, in the end by how lines begin.
    fn inside(&self, anchor: &str, outer: Option<&[Anchored]>) -> Result<Vec<Anchored>, Exhausted> {
        let all = 0..self.index.lines.len();
        for &pass in self.passes {
            let hits = self.index.find(&[Sought { text: anchor, other: None }], pass, &all)?;
            let lines: Vec<usize> = hits.iter().map(|hit| hit.start).collect();
            let found = self.among(outer, &lines);
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let begins = |at: &usize| self.index.lines[*at].body.trim_start().starts_with(anchor.trim());
        let lines: Vec<usize> = all.filter(begins).collect();
        Ok(self.among(outer, &lines))
    }

    fn among(&self, outer: Option<&[Anchored]>, lines: &[usize]) -> Vec<Anchored> {
        match outer {
            None => stretches(lines, self.index.lines.len()).collect(),
            Some(outer) => outer
                .iter()
                .flat_map(|above| stretches(self.below(*above, Own::Passed, lines), above.end))
                .collect(),
        }
    }

    /// Those of `lines`, which ascend, that stand below an anchor: in what it starts, or else further on.
    pub(super) fn below<'l>(&self, above: Anchored, own: Own, lines: &'l [usize]) -> &'l [usize] {
        let first = match own {
            Own::Counts => above.line,
            Own::Passed => above.line + 1,
        };
        let from = lines.partition_point(|line| *line < first);
        let to = lines.partition_point(|line| *line < above.end).max(from);
        let below = &lines[from..to];
        let (Some(last), 2..) = (below.last(), below.len()) else { return below };
        let scope = self.scope_end(above.line, *last);
        match below.partition_point(|line| *line < scope) {
            0 => below,
            inside => &below[..inside],
        }
    }

    /// The line behind what an anchor starts, as far as `last`: the first that stands no deeper and opens something.
    fn scope_end(&self, anchor: usize, last: usize) -> usize {
        const CLOSERS: [char; 4] = ['}', ')', ']', '{'];
        let depth = |body: &str| body.len() - body.trim_start().len();
        let lines = &self.index.lines;
        let outer = depth(lines[anchor].body);
        let opens = |at: &usize| {
            let body = lines[*at].body;
            !body.trim().is_empty() && depth(body) <= outer && !body.trim_start().starts_with(CLOSERS)
        };
        (anchor + 1..=last).find(opens).unwrap_or(last + 1)
    }
}

/// Each line with the stretch up to the next one.
fn stretches(lines: &[usize], end: usize) -> impl Iterator<Item = Anchored> {
    let ends = lines.iter().skip(1).copied().chain(std::iter::once(end));
    lines.iter().zip(ends).map(|(line, end)| Anchored { line: *line, end })
}
