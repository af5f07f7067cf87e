//! The control: a victim that does what servers usually do, looks at the real path and then opens it. Under the same
//! attack it must read a canary; if it does not, the attack is none and the rig proves nothing.

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
    Race, Shape, attack,
    ground::{CANARY, Ground},
};
use crate::rig::Fallible;

/// How long the control has until it must have escaped.
const ESCAPE_WITHIN: Duration = Duration::from_secs(2);
/// A busy machine may keep the attacker from its turn.
const TRIES: usize = 5;

/// How long a realpath-then-open victim took to read from outside, or that it never did.
pub fn control_escapes(shape: Shape) -> Fallible<Duration> {
    for _ in 0..TRIES {
        if let Some(took) = one_try(shape)? {
            return Ok(took);
        }
    }
    Err(format!("{shape:?}: the control stayed inside, so the attack is none").into())
}

fn one_try(shape: Shape) -> Fallible<Option<Duration>> {
    let race =
        Arc::new(Race { ground: Ground::new()?, stop: AtomicBool::new(false), swaps: AtomicU64::new(0) });
    let root = fs::canonicalize(race.ground.workspace())?;
    let file = race.ground.inside(match shape {
        Shape::LeafLink | Shape::Fifo => "leaf",
        Shape::RetargetedLink => "link/f",
        Shape::DirectoryLink
        | Shape::DirectoryAbsoluteLink
        | Shape::MovedOut
        | Shape::RootReplaced
        | Shape::PlantedParents
        | Shape::SwappedChildren => "d/f",
    });
    let attacking = attack(shape, &race);
    let started = Instant::now();
    let mut escaped = None;
    while escaped.is_none() && started.elapsed() < ESCAPE_WITHIN {
        let content = read_like_others(&root, &file).unwrap_or_default();
        escaped = content.starts_with(CANARY.as_bytes()).then(|| started.elapsed());
    }
    race.stop.store(true, Ordering::SeqCst);
    attacking.join().map_err(|_| "the attacker fell over")?;
    Ok(escaped)
}

/// Checks the real path, then opens the path that was asked for.
fn read_like_others(root: &Path, path: &Path) -> std::io::Result<Vec<u8>> {
    let real = fs::canonicalize(path)?;
    if !real.starts_with(root) {
        return Ok(Vec::new());
    }
    let mut start = [0; CANARY.len()];
    File::open(path)?.read_exact(&mut start)?;
    Ok(start.to_vec())
}
