//! The crash rig: a child makes changes and is killed at a random moment; the next to open the workspace must find every
//! acknowledged change, none half done, and a journal that tells the same. Then it goes on from there.
//!
//! Promises a verdict that names the seed and the round. Kills only processes it started.

mod cut;
mod judge;

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    rig::{Chance, Fallible, fast_place, heard},
    workload::{Ack, Line, Model, Step, Work},
};
pub use cut::{Cut, Survived, judge_cut};
pub use judge::{Judge, Verdict, agree, all_entries, difference};

/// Rounds in one workspace before a new one is made, so that the journal does not slow the rig down.
const ROUNDS_TOGETHER: u64 = 20;
/// Changes a child makes before it is killed, at most.
const STEPS_MAX: u64 = 40;
/// Longest wait between a child's last line and its death.
const WAIT_MAX_US: u64 = 3_000;
/// Longest life of a process that only recovers.
const RECOVERY_MAX_US: u64 = 40_000;
/// Rounds in a hundred in which the recovery is killed as well.
const RECOVERY_KILLED_PERCENT: u64 = 10;

/// What happened in all rounds together.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    /// Rounds.
    pub rounds: u64,
    /// Acknowledged changes.
    pub acknowledged: u64,
    /// Changes that were under way when the child died.
    pub under_way: u64,
    /// Of those, how many came true.
    pub came_true: u64,
    /// Steps that recovery had to do.
    pub replayed: u64,
    /// Recoveries that were killed.
    pub recoveries_killed: u64,
}

/// How a child's life went.
#[derive(Debug, Default)]
pub struct Life {
    /// What was acknowledged, in order.
    pub done: Vec<(Step, Ack)>,
    /// What was under way at its death.
    pub under_way: Option<Step>,
}

/// Runs this many rounds. `start` makes the command that runs [`crate::workload::run_child`].
pub fn run(rounds: u64, start: &dyn Fn() -> Command) -> Fallible<Figures> {
    let seed = Chance::seed()?;
    let mut chance = Chance::seeded(seed);
    let mut figures = Figures::default();
    while figures.rounds < rounds {
        let together = ROUNDS_TOGETHER.min(rounds - figures.rounds);
        one_workspace(together, start, &mut chance, &mut figures)
            .map_err(|breach| format!("seed {seed}, round {}: {breach}", figures.rounds))?;
    }
    Ok(figures)
}

fn one_workspace(
    rounds: u64,
    start: &dyn Fn() -> Command,
    chance: &mut Chance,
    figures: &mut Figures,
) -> Fallible<()> {
    let place = fast_place()?;
    let workspace = place.path().join("ws");
    std::fs::create_dir(&workspace)?;
    let mut work = Work {
        workspace,
        state: place.path().join("state"),
        full: chance.happens(50),
        seed: 0,
        boot: None,
        steps: STEPS_MAX,
        model: Model::default(),
    };
    let mut judge = Judge::default();
    for _ in 0..rounds {
        work.seed = chance.number();
        let kill = Kill { after_steps: chance.below(STEPS_MAX), wait_us: chance.below(WAIT_MAX_US) };
        let life = live_and_die(start(), &work, &kill)?;
        figures.acknowledged += life.done.len() as u64;
        figures.under_way += u64::from(life.under_way.is_some());
        if chance.happens(RECOVERY_KILLED_PERCENT) {
            let only_open = Work { steps: 0, ..work.clone() };
            let kill = Kill { after_steps: u64::MAX, wait_us: chance.below(RECOVERY_MAX_US) };
            live_and_die(start(), &only_open, &kill)?;
            figures.recoveries_killed += 1;
            judge.recovery_was_killed();
        }
        let verdict = judge.judge(&mut work, &life)?;
        figures.came_true += u64::from(verdict == Verdict::CameTrue);
        figures.replayed += judge.replayed();
        figures.rounds += 1;
    }
    Ok(())
}

/// When a child dies.
#[derive(Debug, Clone, Copy)]
pub struct Kill {
    /// After this many acknowledged changes; never, when it is the largest number: then the wait counts from the start.
    pub after_steps: u64,
    /// And this much later.
    pub wait_us: u64,
}

/// Starts a child, kills it, and tells what it said until then.
pub fn live_and_die(mut command: Command, work: &Work, kill: &Kill) -> Fallible<Life> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let outcome = watch(&mut child, work, kill);
    // Whatever happened, it must not outlive us; killing a dead one fails, which is as good.
    match child.kill() {
        Ok(()) | Err(_) => {}
    }
    child.wait()?;
    outcome
}

fn watch(child: &mut Child, work: &Work, kill: &Kill) -> Fallible<Life> {
    let mut input = child.stdin.take().ok_or("no input")?;
    let output = BufReader::new(child.stdout.take().ok_or("no output")?);
    let mut text = serde_json::to_string(work)?;
    text.push('\n');
    let mut life = Life::default();
    let told = input.write_all(text.as_bytes());
    if kill.after_steps == u64::MAX {
        spin(kill.wait_us);
        child.kill()?;
    } else {
        told?;
    }
    let mut killed = false;
    // What it managed to say before it died is acknowledged, even if we read it after.
    for line in output.lines() {
        match heard(&line?) {
            Some(Line::Begin(step)) => life.under_way = Some(step),
            Some(Line::Done(ack)) => {
                let step = life.under_way.take().ok_or("done without a beginning")?;
                life.done.push((step, ack));
            }
            Some(Line::Failed(text)) => return Err(format!("a change failed: {text}").into()),
            Some(Line::Open | Line::End) | None => {}
        }
        if !killed && kill.after_steps != u64::MAX && life.done.len() as u64 >= kill.after_steps {
            spin(kill.wait_us);
            child.kill()?;
            killed = true;
        }
    }
    Ok(life)
}

/// Waits without sleeping: a sleep is too coarse for the moments that matter.
fn spin(microseconds: u64) {
    let end = Instant::now() + Duration::from_micros(microseconds);
    while Instant::now() < end {
        std::thread::yield_now();
    }
}
