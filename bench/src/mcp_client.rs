//! An MCP server process, and a client that exchanges one line per message with it. A time is measured from the first
//! byte of a request to the last byte of its response, without building the request and parsing the response.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// The MCP version that both stead and the reference server support.
const PROTOCOL_REVISION: &str = "2025-11-25";
const BUFFER_BYTES: usize = 1 << 20;
/// The interval and number of checks whether a server has exited, before it is killed.
const EXIT_POLL: (Duration, usize) = (Duration::from_millis(10), 200);

pub(crate) struct SerializedMcpBenchRequest {
    id: u64,
    line: Vec<u8>,
}

pub(crate) struct TimedResult {
    pub(crate) milliseconds: f64,
    pub(crate) result: Value,
}

pub(crate) struct McpBenchClient {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next_id: u64,
}

impl McpBenchClient {
    /// Starts an MCP server, without the handshake of the protocol.
    pub(crate) fn start(command: &mut Command) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let missing = || format!("{name} has no standard streams");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        Ok(Self { child, input, output: BufReader::with_capacity(BUFFER_BYTES, output), next_id: 1 })
    }

    /// Performs the MCP handshake and lists the tools of the server.
    pub(crate) fn initialize(&mut self) -> Result<(), String> {
        let hello = json!({
            "protocolVersion": PROTOCOL_REVISION, "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" }
        });
        self.send_request("initialize", &hello)?;
        self.send_line(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
        let tools = self.send_request("tools/list", &json!({}))?.result;
        match tools["tools"].as_array() {
            Some(tools) if !tools.is_empty() => Ok(()),
            Some(_) | None => Err(format!("no tools: {tools}")),
        }
    }

    pub(crate) fn call_tool(&mut self, tool: &str, arguments: &Value) -> Result<TimedResult, String> {
        let timed = self.send_request("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        check_no_error(timed.result).map(|result| TimedResult { result, ..timed })
    }

    /// Calls a tool many times with pipelined requests; responses arrive in the order of the calls.
    pub(crate) fn call_all(&mut self, tool: &str, arguments: &[Value]) -> Result<(f64, Vec<Value>), String> {
        let requests: Vec<SerializedMcpBenchRequest> = arguments
            .iter()
            .map(|arguments| self.build_request("tools/call", &json!({ "name": tool, "arguments": arguments })))
            .collect();
        let bytes: Vec<u8> = requests.iter().flat_map(|request| request.line.iter().copied()).collect();
        let (input, output) = (&mut self.input, &mut self.output);
        let started = Instant::now();
        let (ended, mut lines) = thread::scope(|scope| {
            let writer = scope.spawn(move || input.write_all(&bytes));
            let mut lines = Vec::with_capacity(requests.len());
            while lines.len() < requests.len() {
                lines.push(read_answer(output)?);
            }
            let ended = started.elapsed();
            match writer.join() {
                Ok(Ok(())) => Ok((ended, lines)),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err("the writer thread panicked".to_owned()),
            }
        })?;
        let mut answers = Vec::with_capacity(lines.len());
        for line in lines.drain(..) {
            answers.push(parse_json(&line)?);
        }
        answers.sort_by_key(|answer| answer["id"].as_u64());
        let mut results = Vec::with_capacity(answers.len());
        for (mut answer, request) in answers.into_iter().zip(&requests) {
            if answer["id"].as_u64() != Some(request.id) {
                return Err(format!("request {} was not answered once", request.id));
            }
            results.push(check_no_error(answer["result"].take())?);
        }
        Ok((to_milliseconds(ended), results))
    }

    /// Repeats a short tool call while a long tool call runs. Returns the time of each short call, and the result of
    /// the long call.
    pub(crate) fn call_concurrently(
        &mut self,
        long: (&str, &Value),
        short: (&str, &Value),
    ) -> Result<(Vec<f64>, Value), String> {
        let call = |(tool, arguments): (&str, &Value)| json!({ "name": tool, "arguments": arguments });
        let running = self.build_request("tools/call", &call(long));
        self.send_line(&running.line)?;
        let mut times = Vec::new();
        loop {
            let request = self.build_request("tools/call", &call(short));
            let started = Instant::now();
            self.send_line(&request.line)?;
            let mut long_result = None;
            loop {
                let line = read_answer(&mut self.output)?;
                let ended = started.elapsed();
                let mut answer = parse_json(&line)?;
                let result = check_no_error(answer["result"].take())?;
                if answer["id"].as_u64() == Some(running.id) {
                    long_result = Some(result);
                } else {
                    // A call that ended after the long one does not count.
                    times.extend(long_result.is_none().then(|| to_milliseconds(ended)));
                    break;
                }
            }
            if let Some(long_result) = long_result {
                return Ok((times, long_result));
            }
        }
    }

    fn build_request(&mut self, method: &str, params: &Value) -> SerializedMcpBenchRequest {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        SerializedMcpBenchRequest { id, line: format!("{message}\n").into_bytes() }
    }

    fn send_request(&mut self, method: &str, params: &Value) -> Result<TimedResult, String> {
        let request = self.build_request(method, params);
        let started = Instant::now();
        self.send_line(&request.line)?;
        loop {
            let line = read_answer(&mut self.output)?;
            let ended = started.elapsed();
            let mut answer = parse_json(&line)?;
            if answer["id"].as_u64() == Some(request.id) {
                let result = answer["result"].take();
                if result.is_null() {
                    return Err(format!("{method} failed: {answer}"));
                }
                return Ok(TimedResult { milliseconds: to_milliseconds(ended), result });
            }
        }
    }

    fn send_line(&mut self, line: &[u8]) -> Result<(), String> {
        self.input.write_all(line).map_err(|error| format!("the server does not listen: {error}"))
    }

    /// The peak resident memory of the server in MB.
    pub(crate) fn peak_megabytes(&self) -> Result<f64, String> {
        process_peak_megabytes(self.child.id())
    }

    /// Closes the standard streams of the server, and kills the server if it does not exit.
    pub(crate) fn stop(self) {
        let Self { mut child, input, output, .. } = self;
        drop((input, output));
        let (pause, looks) = EXIT_POLL;
        for _ in 0..looks {
            if matches!(child.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(pause);
        }
        // Both fail only if the process has already exited.
        drop(child.kill());
        drop(child.wait());
    }
}

/// Reads the next response of the server, and skips notifications.
fn read_answer(output: &mut impl BufRead) -> Result<Vec<u8>, String> {
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

fn parse_json(line: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(line).map_err(|error| format!("the server does not speak JSON: {error}"))
}

fn check_no_error(result: Value) -> Result<Value, String> {
    if result["isError"] == true || result["content"].is_null() {
        return Err(format!("a call failed: {}", result["content"]));
    }
    Ok(result)
}

pub(crate) fn to_milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// Peak resident memory of a running process in MB.
pub(crate) fn process_peak_megabytes(process: u32) -> Result<f64, String> {
    let path = format!("/proc/{}/status", process);
    let status = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let kilobytes: Option<f64> = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    kilobytes.map(|kilobytes| kilobytes / 1024.0).ok_or_else(|| format!("{path} has no VmHWM"))
}
