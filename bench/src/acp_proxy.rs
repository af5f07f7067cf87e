//! `cargo xtask bench acp` measures the latency that the ACP proxy adds to a forwarded message, compared with a pipe to
//! the same agent. It also measures the memory of the proxy for a large message.
//!
//! The agent is `cat`, which echoes every line. A round trip consists of two forwarded messages, so half of the added
//! time counts for each message. The benchmark fails if a message does not return unchanged.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::Instant,
};

use crate::{
    idle_wait::BenchIdleMachineWaiter,
    statistics::{Samples, format_significant},
};

/// The number of round trips for each message size.
const ROUNDS_DEFAULT: usize = 2_000;
const WARM_UP_ROUNDS: usize = 50;
/// The number of round trips is divided by this number for large messages.
const LARGE_ROUNDS_DIVISOR: usize = 100;
/// The benchmark fails if the ACP proxy adds more latency to the median message than this, in microseconds.
const ADDED_LATENCY_MAX_US: f64 = 100.0;
/// The measured message sizes in bytes, each with a label for the report.
const MESSAGE_SIZES: &[(usize, &str)] =
    &[(100, "100 bytes"), (10_000, "10 KB"), (1_000_000, "1 MB"), (10_000_000, "10 MB")];
/// Messages of at least this many bytes count as large.
const LARGE_BYTES: usize = 1_000_000;
const MESSAGES_PER_ROUND_TRIP: f64 = 2.0;

/// The process of the echoing agent, run directly or behind the ACP proxy.
struct AcpBenchEchoProcess {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    received_line: Vec<u8>,
}

impl AcpBenchEchoProcess {
    fn start(command: &mut Command) -> Result<Self, String> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        Ok(Self { child, input, output, received_line: Vec::new() })
    }

    /// Sends a line and waits for its echo. Returns the time of the round trip in microseconds.
    fn round_trip(&mut self, line: &[u8]) -> Result<f64, String> {
        self.received_line.clear();
        let input = self.input.as_mut().ok_or("its input is closed")?;
        let started = Instant::now();
        if line.len() < LARGE_BYTES {
            input.write_all(line).map_err(|error| error.to_string())?;
            self.output.read_until(b'\n', &mut self.received_line).map_err(|error| error.to_string())?;
        } else {
            // A line larger than the pipe buffer must be read while it is written.
            thread::scope(|scope| {
                let writing = scope.spawn(|| input.write_all(line));
                self.output.read_until(b'\n', &mut self.received_line).map_err(|error| error.to_string())?;
                let written = writing.join().map_err(|_| "the writer panicked".to_owned())?;
                written.map_err(|error| error.to_string())
            })?;
        }
        let taken = started.elapsed().as_secs_f64() * 1e6;
        if self.received_line == line { Ok(taken) } else { Err("a message came back changed".to_owned()) }
    }

    /// The peak resident memory of the process in kilobytes.
    fn peak_kb(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
    }
}

impl Drop for AcpBenchEchoProcess {
    fn drop(&mut self) {
        self.input = None;
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let rounds = match arguments {
        [] => ROUNDS_DEFAULT,
        [flag, given] if flag == "--rounds" => {
            given.parse().map_err(|_| format!("invalid number of rounds: '{given}'"))?
        }
        _ => return Err("usage: --rounds N".to_owned()),
    };
    let binary = crate::build_release_binary()?;
    let mut quiet = BenchIdleMachineWaiter::default();
    println!("added to one message that goes by, in microseconds, against a bare pipe:");
    println!("| message | bare round trip p50 | through the proxy p50 | added to one message | peak memory |");
    println!("| --- | --- | --- | --- | --- |");
    let mut worst = 0.0_f64;
    for (size, name) in MESSAGE_SIZES {
        let (added, row) = measure_size(&binary, *size, name, rounds, &mut quiet)?;
        println!("{row}");
        if *size < LARGE_BYTES {
            worst = worst.max(added);
        }
    }
    println!("{} of {} turns began on a busy machine", quiet.busy_turns, quiet.turns);
    if worst > ADDED_LATENCY_MAX_US {
        return Err(format!(
            "{} µs are added to a message; at most {ADDED_LATENCY_MAX_US} are wanted",
            format_significant(worst)
        ));
    }
    Ok(())
}

/// Measures one message size. Returns the latency that the ACP proxy adds to the median message, and a row of the
/// report.
fn measure_size(
    binary: &Path,
    size: usize,
    name: &str,
    rounds: usize,
    quiet: &mut BenchIdleMachineWaiter,
) -> Result<(f64, String), String> {
    let mut bare = AcpBenchEchoProcess::start(&mut Command::new("cat"))?;
    let mut proxied = AcpBenchEchoProcess::start(Command::new(binary).args(["acp", "--no-mcp", "--", "cat"]))?;
    let text = "x".repeat(size);
    let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"text\":\"{text}\"}}}}\n");
    let rounds = if size >= LARGE_BYTES { (rounds / LARGE_ROUNDS_DIVISOR).max(1) } else { rounds };
    for _ in 0..WARM_UP_ROUNDS.min(rounds) {
        bare.round_trip(line.as_bytes())?;
        proxied.round_trip(line.as_bytes())?;
    }
    let (mut without, mut with) = (Samples::default(), Samples::default());
    for round in 0..rounds {
        if round % LARGE_ROUNDS_DIVISOR == 0 {
            quiet.wait_until_idle();
        }
        without.push(bare.round_trip(line.as_bytes())?);
        with.push(proxied.round_trip(line.as_bytes())?);
    }
    let (without, with) = (without.median().unwrap_or_default(), with.median().unwrap_or_default());
    let added = (with - without) / MESSAGES_PER_ROUND_TRIP;
    let peak = proxied.peak_kb();
    let row = format!(
        "| {name} | {} | {} | {} | {} MB |",
        format_significant(without),
        format_significant(with),
        format_significant(added),
        peak / 1_000
    );
    Ok((added, row))
}
