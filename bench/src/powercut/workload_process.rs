//! Starts the workload process, which makes changes, and the checker process, and exchanges lines with them.

use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// The longest wait until the workload process has made its changes.
const WORKLOAD_TIMEOUT: Duration = Duration::from_secs(120);
/// The prefix of the lines of the workload's output that are messages to the test.
const LINE_MARKER: &str = "@@ ";

/// The program that makes changes (the workload) and that checks the disk after a power cut.
pub(super) struct PowercutWorkloadBinary(PathBuf);

impl PowercutWorkloadBinary {
    /// Builds the binary with optimisation, because the checker would otherwise dominate the run time.
    pub(super) fn build() -> Result<Self, String> {
        let arguments = ["build", "--quiet", "--release", "--package", "testkit", "--bin", "workload"];
        crate::run_program(Command::new("cargo").args(arguments))?;
        Ok(Self(crate::needs::target_directory().join("release").join("workload")))
    }

    /// Runs the checker process, which checks the disk after a power cut.
    pub(super) fn check_power_cut(&self, cut: &Value) -> Result<Value, String> {
        let text = |error: std::io::Error| format!("judge: {error}");
        let mut child = Command::new(&self.0)
            .arg("judge")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(text)?;
        if let Some(mut input) = child.stdin.take() {
            writeln!(input, "{cut}").map_err(text)?;
        }
        let output = child.wait_with_output().map_err(text)?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        serde_json::from_slice(&output.stdout).map_err(|error| format!("judge: {error}"))
    }
}

pub(super) struct PowerCutWorkloadProcess {
    child: Child,
    messages: Arc<Mutex<Vec<Value>>>,
    reader: Option<JoinHandle<()>>,
}

impl PowerCutWorkloadProcess {
    pub(super) fn start(binary: &PowercutWorkloadBinary, work: &Value) -> Result<Self, String> {
        let text = |error: std::io::Error| format!("workload: {error}");
        let mut child =
            Command::new(&binary.0).arg("run").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(text)?;
        let output = BufReader::new(child.stdout.take().ok_or("workload: no output")?);
        let messages: Arc<Mutex<Vec<Value>>> = Arc::default();
        let reader_messages = Arc::clone(&messages);
        let reader = std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let message = line.split_once(LINE_MARKER).and_then(|(_, message)| serde_json::from_str(message).ok());
                reader_messages.lock().unwrap_or_else(PoisonError::into_inner).extend(message);
            }
        });
        let mut life = Self { child, messages, reader: Some(reader) };
        let input = life.child.stdin.as_mut().ok_or("workload: no input")?;
        writeln!(input, "{work}").map_err(text)?;
        Ok(life)
    }

    /// Waits until `changes` changes are acknowledged and `wait_us` microseconds longer. Returns the number of changes
    /// acknowledged by then.
    pub(super) fn wait_for_changes(&mut self, changes: u64, wait_us: u64) -> Result<usize, String> {
        let started = Instant::now();
        while (self.count_acknowledged()? as u64) < changes {
            if started.elapsed() > WORKLOAD_TIMEOUT {
                return Err("the workload makes no changes".to_owned());
            }
            std::thread::yield_now();
        }
        let until = Instant::now() + Duration::from_micros(wait_us);
        while Instant::now() < until {
            std::thread::yield_now();
        }
        self.count_acknowledged()
    }

    fn count_acknowledged(&self) -> Result<usize, String> {
        let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failed) = messages.iter().find_map(|message| message.get("Failed")) {
            return Err(format!("a change failed: {failed}"));
        }
        Ok(messages.iter().filter(|message| message.get("Done").is_some()).count())
    }

    /// Kills the workload process and returns all its messages.
    pub(super) fn kill(mut self) -> Result<Vec<Value>, String> {
        self.stop()?;
        self.count_acknowledged()?;
        Ok(self.messages.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn stop(&mut self) -> Result<(), String> {
        let Some(reader) = self.reader.take() else { return Ok(()) };
        let text = |error: std::io::Error| format!("workload: {error}");
        self.child.kill().map_err(text)?;
        self.child.wait().map_err(text)?;
        reader.join().map_err(|_| "the reader fell over".to_owned())
    }
}

impl Drop for PowerCutWorkloadProcess {
    fn drop(&mut self) {
        if let Err(text) = self.stop() {
            eprintln!("powercut: {text}");
        }
    }
}

/// Splits the reported changes into those that were certainly acknowledged before the power cut, and all others.
pub(super) fn split_changes(messages: &[Value], certain: usize) -> Result<(Vec<Value>, Vec<Value>), String> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut open: Option<&Value> = None;
    for message in messages {
        if let Some(step) = message.get("Begin") {
            open = Some(step);
        } else if let Some(ack) = message.get("Done") {
            let step = open.take().ok_or("done without a beginning")?;
            let side = if before.len() < certain { &mut before } else { &mut after };
            side.push(json!([step, ack]));
        }
    }
    after.extend(open.map(|step| json!([step, null])));
    Ok((before, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_split_at_the_cut() {
        let messages: Vec<Value> =
            vec![json!("Open"), json!({"Begin": "Undo"}), json!({"Done": 1}), json!({"Begin": "Redo"})];
        let (before, after) = split_changes(&messages, 1).unwrap();
        assert_eq!((before, after), (vec![json!(["Undo", 1])], vec![json!(["Redo", null])]));
        let (before, after) = split_changes(&messages, 0).unwrap();
        assert_eq!((before.len(), after.len()), (0, 2));
    }
}
