//! The race test, in which an attacker swaps paths in the workspace while calls run through the engine. No outside data
//! may reach a reply, nothing outside may change, and only allowed error kinds may occur. [`measure_control_escape`]
//! shows that the attack works on an unsafe server.

mod attacker;
mod control;
mod fixture;
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

use stead_engine::ErrorKind;

use crate::stress::{Fallible, SeededRng};
use attacker::RaceAttacker;
pub use control::measure_control_escape;
use fixture::RaceTestDirectories;
use victim::{RaceVictimCaller, RaceVictimTaskKind, VICTIM_CAUSED_ERRORS};

/// After this time, a call of a victim counts as hanging.
const RACE_TIMEOUT: Duration = Duration::from_secs(600);
const SWAPS_PER_THOUSAND_CALLS: u64 = 50;

/// The kind of attack in a race: which paths the attacker swaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaceAttackKind {
    /// A directory is swapped with a relative link to the outside.
    DirectoryLink,
    /// A directory is swapped with an absolute link to the outside.
    DirectoryAbsoluteLink,
    /// A file is swapped with a link to a file outside.
    LeafLink,
    /// A file is swapped with a named pipe.
    Fifo,
    /// A directory is moved out of the workspace and back.
    MovedOut,
    /// The workspace directory itself is renamed, and a link to the outside takes its name.
    RootReplaced,
    /// Links to the outside appear where the victim is about to create parent directories.
    PlantedParents,
    /// Directories in a tree become links while the tree is copied, removed, restored and purged.
    SwappedChildren,
    /// The target of a link alternates between a directory inside and one outside the workspace.
    RetargetedLink,
}

struct RaceAttackExpectedOutcomes {
    /// The error kinds that calls return because of the attacker.
    attack_errors: &'static [ErrorKind],
    other_errors: &'static [ErrorKind],
    success_percent_min: u64,
    attacked_percent_min: u64,
}

impl RaceAttackKind {
    /// All kinds of attack in a race.
    pub const ALL: [RaceAttackKind; 9] = [
        RaceAttackKind::DirectoryLink,
        RaceAttackKind::DirectoryAbsoluteLink,
        RaceAttackKind::LeafLink,
        RaceAttackKind::Fifo,
        RaceAttackKind::MovedOut,
        RaceAttackKind::RootReplaced,
        RaceAttackKind::PlantedParents,
        RaceAttackKind::SwappedChildren,
        RaceAttackKind::RetargetedLink,
    ];

    fn rules(self) -> RaceAttackExpectedOutcomes {
        let links: &[ErrorKind] = &[
            ErrorKind::PathEscape,
            ErrorKind::Busy,
            ErrorKind::NotDirectory,
            ErrorKind::NotRegular,
            ErrorKind::IsDirectory,
        ];
        let usual = RaceAttackExpectedOutcomes {
            attack_errors: links,
            other_errors: VICTIM_CAUSED_ERRORS,
            success_percent_min: 5,
            attacked_percent_min: 5,
        };
        match self {
            RaceAttackKind::DirectoryLink | RaceAttackKind::DirectoryAbsoluteLink | RaceAttackKind::RetargetedLink => {
                usual
            }
            // The base version may name a file that was just replaced.
            RaceAttackKind::LeafLink | RaceAttackKind::Fifo => RaceAttackExpectedOutcomes {
                attack_errors: &[
                    ErrorKind::PathEscape,
                    ErrorKind::Busy,
                    ErrorKind::NotRegular,
                    ErrorKind::NotDirectory,
                    ErrorKind::BadRequest,
                    ErrorKind::Conflict,
                ],
                ..usual
            },
            RaceAttackKind::MovedOut => RaceAttackExpectedOutcomes {
                attack_errors: &[ErrorKind::NotFound, ErrorKind::Busy, ErrorKind::Conflict],
                other_errors: &[ErrorKind::Exists, ErrorKind::Stale, ErrorKind::NothingToDo, ErrorKind::NotDirectory],
                ..usual
            },
            RaceAttackKind::RootReplaced => RaceAttackExpectedOutcomes {
                attack_errors: &[],
                success_percent_min: 40,
                attacked_percent_min: 0,
                ..usual
            },
            RaceAttackKind::PlantedParents => RaceAttackExpectedOutcomes { attacked_percent_min: 1, ..usual },
            // Purged files cannot be restored.
            RaceAttackKind::SwappedChildren => RaceAttackExpectedOutcomes {
                other_errors: &[
                    ErrorKind::NotFound,
                    ErrorKind::Exists,
                    ErrorKind::Stale,
                    ErrorKind::NothingToDo,
                    ErrorKind::Conflict,
                    ErrorKind::Expired,
                ],
                attacked_percent_min: 1,
                ..usual
            },
        }
    }
}

/// The numbers of calls that the two victims of a race make.
#[derive(Debug, Clone, Copy)]
pub struct CallsToMakeByEachRaceVictim {
    /// The number of calls of the victim that reads, stats and lists.
    pub reads: u64,
    /// The number of calls of the victim that makes changes.
    pub changes: u64,
}

