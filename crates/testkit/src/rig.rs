//! What the rigs share: chance that can be repeated, a place to work in, and how long to go on.
//!
//! A rig is a long, random test with an oracle. Promises: every run names the seed it can be repeated with.

use std::{error::Error, io::Write, path::Path};

use serde::{Serialize, de::DeserializeOwned};
use tempfile::TempDir;

/// How a rig ends when something does not hold.
pub type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Set to repeat a run; the same seed gives the same choices, not the same timing.
const SEED_VARIABLE: &str = "STEAD_SEED";
/// Set by `cargo xtask test --long`.
const LONG_VARIABLE: &str = "STEAD_LONG";
/// Memory that looks like a file system, where there is some: races and crashes come faster there.
const FAST_PLACE: &str = "/dev/shm";

/// How long the rigs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// As part of every test run.
    Ordinary,
    /// When somebody has hours.
    Long,
}

impl Length {
    /// What the environment asks for.
    pub fn wanted() -> Self {
        match std::env::var_os(LONG_VARIABLE) {
            Some(_) => Length::Long,
            None => Length::Ordinary,
        }
    }

    /// One of two numbers.
    pub fn of<T>(self, ordinary: T, long: T) -> T {
        match self {
            Length::Ordinary => ordinary,
            Length::Long => long,
        }
    }
}

/// A directory that goes away again, in memory where that is possible.
pub fn fast_place() -> Fallible<TempDir> {
    let name = "stead-rig-";
    if let Ok(place) = tempfile::Builder::new().prefix(name).tempdir_in(Path::new(FAST_PLACE)) {
        return Ok(place);
    }
    Ok(tempfile::Builder::new().prefix(name).tempdir()?)
}

/// Where a line of a child starts; a test harness may have written something before it.
const MARK: &str = "@@ ";

/// Says something to the parent, in one write.
pub(crate) fn say(word: &impl Serialize) -> Fallible<()> {
    let text = format!("{MARK}{}\n", serde_json::to_string(word)?);
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Understands a line of a child; nothing when it is not one of ours, or was cut off by death.
pub(crate) fn heard<T: DeserializeOwned>(line: &str) -> Option<T> {
    let (_, word) = line.split_once(MARK)?;
    serde_json::from_str(word).ok()
}

/// Choices that can be repeated (the splitmix sequence).
#[derive(Debug, Clone)]
pub struct Chance {
    state: u64,
}

impl Chance {
    /// The choices that belong to a seed.
    pub fn seeded(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The seed of this run: from the environment, or new.
    pub fn seed() -> Fallible<u64> {
        match std::env::var(SEED_VARIABLE) {
            Ok(text) => Ok(text.parse()?),
            Err(_) => Ok(u64::from_le_bytes(disk::random_bytes()?)),
        }
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; zero when there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number().checked_rem(end).unwrap_or(0)
    }

    /// One of these, unless there is none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(usize::try_from(self.below(from.len() as u64)).unwrap_or(0))
    }

    /// True in `percent` of all cases.
    pub fn happens(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_repeats_itself_and_stays_in_range() {
        let draw = |seed| {
            let mut chance = Chance::seeded(seed);
            (0..100).map(|_| chance.below(7)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(3).iter().all(|number| *number < 7));
        assert_eq!(Chance::seeded(1).below(0), 0);
        assert_eq!(Chance::seeded(1).pick::<u8>(&[]), None);
    }
}
