//! Helpers of the stress tests, which are long, random tests. A stress test with the same seed makes the same random
//! choices.

use std::{error::Error, io::Write, path::Path};

use serde::{Serialize, de::DeserializeOwned};
use tempfile::TempDir;

/// The result of a stress test; the error describes a violated invariant.
pub type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The environment variable with a seed, which repeats the random choices of an earlier stress test.
const SEED_VARIABLE: &str = "STEAD_SEED";
/// The environment variable that `cargo xtask test --long` sets to run long stress tests.
const LONG_VARIABLE: &str = "STEAD_LONG";
/// The directory of a file system in memory, where races and crashes happen faster.
const MEMORY_DIRECTORY: &str = "/dev/shm";

/// The length of the stress tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StressLength {
    /// The stress tests have the short length of an ordinary test run.
    Ordinary,
    /// The stress tests have the full length of `cargo xtask test --long`.
    Long,
}

impl StressLength {
    /// Reads the length of the stress tests from the environment.
    pub fn from_environment() -> Self {
        match std::env::var_os(LONG_VARIABLE) {
            Some(_) => StressLength::Long,
            None => StressLength::Ordinary,
        }
    }

    /// Returns the value `ordinary` for short stress tests and the value `long` for long stress tests.
    pub fn choose<T>(self, ordinary: T, long: T) -> T {
        match self {
            StressLength::Ordinary => ordinary,
            StressLength::Long => long,
        }
    }
}

/// Creates a temporary directory, on a file system in memory if possible.
pub fn scratch_directory() -> Fallible<TempDir> {
    let name = "stead-rig-";
    if let Ok(place) = tempfile::Builder::new().prefix(name).tempdir_in(Path::new(MEMORY_DIRECTORY)) {
        return Ok(place);
    }
    Ok(tempfile::Builder::new().prefix(name).tempdir()?)
}

/// The text that marks a message in a child's output, because the test harness also prints text.
const LINE_MARKER: &str = "@@ ";

/// Writes a message for the parent process to standard output, in one write.
pub(crate) fn send_to_parent(word: &impl Serialize) -> Fallible<()> {
    let text = format!("{LINE_MARKER}{}\n", serde_json::to_string(word)?);
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Parses a message of a child process; `None` if the line is no message or was cut off.
pub(crate) fn parse_child_line<T: DeserializeOwned>(line: &str) -> Option<T> {
    let (_, word) = line.split_once(LINE_MARKER)?;
    serde_json::from_str(word).ok()
}

/// A generator of repeatable random choices (splitmix).
#[derive(Debug, Clone)]
pub struct SeededRng {
    state: u64,
}

impl SeededRng {
    /// Creates a random number generator with this seed.
    pub fn from_seed(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the seed of this test run, either from the environment or at random.
    pub fn seed_of_run() -> Fallible<u64> {
        match std::env::var(SEED_VARIABLE) {
            Ok(text) => Ok(text.parse()?),
            Err(_) => Ok(u64::from_le_bytes(stead_disk::random_bytes()?)),
        }
    }

    /// Returns the next random number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a random number below `end`; zero if `end` is zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next_u64().checked_rem(end).unwrap_or(0)
    }

    /// Returns a random item of the slice; `None` if the slice is empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(usize::try_from(self.below(from.len() as u64)).unwrap_or(0))
    }

    /// Returns true with a probability of `percent`.
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
