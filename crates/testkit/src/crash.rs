//! The crash test kills a child process that changes a workspace, at a random moment. After each kill, every
//! acknowledged change must exist, no change may be half applied, and the journal must match the files. The error of a
//! failed crash test contains the seed and the round.

mod checker;
mod power_cut;

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::{
    stress::{Fallible, SeededRng, parse_child_line, scratch_directory},
    wait::kill_after,
    workload::{
        CrashTestChangeAcknowledgement, CrashTestChildConfig, CrashTestChildMessage, CrashTestWorkloadStep,
        WorkspaceReferenceModel,
    },
};
pub use checker::{
    CrashTestInFlightOutcome, PostCrashWorkspaceChecker, all_entries, check_journal_matches_disk, first_difference,
};
pub use power_cut::{PowerCutExpectedChanges, PowerCutRecoveryCheckResult, check_power_cut};

/// The crash test limits the rounds per workspace, because checking a long journal is slow.
const ROUNDS_PER_WORKSPACE: u64 = 20;
const STEPS_MAX: u64 = 40;
const KILL_DELAY_MAX_US: u64 = 3_000;
/// The maximum delay before the crash test kills a child that only recovers a workspace.
const RECOVERY_KILL_DELAY_MAX_US: u64 = 40_000;
const RECOVERY_KILLED_PERCENT: u64 = 10;

/// The counts of a crash test over all its rounds.
#[derive(Debug, Clone, Copy, Default)]
pub struct CrashStatistics {
    /// The number of rounds of the crash test.
    pub rounds: u64,
    /// The number of changes that the children acknowledged.
    pub acknowledged: u64,
    /// The number of changes that were in progress when a child was killed.
    pub in_flight: u64,
    /// The number of interrupted changes that were found applied after the recovery.
    pub in_flight_applied: u64,
    /// The number of steps of unfinished changes that the recoveries applied.
    pub replayed_steps: u64,
    /// The number of recoveries that were killed on purpose.
    pub recoveries_killed: u64,
}

/// The changes that a child process reported until it was killed.
#[derive(Debug, Default)]
pub struct KilledChildProgress {
    /// The changes that the killed child acknowledged, in order.
    pub acknowledged: Vec<(CrashTestWorkloadStep, CrashTestChangeAcknowledgement)>,
    /// The change that was in progress when the child was killed.
    pub in_flight: Option<CrashTestWorkloadStep>,
}

/// Runs the crash test for a number of rounds and returns its counts. The function `start` builds the command of a
/// child process that runs [`crate::workload::run_child`].
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
    let mut work = CrashTestChildConfig {
        workspace,
        state: place.path().join("state"),
        full: chance.happens_percent(50),
        seed: 0,
        boot: None,
        steps: STEPS_MAX,
        model: WorkspaceReferenceModel::default(),
    };
    let mut judge = PostCrashWorkspaceChecker::default();
    for _ in 0..rounds {
        work.seed = chance.next_u64();
        let kill =
            CrashTestKillMoment { after_steps: chance.below(STEPS_MAX), wait_us: chance.below(KILL_DELAY_MAX_US) };
        let life = run_and_kill(start(), &work, &kill)?;
        figures.acknowledged += life.acknowledged.len() as u64;
        figures.in_flight += u64::from(life.in_flight.is_some());
        if chance.happens_percent(RECOVERY_KILLED_PERCENT) {
            let only_open = CrashTestChildConfig { steps: 0, ..work.clone() };
            let kill = CrashTestKillMoment { after_steps: u64::MAX, wait_us: chance.below(RECOVERY_KILL_DELAY_MAX_US) };
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

/// The moment at which the crash test kills a child.
#[derive(Debug, Clone, Copy)]
pub struct CrashTestKillMoment {
    /// The number of changes that the child acknowledges before the kill delay starts; `u64::MAX` starts the delay at
    /// once.
    pub after_steps: u64,
    /// The delay before the kill in microseconds.
    pub wait_us: u64,
}

/// Starts a child, kills it at the given moment, and returns the changes that it reported.
pub fn run_and_kill(
    mut command: Command,
    work: &CrashTestChildConfig,
    kill: &CrashTestKillMoment,
) -> Fallible<KilledChildProgress> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let outcome = watch_child(&mut child, work, kill);
    // The child must not outlive this process, and killing a dead child fails harmlessly.
    match child.kill() {
        Ok(()) | Err(_) => {}
    }
    child.wait()?;
    outcome
}

fn watch_child(
    child: &mut Child,
    work: &CrashTestChildConfig,
    kill: &CrashTestKillMoment,
) -> Fallible<KilledChildProgress> {
    let mut input = child.stdin.take().ok_or("no input")?;
    let output = BufReader::new(child.stdout.take().ok_or("no output")?);
    let mut text = serde_json::to_string(work)?;
    text.push('\n');
    let mut life = KilledChildProgress::default();
    let written = input.write_all(text.as_bytes());
    let delay = Duration::from_micros(kill.wait_us);
    if kill.after_steps == u64::MAX {
        kill_after(child, delay)?;
    } else {
        written?;
    }
    let mut killed = false;
    // A change reported before the kill is acknowledged, even if the report is read later.
    for line in output.lines() {
        match parse_child_line(&line?) {
            Some(CrashTestChildMessage::Begin(step)) => life.in_flight = Some(step),
            Some(CrashTestChildMessage::Done(ack)) => {
                let step = life.in_flight.take().ok_or("done without a beginning")?;
                life.acknowledged.push((step, ack));
            }
            Some(CrashTestChildMessage::Failed(text)) => return Err(format!("a change failed: {text}").into()),
            Some(CrashTestChildMessage::Open | CrashTestChildMessage::End) | None => {}
        }
        if !killed && kill.after_steps != u64::MAX && life.acknowledged.len() as u64 >= kill.after_steps {
            kill_after(child, delay)?;
            killed = true;
        }
    }
    Ok(life)
}
