//! Ripgrep, from the system's package manager: how it is asked for the same things as the server. It is told to look at
//! nothing outside the tree, and to obey a project's ignore files whether or not the tree is a repository.

use std::{
    collections::BTreeSet,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::bench::speaker::{milliseconds, peak_megabytes};

/// A place that a search found: a path below the tree, and a line.
pub(super) type Spot = (Vec<u8>, u64);

/// Whether ignore files and the rule about hidden names count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    Obeyed,
    Off,
}

/// How a query is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    Literal,
    Regex,
}

/// Ripgrep, installed.
pub(super) struct Ripgrep {
    pub(super) version: String,
}

const PROGRAM: &str = "rg";
/// How often its memory is looked at.
const PEAK_LOOK: Duration = Duration::from_millis(1);
const ALWAYS: &[&str] = &[
    "--no-config",
    "--no-messages",
    "--no-require-git",
    "--no-ignore-parent",
    "--no-ignore-global",
    "--color=never",
];

impl Ripgrep {
    /// Gets it, if need be.
    pub(super) fn get() -> Result<Self, String> {
        crate::needs::ripgrep()?;
        let said = Command::new(PROGRAM).arg("--version").output().map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        Ok(Self { version: said.lines().next().unwrap_or(PROGRAM).to_owned() })
    }

    /// Every line that holds a query.
    pub(super) fn spots(
        &self,
        tree: &Path,
        query: &str,
        syntax: Syntax,
        rules: Rules,
    ) -> Result<BTreeSet<Spot>, String> {
        let mut command = asked(tree, rules);
        if syntax == Syntax::Literal {
            command.arg("--fixed-strings");
        }
        command.args(["--line-number", "--no-heading", "--with-filename", "--null", "--regexp", query, "./"]);
        let said = command.output().map_err(|error| format!("{PROGRAM}: {error}"))?;
        if !matches!(said.status.code(), Some(0..=1)) {
            return Err(format!("{PROGRAM} {query}: {}", String::from_utf8_lossy(&said.stderr)));
        }
        Ok(said.stdout.split(|byte| *byte == b'\n').filter_map(spot).collect())
    }

    /// How many lines hold a text, and how long that took from start to end.
    pub(super) fn count(&self, tree: &Path, query: &str, rules: Rules) -> Result<(u64, f64), String> {
        let mut command = asked(tree, rules);
        command.args(["--fixed-strings", "--line-number", "--no-heading", "--regexp", query, "./"]);
        lines(&mut command)
    }

    /// The most memory that a search holds, in MB, as seen while it runs.
    pub(super) fn peak_megabytes(&self, tree: &Path, query: &str, rules: Rules) -> Result<f64, String> {
        let mut command = asked(tree, rules);
        command.args(["--fixed-strings", "--line-number", "--no-heading", "--regexp", query, "./"]);
        let said = |error: std::io::Error| format!("{PROGRAM}: {error}");
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(said)?;
        let mut output = child.stdout.take().ok_or("no output")?;
        let drain = thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        let mut most = 0.0_f64;
        while child.try_wait().map_err(said)?.is_none() {
            // Gone when it has just ended; what was seen before counts.
            most = most.max(peak_megabytes(child.id()).unwrap_or(0.0));
            thread::sleep(PEAK_LOOK);
        }
        drop(drain.join());
        Ok(most)
    }

    /// How many files have a name, and how long that took.
    pub(super) fn names(&self, tree: &Path, name: &str) -> Result<(u64, f64), String> {
        let mut command = asked(tree, Rules::Obeyed);
        lines(command.args(["--files", "--glob", name, "./"]))
    }
}

fn asked(tree: &Path, rules: Rules) -> Command {
    let mut command = Command::new(PROGRAM);
    command.current_dir(tree).args(ALWAYS);
    if rules == Rules::Off {
        command.args(["--no-ignore", "--hidden"]);
    }
    command
}

fn lines(command: &mut Command) -> Result<(u64, f64), String> {
    let started = Instant::now();
    let said = command.output().map_err(|error| format!("{PROGRAM}: {error}"))?;
    let ended = started.elapsed();
    Ok((said.stdout.iter().filter(|byte| **byte == b'\n').count() as u64, milliseconds(ended)))
}

/// A line of output as a place; nothing for a line that is no hit, such as a note about a binary file.
fn spot(line: &[u8]) -> Option<Spot> {
    let end = line.iter().position(|byte| *byte == 0)?;
    let path = line[..end].strip_prefix(b"./").unwrap_or(&line[..end]);
    let rest = &line[end + 1..];
    let digits = rest.iter().position(|byte| *byte == b':')?;
    let number = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    Some((path.to_vec(), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_read_as_places() {
        assert_eq!(spot(b"./a/b.rs\x0012:let x: u8"), Some((b"a/b.rs".to_vec(), 12)));
        assert_eq!(spot(b"./a/b.pyc: binary file matches"), None);
    }
}
