//! The control of the race test is a victim that checks the real path and then opens it, as many servers do. The
//! control must read a canary; otherwise the attack is ineffective and the test proves nothing.

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    RaceAttackKind, RaceState,
    fixture::{CANARY, RaceTestDirectories},
    start_attacker,
};
use crate::stress::Fallible;

const ESCAPE_TIME_MAX: Duration = Duration::from_secs(2);
/// Several attempts are made, because a busy machine may starve the attacker.
const ESCAPE_TRIES: usize = 5;

/// Measures how long the unsafe control took to read a file outside the workspace. The measurement fails if the unsafe
/// control never reads a file outside the workspace.
pub fn measure_control_escape(shape: RaceAttackKind) -> Fallible<Duration> {
    for _ in 0..ESCAPE_TRIES {
        if let Some(took) = try_escape(shape)? {
            return Ok(took);
        }
    }
    Err(format!("{shape:?}: the control stayed inside, so the attack is none").into())
}

fn try_escape(shape: RaceAttackKind) -> Fallible<Option<Duration>> {
    let race = Arc::new(RaceState {
        fixture: RaceTestDirectories::new()?,
        stop: AtomicBool::new(false),
        swaps: AtomicU64::new(0),
    });
    let root = fs::canonicalize(race.fixture.workspace())?;
    let file = race.fixture.inside_path(match shape {
        RaceAttackKind::LeafLink | RaceAttackKind::Fifo => "leaf",
        RaceAttackKind::RetargetedLink => "link/f",
        RaceAttackKind::DirectoryLink
        | RaceAttackKind::DirectoryAbsoluteLink
        | RaceAttackKind::MovedOut
        | RaceAttackKind::RootReplaced
        | RaceAttackKind::PlantedParents
        | RaceAttackKind::SwappedChildren => "d/f",
    });
    let attacking = start_attacker(shape, &race);
    let started = Instant::now();
    let mut escaped = None;
    while escaped.is_none() && started.elapsed() < ESCAPE_TIME_MAX {
        let content = check_then_open(&root, &file).unwrap_or_default();
        escaped = content.starts_with(CANARY.as_bytes()).then(|| started.elapsed());
    }
    race.stop.store(true, Ordering::SeqCst);
    attacking.join().map_err(|_| "the attacker fell over")?;
    Ok(escaped)
}

/// The requested path may change between the check and the open.
fn check_then_open(root: &Path, path: &Path) -> std::io::Result<Vec<u8>> {
    let real = fs::canonicalize(path)?;
    if !real.starts_with(root) {
        return Ok(Vec::new());
    }
    let mut start = [0; CANARY.len()];
    File::open(path)?.read_exact(&mut start)?;
    Ok(start.to_vec())
}
