//! `cargo xtask bench acp`: what the proxy adds to a message that only goes by, against a bare pipe to the same agent, in
//! one interleaved run; and what a large message costs it in memory.
//!
//! The agent is `cat`, which says everything it hears. A round trip is therefore two messages that go by, one in each
//! direction, and half of what is added to it is added to each. Promises that every message comes back as it was sent.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::Instant,
};

use super::{
    quiet::Quiet,
    statistics::{Samples, shown},
};

/// Round trips of each size when nothing is said.
const ROUNDS_DEFAULT: usize = 2_000;
/// Round trips before anything is counted.
const WARM_UP: usize = 50;
/// A large message makes this much rarer a round.
const LARGE_SHARE: usize = 100;
/// Most that may be added to the median message, in microseconds.
const ADDED_MAX_US: f64 = 100.0;
/// Bytes of text in a message, and what it is called.
const SIZES: &[(usize, &str)] =
    &[(100, "100 bytes"), (10_000, "10 KB"), (1_000_000, "1 MB"), (10_000_000, "10 MB")];
/// From this size on a message is a large one.
const LARGE_BYTES: usize = 1_000_000;
/// Messages in one direction of a round trip.
const MESSAGES: f64 = 2.0;

/// An agent, or something in front of it.
struct Echo {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    heard: Vec<u8>,
}

impl Echo {
    fn start(command: &mut Command) -> Result<Self, String> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        Ok(Self { child, input, output, heard: Vec::new() })
    }

    /// Sends a line and waits until it is back; how long that took, in microseconds.
    fn round_trip(&mut self, line: &[u8]) -> Result<f64, String> {
        self.heard.clear();
        let input = self.input.as_mut().ok_or("its input is closed")?;
        let started = Instant::now();
        if line.len() < LARGE_BYTES {
            input.write_all(line).map_err(|error| error.to_string())?;
            self.output.read_until(b'\n', &mut self.heard).map_err(|error| error.to_string())?;
        } else {
            // A line that does not fit into a pipe must be read while it is written.
            thread::scope(|scope| {
                let writing = scope.spawn(|| input.write_all(line));
                self.output.read_until(b'\n', &mut self.heard).map_err(|error| error.to_string())?;
                let written = writing.join().map_err(|_| "the writer broke off".to_owned())?;
                written.map_err(|error| error.to_string())
            })?;
        }
        let taken = started.elapsed().as_secs_f64() * 1e6;
        if self.heard == line { Ok(taken) } else { Err("a message came back changed".to_owned()) }
    }

    /// The most memory it ever held, in kilobytes.
    fn peak_kb(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.input = None;
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Measures and reports.
pub(super) fn run(arguments: &[String]) -> Result<(), String> {
    let rounds = match arguments {
        [] => ROUNDS_DEFAULT,
        [flag, given] if flag == "--rounds" => {
            given.parse().map_err(|_| format!("'{given}' is no number of rounds"))?
        }
        _ => return Err("knows --rounds N".to_owned()),
    };
    let binary = super::build()?;
    let mut quiet = Quiet::default();
    println!("added to one message that goes by, in microseconds, against a bare pipe:");
    println!(
        "| message | bare round trip p50 | through the proxy p50 | added to one message | peak memory |"
    );
    println!("| --- | --- | --- | --- | --- |");
    let mut worst = 0.0_f64;
    for (size, name) in SIZES {
        let (added, row) = measure(&binary, *size, name, rounds, &mut quiet)?;
        println!("{row}");
        if *size < LARGE_BYTES {
            worst = worst.max(added);
        }
    }
    println!("{} of {} turns began on a busy machine", quiet.busy, quiet.turns);
    if worst > ADDED_MAX_US {
        return Err(format!("{} µs are added to a message; at most {ADDED_MAX_US} are wanted", shown(worst)));
    }
    Ok(())
}

/// One size: what is added to the median message, and the row that says so.
fn measure(
    binary: &Path,
    size: usize,
    name: &str,
    rounds: usize,
    quiet: &mut Quiet,
) -> Result<(f64, String), String> {
    let mut bare = Echo::start(&mut Command::new("cat"))?;
    let mut proxied = Echo::start(Command::new(binary).args(["acp", "--no-mcp", "--", "cat"]))?;
    let text = "x".repeat(size);
    let line =
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"text\":\"{text}\"}}}}\n");
    let rounds = if size >= LARGE_BYTES { (rounds / LARGE_SHARE).max(1) } else { rounds };
    for _ in 0..WARM_UP.min(rounds) {
        bare.round_trip(line.as_bytes())?;
        proxied.round_trip(line.as_bytes())?;
    }
    let (mut without, mut with) = (Samples::default(), Samples::default());
    for round in 0..rounds {
        if round % LARGE_SHARE == 0 {
            quiet.wait();
        }
        without.push(bare.round_trip(line.as_bytes())?);
        with.push(proxied.round_trip(line.as_bytes())?);
    }
    let (without, with) = (without.median().unwrap_or_default(), with.median().unwrap_or_default());
    let added = (with - without) / MESSAGES;
    let peak = proxied.peak_kb();
    let row =
        format!("| {name} | {} | {} | {} | {} MB |", shown(without), shown(with), shown(added), peak / 1_000);
    Ok((added, row))
}
