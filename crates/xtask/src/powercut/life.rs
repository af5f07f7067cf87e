//! The process that makes the changes and the one that judges them, from the outside: lines in, lines out.

use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::target;

/// How long a life may take to come to its changes.
const PATIENCE: Duration = Duration::from_secs(120);
/// Where a line of the child starts.
const MARK: &str = "@@ ";

/// The program with both sides.
pub(super) struct Binary(PathBuf);

impl Binary {
    /// Builds it: without optimisation the judge would take longer than everything else.
    pub(super) fn build() -> Result<Self, String> {
        let arguments = ["build", "--quiet", "--release", "--package", "testkit", "--bin", "workload"];
        crate::succeed(Command::new("cargo").args(arguments))?;
        Ok(Self(target().join("release").join("workload")))
    }

    /// What is left after a cut.
    pub(super) fn judge(&self, cut: &Value) -> Result<Value, String> {
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

/// One life.
pub(super) struct Life {
    child: Child,
    said: Arc<Mutex<Vec<Value>>>,
    reader: Option<JoinHandle<()>>,
}

impl Life {
    pub(super) fn start(binary: &Binary, work: &Value) -> Result<Self, String> {
        let text = |error: std::io::Error| format!("workload: {error}");
        let mut child = Command::new(&binary.0)
            .arg("run")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(text)?;
        let output = BufReader::new(child.stdout.take().ok_or("workload: no output")?);
        let said: Arc<Mutex<Vec<Value>>> = Arc::default();
        let heard = Arc::clone(&said);
        let reader = std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let word = line.split_once(MARK).and_then(|(_, word)| serde_json::from_str(word).ok());
                heard.lock().unwrap_or_else(PoisonError::into_inner).extend(word);
            }
        });
        let mut life = Self { child, said, reader: Some(reader) };
        let input = life.child.stdin.as_mut().ok_or("workload: no input")?;
        writeln!(input, "{work}").map_err(text)?;
        Ok(life)
    }

    /// Waits for this many acknowledged changes and a little longer. Answers how many there are at the end of it.
    pub(super) fn wait_for(&mut self, changes: u64, wait_us: u64) -> Result<usize, String> {
        let started = Instant::now();
        while (self.acknowledged()? as u64) < changes {
            if started.elapsed() > PATIENCE {
                return Err("the workload makes no changes".to_owned());
            }
            std::thread::yield_now();
        }
        let until = Instant::now() + Duration::from_micros(wait_us);
        while Instant::now() < until {
            std::thread::yield_now();
        }
        self.acknowledged()
    }

    fn acknowledged(&self) -> Result<usize, String> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failed) = said.iter().find_map(|word| word.get("Failed")) {
            return Err(format!("a change failed: {failed}"));
        }
        Ok(said.iter().filter(|word| word.get("Done").is_some()).count())
    }

    /// Ends it. Answers everything it said.
    pub(super) fn kill(mut self) -> Result<Vec<Value>, String> {
        self.end()?;
        self.acknowledged()?;
        Ok(self.said.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn end(&mut self) -> Result<(), String> {
        let Some(reader) = self.reader.take() else { return Ok(()) };
        let text = |error: std::io::Error| format!("workload: {error}");
        self.child.kill().map_err(text)?;
        self.child.wait().map_err(text)?;
        reader.join().map_err(|_| "the reader fell over".to_owned())
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if let Err(text) = self.end() {
            eprintln!("powercut: {text}");
        }
    }
}

/// What was said, as changes: those certain to have been acknowledged before the cut, and the rest.
pub(super) fn split(said: &[Value], certain: usize) -> Result<(Vec<Value>, Vec<Value>), String> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut open: Option<&Value> = None;
    for word in said {
        if let Some(step) = word.get("Begin") {
            open = Some(step);
        } else if let Some(ack) = word.get("Done") {
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
    fn what_was_said_is_split_at_the_cut() {
        let said: Vec<Value> =
            vec![json!("Open"), json!({"Begin": "Undo"}), json!({"Done": 1}), json!({"Begin": "Redo"})];
        let (before, after) = split(&said, 1).unwrap();
        assert_eq!((before, after), (vec![json!(["Undo", 1])], vec![json!(["Redo", null])]));
        let (before, after) = split(&said, 0).unwrap();
        assert_eq!((before.len(), after.len()), (0, 2));
    }
}