/// Counts of the results of calls in a race, for one victim or for both.
#[derive(Debug, Clone, Default)]
pub struct RaceTally {
    /// The number of calls that succeeded in the race.
    pub succeeded: u64,
    /// The number of calls that failed with an error caused by the attacker.
    pub attacked: u64,
    /// The number of calls that failed with an allowed error that the attacker did not cause.
    pub other_failures: u64,
    /// The number of failed calls by error kind.
    pub failures_by_kind: BTreeMap<&'static str, u64>,
    /// The duration of the longest call in the race.
    pub longest_call: Duration,
}

impl RaceTally {
    /// Returns the number of counted calls.
    pub fn calls(&self) -> u64 {
        self.succeeded + self.attacked + self.other_failures
    }

    fn add(&mut self, other: &RaceTally) {
        self.succeeded += other.succeeded;
        self.attacked += other.attacked;
        self.other_failures += other.other_failures;
        self.longest_call = self.longest_call.max(other.longest_call);
        for (kind, count) in &other.failures_by_kind {
            *self.failures_by_kind.entry(kind).or_default() += count;
        }
    }
}

/// The result of a race.
#[derive(Debug, Clone)]
pub struct RaceAttackReport {
    /// The seed of the random choices in the race.
    pub seed: u64,
    /// The counts of the call results in the race.
    pub tally: RaceTally,
    /// The number of swaps that the attacker made.
    pub swaps: u64,
}

struct RaceState {
    fixture: RaceTestDirectories,
    stop: AtomicBool,
    swaps: AtomicU64,
}

/// Runs a race with one kind of attack and one path resolution method.
pub fn run_race(
    shape: RaceAttackKind,
    resolver: stead_disk::PathResolutionMethod,
    quota: CallsToMakeByEachRaceVictim,
) -> Fallible<RaceAttackReport> {
    let seed = SeededRng::seed_of_run()?;
    let race = Arc::new(RaceState {
        fixture: RaceTestDirectories::new()?,
        stop: AtomicBool::new(false),
        swaps: AtomicU64::new(0),
    });
    let workspace = race.fixture.open_workspace(resolver)?;
    let attacking = start_attacker(shape, &race);
    let (sender, results) = mpsc::channel();
    for (task, calls) in [(RaceVictimTaskKind::Read, quota.reads), (RaceVictimTaskKind::Change, quota.changes)] {
        let (race, workspace, sender) = (Arc::clone(&race), Arc::clone(&workspace), sender.clone());
        // The victim's thread is not joined, because a hanging call must not delay the result.
        std::thread::spawn(move || {
            let mut victim = RaceVictimCaller::new(shape, &race.fixture, &workspace, task, seed ^ calls);
            let mut result = Ok(());
            while result.is_ok() && victim.tally.calls() < calls {
                result = victim.run_step(task);
            }
            sender.send(result.map(|()| victim.tally))
        });
    }
    drop(sender);
    let mut tally = RaceTally::default();
    let mut verdict = Ok(());
    for _ in 0..2 {
        match results.recv_timeout(RACE_TIMEOUT) {
            Ok(Ok(part)) => tally.add(&part),
            Ok(Err(breach)) => verdict = Err(breach),
            Err(_) => verdict = Err("a call did not come back".into()),
        }
    }
    race.stop.store(true, Ordering::SeqCst);
    let attacker_ended = attacking.join().map_err(|_| "the attacker fell over");
    verdict.and(attacker_ended.map_err(Into::into)).map_err(|breach| format!("seed {seed}: {breach}"))?;
    race.fixture.check_outside_unchanged()?;
    let log = workspace.verify_journal(None, &[])?;
    if let Some(tamper) = log.integrity_error {
        return Err(format!("seed {seed}: the journal does not verify: {tamper:?}").into());
    }
    let report = RaceAttackReport { seed, tally, swaps: race.swaps.load(Ordering::SeqCst) };
    check_contention(shape, &report)?;
    Ok(report)
}

fn start_attacker(shape: RaceAttackKind, race: &Arc<RaceState>) -> std::thread::JoinHandle<()> {
    let race = Arc::clone(race);
    std::thread::spawn(move || {
        let mut attacker = RaceAttacker::new(shape, &race.fixture);
        while !race.stop.load(Ordering::Relaxed) {
            if attacker.swap_once() {
                race.swaps.fetch_add(1, Ordering::Relaxed);
            }
        }
        attacker.restore_all();
    })
}

fn check_contention(shape: RaceAttackKind, report: &RaceAttackReport) -> Fallible<()> {
    let (rules, tally) = (shape.rules(), &report.tally);
    let calls = tally.calls();
    let enough = tally.succeeded * 100 >= calls * rules.success_percent_min
        && tally.attacked * 100 >= calls * rules.attacked_percent_min
        && report.swaps * 1_000 >= calls * SWAPS_PER_THOUSAND_CALLS;
    if enough { Ok(()) } else { Err(format!("{shape:?}: that was no race: {report:?}").into()) }
}
