//! The race rig: an attacker swaps directories, links and files in the workspace while calls run through the engine.
//!
//! Owns the shapes and what each of them allows. Promises: a run passes only if nothing from outside got into a reply,
//! nothing outside changed, every failure was of an allowed kind, and both the attacker and the victim had their turn;
//! a run in which everything failed does not pass. [`control_escapes`] shows that the attack is real.

mod attacker;
mod control;
mod ground;
mod victim;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use engine::Kind;

use crate::rig::{Chance, Fallible};
use attacker::Attacker;
pub use control::control_escapes;
use ground::Ground;
use victim::{OWN_DOING, Task, Victim};

/// When a race that does not end is given up: some call hangs.
const PATIENCE: Duration = Duration::from_secs(600);
/// Swaps that must have happened during a race, for each thousand calls.
const SWAPS_PER_THOUSAND: u64 = 50;

/// What the attacker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A directory is swapped with a relative link to the outside.
    DirectoryLink,
    /// A directory is swapped with an absolute link to the outside.
    DirectoryAbsoluteLink,
    /// A file is swapped with a link to a file outside.
    LeafLink,
    /// A file is swapped with a pipe.
    Fifo,
    /// A directory is moved out of the workspace and back.
    MovedOut,
    /// The root itself is renamed, and a link to the outside takes its name.
    RootReplaced,
    /// Links are planted where parents are about to be made.
    PlantedParents,
    /// Directories in a tree become links while the tree is copied, removed, restored and emptied.
    SwappedChildren,
    /// A link that leads inside leads outside, and inside again.
    RetargetedLink,
}

/// What a shape allows, and what it must bring about.
struct Rules {
    /// Failures that show that the victim met the attacker.
    signs: &'static [Kind],
    /// Failures without a meaning.
    plain: &'static [Kind],
    /// At least this many in a hundred calls succeed.
    inside_percent: u64,
    /// At least this many in a hundred calls meet the attacker.
    swapped_percent: u64,
}

impl Shape {
    /// Every shape.
    pub const ALL: [Shape; 9] = [
        Shape::DirectoryLink,
        Shape::DirectoryAbsoluteLink,
        Shape::LeafLink,
        Shape::Fifo,
        Shape::MovedOut,
        Shape::RootReplaced,
        Shape::PlantedParents,
        Shape::SwappedChildren,
        Shape::RetargetedLink,
    ];

    fn rules(self) -> Rules {
        let links: &[Kind] =
            &[Kind::PathEscape, Kind::Busy, Kind::NotDirectory, Kind::NotRegular, Kind::IsDirectory];
        let usual = Rules { signs: links, plain: OWN_DOING, inside_percent: 5, swapped_percent: 5 };
        match self {
            Shape::DirectoryLink | Shape::DirectoryAbsoluteLink | Shape::RetargetedLink => usual,
            // A base is given for what was a file a moment ago.
            Shape::LeafLink | Shape::Fifo => Rules {
                signs: &[
                    Kind::PathEscape,
                    Kind::Busy,
                    Kind::NotRegular,
                    Kind::NotDirectory,
                    Kind::BadRequest,
                    Kind::Conflict,
                ],
                ..usual
            },
            Shape::MovedOut => Rules {
                signs: &[Kind::NotFound, Kind::Busy, Kind::Conflict],
                plain: &[Kind::Exists, Kind::Stale, Kind::NothingToDo, Kind::NotDirectory],
                ..usual
            },
            Shape::RootReplaced => Rules { signs: &[], inside_percent: 40, swapped_percent: 0, ..usual },
            Shape::PlantedParents => Rules { swapped_percent: 1, ..usual },
            // What was emptied for good cannot be brought back.
            Shape::SwappedChildren => Rules {
                plain: &[
                    Kind::NotFound,
                    Kind::Exists,
                    Kind::Stale,
                    Kind::NothingToDo,
                    Kind::Conflict,
                    Kind::Expired,
                ],
                swapped_percent: 1,
                ..usual
            },
        }
    }
}

/// How many calls each victim makes.
#[derive(Debug, Clone, Copy)]
pub struct Quota {
    /// Reads, stats and lists.
    pub looks: u64,
    /// Changes.
    pub changes: u64,
}

