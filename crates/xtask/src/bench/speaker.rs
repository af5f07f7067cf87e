//! A server process and a conversation with it, one line a message. What is timed is from the first byte of a request
//! to the last byte of its answer; making the request and reading what the answer says is not.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// The revision both servers speak.
const REVISION: &str = "2025-11-25";
/// Room for answers.
const BUFFER_BYTES: usize = 1 << 20;
/// How often a server that should end is looked at, and how many times.
const END_LOOK: (Duration, usize) = (Duration::from_millis(10), 200);

/// A request that waits to be sent.
pub(super) struct Request {
    id: u64,
    line: Vec<u8>,
}

/// An answer and how long it took.
pub(super) struct Timed {
    pub(super) milliseconds: f64,
    pub(super) result: Value,
}

/// A running server.
pub(super) struct Speaker {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next_id: u64,
}

impl Speaker {
    /// Starts a server; nothing is said yet.
    pub(super) fn start(command: &mut Command) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let missing = || format!("{name} has no standard streams");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        Ok(Self { child, input, output: BufReader::with_capacity(BUFFER_BYTES, output), next_id: 1 })
    }

    /// Opens the conversation and asks for the tools.
    pub(super) fn open(&mut self) -> Result<(), String> {
        let hello = json!({
            "protocolVersion": REVISION, "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" }
        });
        self.ask("initialize", &hello)?;
        self.say(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
        let tools = self.ask("tools/list", &json!({}))?.result;
        match tools["tools"].as_array() {
            Some(tools) if !tools.is_empty() => Ok(()),
            Some(_) | None => Err(format!("no tools: {tools}")),
        }
    }

    /// Calls a tool.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Timed, String> {
        let timed = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        well(timed.result).map(|result| Timed { result, ..timed })
    }

    /// Calls a tool many times without waiting in between; the answers come in the order of the calls.
    pub(super) fn call_all(&mut self, tool: &str, arguments: &[Value]) -> Result<(f64, Vec<Value>), String> {
        let requests: Vec<Request> = arguments
            .iter()
            .map(|arguments| self.request("tools/call", &json!({ "name": tool, "arguments": arguments })))
            .collect();
        let bytes: Vec<u8> = requests.iter().flat_map(|request| request.line.iter().copied()).collect();
        let (input, output) = (&mut self.input, &mut self.output);
        let started = Instant::now();
        let (ended, mut lines) = thread::scope(|scope| {
            let writer = scope.spawn(move || input.write_all(&bytes));
            let mut lines = Vec::with_capacity(requests.len());
            while lines.len() < requests.len() {
                lines.push(hear(output)?);
            }
            let ended = started.elapsed();
            match writer.join() {
                Ok(Ok(())) => Ok((ended, lines)),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err("the writing thread broke off".to_owned()),
            }
        })?;
        let mut answers = Vec::with_capacity(lines.len());
        for line in lines.drain(..) {
            answers.push(parse(&line)?);
        }
        answers.sort_by_key(|answer| answer["id"].as_u64());
        let mut results = Vec::with_capacity(answers.len());
        for (mut answer, request) in answers.into_iter().zip(&requests) {
            if answer["id"].as_u64() != Some(request.id) {
                return Err(format!("request {} was not answered once", request.id));
            }
            results.push(well(answer["result"].take())?);
        }
        Ok((milliseconds(ended), results))
    }

    /// Calls one tool over and over while a call of another runs; how long each took, and what the long one said.
    pub(super) fn call_beside(
        &mut self,
        long: (&str, &Value),
        short: (&str, &Value),
    ) -> Result<(Vec<f64>, Value), String> {
        let call = |(tool, arguments): (&str, &Value)| json!({ "name": tool, "arguments": arguments });
        let running = self.request("tools/call", &call(long));
        self.say(&running.line)?;
        let mut times = Vec::new();
        loop {
            let request = self.request("tools/call", &call(short));
            let started = Instant::now();
            self.say(&request.line)?;
            let mut said = None;
            loop {
                let line = hear(&mut self.output)?;
                let ended = started.elapsed();
                let mut answer = parse(&line)?;
                let result = well(answer["result"].take())?;
                if answer["id"].as_u64() == Some(running.id) {
                    said = Some(result);
                } else {
                    // One that ended beside nothing does not count.
                    times.extend(said.is_none().then(|| milliseconds(ended)));
                    break;
                }
            }
            if let Some(said) = said {
                return Ok((times, said));
            }
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> Request {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        Request { id, line: format!("{message}\n").into_bytes() }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Timed, String> {
        let request = self.request(method, params);
        let started = Instant::now();
        self.say(&request.line)?;
        loop {
            let line = hear(&mut self.output)?;
            let ended = started.elapsed();
            let mut answer = parse(&line)?;
            if answer["id"].as_u64() == Some(request.id) {
                let result = answer["result"].take();
                if result.is_null() {
                    return Err(format!("{method} failed: {answer}"));
                }
                return Ok(Timed { milliseconds: milliseconds(ended), result });
            }
        }
    }

    fn say(&mut self, line: &[u8]) -> Result<(), String> {
        self.input.write_all(line).map_err(|error| format!("the server does not listen: {error}"))
    }

    /// The most memory the process ever held, in MB.
    pub(super) fn peak_megabytes(&self) -> Result<f64, String> {
        peak_megabytes(self.child.id())
    }

    /// Closes the conversation; a server that stays is ended by its id.
    pub(super) fn stop(self) {
        let Self { mut child, input, output, .. } = self;
        drop((input, output));
        let (pause, looks) = END_LOOK;
        for _ in 0..looks {
            if matches!(child.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(pause);
        }
        // Either may fail only because the process is gone already.
        drop(child.kill());
        drop(child.wait());
    }
}

/// The next line that is an answer; notifications are passed over.
fn hear(output: &mut impl BufRead) -> Result<Vec<u8>, String> {
    let mut line = Vec::new();
    loop {
        match output.read_until(b'\n', &mut line) {
            Ok(0) => return Err("the server closed".to_owned()),
            Ok(_) if line.starts_with(b"{\"method\"") => line.clear(),
            Ok(_) => return Ok(line),
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn parse(line: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(line).map_err(|error| format!("the server does not speak JSON: {error}"))
}

fn well(result: Value) -> Result<Value, String> {
    if result["isError"] == true || result["content"].is_null() {
        return Err(format!("a call failed: {}", result["content"]));
    }
    Ok(result)
}

pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// The most memory a running process ever held, in MB.
pub(super) fn peak_megabytes(process: u32) -> Result<f64, String> {
    let path = format!("/proc/{}/status", process);
    let status = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let kilobytes: Option<f64> = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    kilobytes.map(|kilobytes| kilobytes / 1024.0).ok_or_else(|| format!("{path} has no VmHWM"))
}
