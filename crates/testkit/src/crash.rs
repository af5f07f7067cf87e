//! Crash test: a child makes changes and is killed at a random moment. The next process must find every acknowledged
//! change, none half applied, and a journal that agrees. Then the next round continues from there.
//!
//! Failures name the seed and the round. Kills only processes it started.

mod checker;
mod power_cut;

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    stress::{Fallible, SeededRng, parse_child_line, scratch_directory},
    workload::{
        CrashTestWorkloadStep, WorkloadChangeAcknowledgement, WorkloadChildMessage, WorkloadOrders,
        WorkspaceReferenceModel,
    },
};
pub use checker::{CrashChecker, CrashTestInFlightOutcome, all_entries, check_journal_matches_disk, first_difference};
pub use power_cut::{PowerCutExpectedChanges, PowerCutRecoverySummary, check_power_cut};

/// Rounds per workspace, so that a long journal does not slow the test.
const ROUNDS_PER_WORKSPACE: u64 = 20;
/// Maximum number of changes before a child is killed.
const STEPS_MAX: u64 = 40;
/// Maximum delay between a child's last line and its death.
const KILL_DELAY_MAX_US: u64 = 3_000;
/// Maximum lifetime of a process that only recovers.
const RECOVERY_KILL_DELAY_MAX_US: u64 = 40_000;
/// Percentage of rounds in which the recovery is killed too.
const RECOVERY_KILLED_PERCENT: u64 = 10;

/// Totals of all rounds.
#[derive(Debug, Clone, Copy, Default)]
pub struct CrashStatistics {
    /// Rounds.
    pub rounds: u64,
    /// Acknowledged changes.
    pub acknowledged: u64,
    /// Changes in progress when a child was killed.
    pub in_flight: u64,
    /// Of those, how many were applied.
    pub in_flight_applied: u64,
    /// Steps of all recoveries.
    pub replayed_steps: u64,
    /// Recoveries that were killed.
    pub recoveries_killed: u64,
}

/// What a child did until it was killed.
#[derive(Debug, Default)]
pub struct KilledChildProgress {
    /// Acknowledged changes, in order.
    pub acknowledged: Vec<(CrashTestWorkloadStep, WorkloadChangeAcknowledgement)>,
    /// The change in progress when it was killed.
    pub in_flight: Option<CrashTestWorkloadStep>,
}

/// Runs this many rounds. `start` builds the command that runs [`crate::workload::run_child`].
pub fn run_rounds(rounds: u64, start: &dyn Fn() -> Command) -> Fallible<CrashStatistics> {
    let seed = SeededRng::seed_of_run()?;
    let mut chance = SeededRng::from_seed(seed);
    let mut figures = CrashStatistics::default();
    while figures.rounds < rounds {
        let together = ROUNDS_PER_WORKSPACE.min(rounds - figures.rounds);
        run_rounds_on_workspace(together, start, &mut chance, &mut figures)
            .map_err(|breach| format!("seed {seed}, round {}: {breach}", figures.rounds))?;
    }
    Ok(figures)
}

fn run_rounds_on_workspace(
    rounds: u64,
    start: &dyn Fn() -> Command,
    chance: &mut SeededRng,
    figures: &mut CrashStatistics,
) -> Fallible<()> {
    let place = scratch_directory()?;
    let workspace = place.path().join("ws");
    std::fs::create_dir(&workspace)?;
    let mut work = WorkloadOrders {
        workspace,
        state: place.path().join("state"),
        full: chance.happens_percent(50),
        seed: 0,
        boot: None,
        steps: STEPS_MAX,
        model: WorkspaceReferenceModel::default(),
    };
    let mut judge = CrashChecker::default();
    for _ in 0..rounds {
        work.seed = chance.next_u64();
        let kill = KillSchedule { after_steps: chance.below(STEPS_MAX), wait_us: chance.below(KILL_DELAY_MAX_US) };
        let life = run_and_kill(start(), &work, &kill)?;
        figures.acknowledged += life.acknowledged.len() as u64;
        figures.in_flight += u64::from(life.in_flight.is_some());
        if chance.happens_percent(RECOVERY_KILLED_PERCENT) {
            let only_open = WorkloadOrders { steps: 0, ..work.clone() };
            let kill = KillSchedule { after_steps: u64::MAX, wait_us: chance.below(RECOVERY_KILL_DELAY_MAX_US) };
            run_and_kill(start(), &only_open, &kill)?;
            figures.recoveries_killed += 1;
            judge.allow_recovery_leftover();
        }
        let verdict = judge.check_workspace(&mut work, &life)?;
        figures.in_flight_applied += u64::from(verdict == CrashTestInFlightOutcome::Applied);
        figures.replayed_steps += judge.replayed_steps();
        figures.rounds += 1;
    }
    Ok(())
}

/// When a child is killed.
#[derive(Debug, Clone, Copy)]
pub struct KillSchedule {
    /// After this many acknowledged changes; with the maximum value the delay counts from the start.
    pub after_steps: u64,
    /// Additional delay.
    pub wait_us: u64,
}

/// Starts a child, kills it, and returns what it reported.
pub fn run_and_kill(mut command: Command, work: &WorkloadOrders, kill: &KillSchedule) -> Fallible<KilledChildProgress> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let outcome = watch_child(&mut child, work, kill);
    // The child must not outlive this process; killing a dead one fails harmlessly.
    match child.kill() {
        Ok(()) | Err(_) => {}
    }
    child.wait()?;
    outcome
}

fn watch_child(child: &mut Child, work: &WorkloadOrders, kill: &KillSchedule) -> Fallible<KilledChildProgress> {
    let mut input = child.stdin.take().ok_or("no input")?;
    let output = BufReader::new(child.stdout.take().ok_or("no output")?);
    let mut text = serde_json::to_string(work)?;
    text.push('\n');
    let mut life = KilledChildProgress::default();
    let written = input.write_all(text.as_bytes());
    if kill.after_steps == u64::MAX {
        busy_wait(kill.wait_us);
        child.kill()?;
    } else {
        written?;
    }
    let mut killed = false;
    // Changes reported before the kill are acknowledged, even if they are read later.
    for line in output.lines() {
        match parse_child_line(&line?) {
            Some(WorkloadChildMessage::Begin(step)) => life.in_flight = Some(step),
            Some(WorkloadChildMessage::Done(ack)) => {
                let step = life.in_flight.take().ok_or("done without a beginning")?;
                life.acknowledged.push((step, ack));
            }
            Some(WorkloadChildMessage::Failed(text)) => return Err(format!("a change failed: {text}").into()),
            Some(WorkloadChildMessage::Open | WorkloadChildMessage::End) | None => {}
        }
        if !killed && kill.after_steps != u64::MAX && life.acknowledged.len() as u64 >= kill.after_steps {
            busy_wait(kill.wait_us);
            child.kill()?;
            killed = true;
        }
    }
    Ok(life)
}

/// Waits in a busy loop, because a sleep is too coarse.
fn busy_wait(microseconds: u64) {
    let end = Instant::now() + Duration::from_micros(microseconds);
    while Instant::now() < end {
        std::thread::yield_now();
    }
}