/// What happened to the calls of one victim, or of all of them.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Calls that succeeded.
    pub inside: u64,
    /// Calls that failed because of the attacker.
    pub swapped: u64,
    /// Calls that failed for another allowed reason.
    pub plain: u64,
    /// Failures by kind.
    pub kinds: BTreeMap<&'static str, u64>,
    /// The longest call.
    pub longest: Duration,
}

impl Tally {
    /// All calls.
    pub fn calls(&self) -> u64 {
        self.inside + self.swapped + self.plain
    }

    fn add(&mut self, other: &Tally) {
        self.inside += other.inside;
        self.swapped += other.swapped;
        self.plain += other.plain;
        self.longest = self.longest.max(other.longest);
        for (kind, count) in &other.kinds {
            *self.kinds.entry(kind).or_default() += count;
        }
    }
}

/// How a race went.
#[derive(Debug, Clone)]
pub struct Report {
    /// The seed of its choices.
    pub seed: u64,
    /// What happened to the calls.
    pub tally: Tally,
    /// How often the attacker swapped.
    pub swaps: u64,
}

/// Everybody in one race.
struct Race {
    ground: Ground,
    stop: AtomicBool,
    swaps: AtomicU64,
}

/// Runs one shape with one resolver.
pub fn run(shape: Shape, resolver: disk::Resolver, quota: Quota) -> Fallible<Report> {
    let seed = Chance::seed()?;
    let race =
        Arc::new(Race { ground: Ground::new()?, stop: AtomicBool::new(false), swaps: AtomicU64::new(0) });
    let workspace = race.ground.open(resolver)?;
    let attacking = attack(shape, &race);
    let (sender, results) = mpsc::channel();
    for (task, calls) in [(Task::Look, quota.looks), (Task::Change, quota.changes)] {
        let (race, workspace, sender) = (Arc::clone(&race), Arc::clone(&workspace), sender.clone());
        // Not joined: a call that hangs must not keep the verdict back.
        std::thread::spawn(move || {
            let mut victim = Victim::new(shape, &race.ground, &workspace, task, seed ^ calls);
            let mut result = Ok(());
            while result.is_ok() && victim.tally.calls() < calls {
                result = victim.step(task);
            }
            sender.send(result.map(|()| victim.tally))
        });
    }
    drop(sender);
    let mut tally = Tally::default();
    let mut verdict = Ok(());
    for _ in 0..2 {
        match results.recv_timeout(PATIENCE) {
            Ok(Ok(part)) => tally.add(&part),
            Ok(Err(breach)) => verdict = Err(breach),
            Err(_) => verdict = Err("a call did not come back".into()),
        }
    }
    race.stop.store(true, Ordering::SeqCst);
    let attacker_ended = attacking.join().map_err(|_| "the attacker fell over");
    verdict.and(attacker_ended.map_err(Into::into)).map_err(|breach| format!("seed {seed}: {breach}"))?;
    race.ground.must_be_untouched()?;
    let log = workspace.verify_log(None, &[])?;
    if let Some(tamper) = log.tamper {
        return Err(format!("seed {seed}: the journal does not verify: {tamper:?}").into());
    }
    let report = Report { seed, tally, swaps: race.swaps.load(Ordering::SeqCst) };
    had_their_turn(shape, &report)?;
    Ok(report)
}

fn attack(shape: Shape, race: &Arc<Race>) -> std::thread::JoinHandle<()> {
    let race = Arc::clone(race);
    std::thread::spawn(move || {
        let mut attacker = Attacker::new(shape, &race.ground);
        while !race.stop.load(Ordering::Relaxed) {
            if attacker.swap() {
                race.swaps.fetch_add(1, Ordering::Relaxed);
            }
        }
        attacker.go_home();
    })
}

/// Says no to a race that was none.
fn had_their_turn(shape: Shape, report: &Report) -> Fallible<()> {
    let (rules, tally) = (shape.rules(), &report.tally);
    let calls = tally.calls();
    let enough = tally.inside * 100 >= calls * rules.inside_percent
        && tally.swapped * 100 >= calls * rules.swapped_percent
        && report.swaps * 1_000 >= calls * SWAPS_PER_THOUSAND;
    if enough { Ok(()) } else { Err(format!("{shape:?}: that was no race: {report:?}").into()) }
}
