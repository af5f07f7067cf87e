//! `cargo xtask bench watch` measures the time from a file change by another program to the change event, and the cost
//! of idle watches.
//!
//! One server pushes events to the client, and a second server on the same workspace answers calls that wait for
//! events. Both servers must report a change before the benchmark makes the next one.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::statistics::{Samples, format_significant};

const ROUNDS_DEFAULT: usize = 300;
/// The number of idle watches whose cost is measured.
const WATCH_COUNT: usize = 1_000;
const IDLE_PERIOD: Duration = Duration::from_secs(10);
/// The pause before the cost of idle watches is measured.
const REST_PERIOD: Duration = Duration::from_secs(8);
/// How long a call waits for events, in milliseconds.
const WAIT_MS: u64 = 30_000;

/// A JSON-RPC server.
struct RpcServerProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next_id: u64,
}

impl RpcServerProcess {
    fn start(binary: &Path, place: &Path) -> Result<Self, String> {
        let mut child = Command::new(binary)
            .arg("rpc")
            .arg("--workspace")
            .arg(place.join("ws"))
            .arg("--state")
            .arg(place.join("state"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", binary.display()))?;
        let input = child.stdin.take().ok_or("no standard input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        Ok(Self { child, input, output, next_id: 1 })
    }

    fn send_request(&mut self, method: &str, params: &Value) -> Result<u64, String> {
        let id = self.next_id;
        self.next_id += 1;
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.input, "{line}").map_err(|error| error.to_string())?;
        Ok(id)
    }

    fn read_message(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|error| error.to_string())?;
        serde_json::from_str(&line).map_err(|error| format!("'{line}': {error}"))
    }

    /// Sends a call and returns its result; pushed notifications are skipped.
    fn call(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        let id = self.send_request(method, params)?;
        loop {
            let mut message = self.read_message()?;
            if message["id"] == id {
                let result = message["result"].take();
                return if result.is_null() { Err(message.to_string()) } else { Ok(result) };
            }
        }
    }

    /// Waits for the event of one file.
    fn wait_for_event(&mut self, path: &str) -> Result<(), String> {
        loop {
            let message = self.read_message()?;
            if message["method"] == "filesystem.event" && message["params"]["path"] == path {
                return Ok(());
            }
        }
    }

    /// The voluntary context switches of all threads of the server, and their CPU time in clock ticks.
    fn cpu_usage(&self) -> Result<(u64, u64), String> {
        let tasks = format!("/proc/{}/task", self.child.id());
        let (mut wakes, mut ticks) = (0, 0);
        for task in fs::read_dir(&tasks).map_err(|error| format!("{tasks}: {error}"))?.flatten() {
            let read = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
            let status = read("status");
            let woken = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            wakes += woken.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0);
            let stat = read("stat");
            let fields: Vec<&str> =
                stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
            let field = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
            ticks += field(11) + field(12);
        }
        Ok((wakes, ticks))
    }
}

impl Drop for RpcServerProcess {
    fn drop(&mut self) {
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
    let target = crate::needs::target_directory();
    let place = tempfile::Builder::new()
        .prefix("bench-watch-")
        .tempdir_in(&target)
        .map_err(|error| format!("{}: {error}", target.display()))?;
    let ws = place.path().join("ws");
    fs::create_dir_all(ws.join("d")).map_err(|error| error.to_string())?;
    let mut first = RpcServerProcess::start(&binary, place.path())?;
    first.call("watch", &json!({ "recursive": true }))?;
    let mut second = RpcServerProcess::start(&binary, place.path())?;
    let mut cursor = second.call("watch", &json!({ "recursive": true }))?["cursor"].take();
    let (mut push, mut by_cursor) = (Samples::default(), Samples::default());
    for round in 0..rounds {
        let path = format!("d/f{}", round % 50);
        let waiting = second.send_request("watched", &json!({ "cursor": cursor, "wait_ms": WAIT_MS }))?;
        // The second server must already wait, or its cursor finds the event at once.
        std::thread::sleep(Duration::from_millis(20));
        let started = Instant::now();
        fs::write(ws.join(&path), format!("{round}\n")).map_err(|error| error.to_string())?;
        first.wait_for_event(&path)?;
        push.push(elapsed_milliseconds(started));
        loop {
            let mut message = second.read_message()?;
            if message["id"] == waiting {
                cursor = message["result"]["cursor"].take();
                break;
            }
        }
        by_cursor.push(elapsed_milliseconds(started));
    }
    drop(second);
    println!("from a change by another program to the event, in milliseconds, {rounds} changes:");
    println!("| way | p50 | p90 | p99 |\n| --- | --- | --- | --- |");
    for (name, samples) in [("pushed by the recording process", &push), ("by cursor, in another process", &by_cursor)] {
        let figure = |value: Option<f64>| value.map(format_significant).unwrap_or_default();
        println!(
            "| {name} | {} | {} | {} |",
            figure(samples.median()),
            figure(samples.percentile_90()),
            figure(samples.percentile_99())
        );
    }
    measure_idle(&mut first, &ws)
}

fn measure_idle(server: &mut RpcServerProcess, ws: &Path) -> Result<(), String> {
    for number in 0..WATCH_COUNT {
        fs::create_dir(ws.join(format!("w{number}"))).map_err(|error| error.to_string())?;
    }
    for number in 0..WATCH_COUNT {
        server.call("watch", &json!({ "path": format!("w{number}") }))?;
    }
    std::thread::sleep(REST_PERIOD);
    let before = server.cpu_usage()?;
    std::thread::sleep(IDLE_PERIOD);
    let after = server.cpu_usage()?;
    println!(
        "{WATCH_COUNT} watches, idle for {} s: {} wake-ups, {} clock ticks of processor time",
        IDLE_PERIOD.as_secs(),
        after.0.saturating_sub(before.0),
        after.1.saturating_sub(before.1)
    );
    Ok(())
}

fn elapsed_milliseconds(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1000.0
}
