//! What a pattern that matches nothing may have meant: places that hold it as a part, and names that differ from it by
//! little. Looked for only after the pattern itself has failed, so that a pattern that matches costs nothing more.

use std::collections::BinaryHeap;

use path::RelPath;

use super::First;
use crate::{
    failure::Failure,
    limits,
    ops::{
        seek,
        seek::{Met, Names},
    },
    view::View,
};

/// What comes near.
pub(super) struct Near {
    /// Places that hold the pattern as a part, the first ones in order.
    pub(super) parts: Vec<RelPath>,
    /// How many do.
    pub(super) total: u64,
    /// The places with the nearest names, nearest first.
    pub(super) names: Vec<RelPath>,
}

/// Looks for what comes near a pattern.
pub(super) fn look(
    view: &View<'_>,
    top: &RelPath,
    names: Names,
    pattern: &str,
    max: usize,
) -> Result<Near, Failure> {
    let meant = Meant::new(pattern);
    let (gathered, _) = seek::walk(view, top, names, &Gathered::default, &|own, met| {
        if view.may_read(met.path) {
            own.meet(&meant, met, max);
        }
        Ok(())
    })?;
    let (mut parts, mut nearest) = (Vec::new(), BinaryHeap::new());
    for one in gathered {
        parts.push(one.parts);
        nearest.extend(one.nearest);
    }
    let (parts, total) = First::merged(parts, max);
    let names = nearest.into_sorted_vec().into_iter().take(limits::FIND_NEAREST_MAX);
    Ok(Near { parts, total, names: names.map(|near| near.path).collect() })
}

/// A pattern as a text to compare with.
struct Meant {
    /// The whole in lower case; nothing when it is more than a name or a path.
    part: Option<Vec<u8>>,
    /// Its last name in lower case, without what stands for anything.
    name: Vec<u8>,
    /// How much a name may differ from it.
    distance_max: usize,
}

impl Meant {
    fn new(pattern: &str) -> Self {
        let is_wild = |byte: &u8| b"*?[]{}\\".contains(byte);
        let lower = pattern.as_bytes().to_ascii_lowercase();
        let last = lower.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let name: Vec<u8> = last.iter().copied().filter(|byte| !is_wild(byte)).collect();
        let distance_max = name.len() / CHARACTERS_PER_SLIP;
        Self { part: (!lower.iter().any(is_wild)).then_some(lower), name, distance_max }
    }
}

/// A name may differ from what was meant by one character in so many.
const CHARACTERS_PER_SLIP: usize = 3;

#[derive(Default)]
struct Gathered {
    parts: First,
    nearest: BinaryHeap<Nearby>,
}

impl Gathered {
    fn meet(&mut self, meant: &Meant, met: &Met<'_, '_>, max: usize) {
        let below = met.below().to_ascii_lowercase();
        let name = below.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if let Some(part) = &meant.part {
            let within = if part.contains(&b'/') { &below[..] } else { name };
            if !part.is_empty() && within.windows(part.len()).any(|window| window == part) {
                self.parts.meet(met.path, max);
            }
        }
        if let Some(distance) = distance(name, &meant.name, meant.distance_max) {
            self.nearest.push(Nearby { distance, path: met.path.clone() });
            if self.nearest.len() > limits::FIND_NEAREST_MAX {
                self.nearest.pop();
            }
        }
    }
}

/// A name that differs by little. The order is that of distance, then of places.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Nearby {
    distance: usize,
    path: RelPath,
}

/// How many characters must be put in, taken out or replaced to make one of the other, unless it is more than `max`.
fn distance(one: &[u8], two: &[u8], max: usize) -> Option<usize> {
    if max == 0 || one.len().abs_diff(two.len()) > max {
        return None;
    }
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (at, byte) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, other) in two.iter().enumerate() {
            let replaced = diagonal + usize::from(byte != other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
        if row.iter().all(|cost| *cost > max) {
            return None;
        }
    }
    row.last().copied().filter(|cost| *cost <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_slips_up_to_a_bound() {
        for (one, two, max, expected) in [
            ("readme.md", "redame.md", 3, Some(2)),
            ("readme.md", "readme.md", 3, Some(0)),
            ("readme", "readme.md", 3, Some(3)),
            ("readme", "license", 2, None),
            ("a", "b", 0, None),
            ("", "abc", 3, Some(3)),
        ] {
            assert_eq!(distance(one.as_bytes(), two.as_bytes(), max), expected, "{one} {two}");
        }
    }
}
