//! Shared by the stress tests: repeatable random choices, a temporary directory, and the run length.
//!
//! A stress test is a long, random test with an oracle. Every run prints the seed that repeats it.

use std::{error::Error, io::Write, path::Path};

use serde::{Serialize, de::DeserializeOwned};
use tempfile::TempDir;

/// Error of a stress test whose invariant does not hold.
pub type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The variable with the seed of a run to repeat. The same seed gives the same choices, but not the same timing.
const SEED_VARIABLE: &str = "STEAD_SEED";
/// The variable that `cargo xtask test --long` sets.
const LONG_VARIABLE: &str = "STEAD_LONG";
/// The directory of a tmpfs, on which races and crashes happen faster.
const MEMORY_DIRECTORY: &str = "/dev/shm";

/// How long the stress tests run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StressLength {
    /// The length in every test run.
    Ordinary,
    /// The length with `--long`.
    Long,
}

impl StressLength {
    /// The length that the environment requests.
    pub fn from_environment() -> Self {
        match std::env::var_os(LONG_VARIABLE) {
            Some(_) => StressLength::Long,
            None => StressLength::Ordinary,
        }
    }

    /// Selects one of two numbers.
    pub fn choose<T>(self, ordinary: T, long: T) -> T {
        match self {
            StressLength::Ordinary => ordinary,
            StressLength::Long => long,
        }
    }
}

/// A temporary directory, in memory if possible.
pub fn scratch_directory() -> Fallible<TempDir> {
    let name = "stead-rig-";
    if let Ok(place) = tempfile::Builder::new().prefix(name).tempdir_in(Path::new(MEMORY_DIRECTORY)) {
        return Ok(place);
    }
    Ok(tempfile::Builder::new().prefix(name).tempdir()?)
}

/// Prefix of a child's lines; the test harness may print something before it.
const LINE_MARKER: &str = "@@ ";

/// Sends a line to the parent in one write.
pub(crate) fn send_to_parent(word: &impl Serialize) -> Fallible<()> {
    let text = format!("{LINE_MARKER}{}\n", serde_json::to_string(word)?);
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Parses a line of a child; `None` if it is not ours or was cut off.
pub(crate) fn parse_child_line<T: DeserializeOwned>(line: &str) -> Option<T> {
    let (_, word) = line.split_once(LINE_MARKER)?;
    serde_json::from_str(word).ok()
}

/// Repeatable random choices (splitmix).
#[derive(Debug, Clone)]
pub struct SeededRng {
    state: u64,
}

impl SeededRng {
    /// The choices of a seed.
    pub fn from_seed(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The seed of this run: from the environment, or a new one.
    pub fn seed_of_run() -> Fallible<u64> {
        match std::env::var(SEED_VARIABLE) {
            Ok(text) => Ok(text.parse()?),
            Err(_) => Ok(u64::from_le_bytes(stead_disk::random_bytes()?)),
        }
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; zero if `end` is zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next_u64().checked_rem(end).unwrap_or(0)
    }

    /// One of the items; `None` if there are none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(usize::try_from(self.below(from.len() as u64)).unwrap_or(0))
    }

    /// True in `percent` of all cases.
    pub fn happens_percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeded_rng_is_repeatable_and_in_range() {
        let draw = |seed| {
            let mut chance = SeededRng::from_seed(seed);
            (0..100).map(|_| chance.below(7)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(3).iter().all(|number| *number < 7));
        assert_eq!(SeededRng::from_seed(1).below(0), 0);
        assert_eq!(SeededRng::from_seed(1).pick::<u8>(&[]), None);
    }
}
