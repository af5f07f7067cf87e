//! Runs ripgrep with options that make it search like the server: files outside the tree have no effect, and ignore
//! files also apply outside a Git repository.

use std::{
    collections::BTreeSet,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::mcp_client::{process_peak_megabytes, to_milliseconds};

/// A matching line: the path relative to the searched tree, and the line number.
pub(super) type SearchBenchHitLine = (Vec<u8>, u64);

/// Whether a search skips hidden and ignored files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BenchIgnoreRulesMode {
    Respect,
    Ignore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RipgrepBenchPatternKind {
    Literal,
    Regex,
}

pub(super) struct Ripgrep {
    pub(super) version: String,
}

const PROGRAM: &str = "rg";
const PEAK_SAMPLE_INTERVAL: Duration = Duration::from_millis(1);
const COMMON_ARGUMENTS: &[&str] =
    &["--no-config", "--no-messages", "--no-require-git", "--no-ignore-parent", "--no-ignore-global", "--color=never"];

impl Ripgrep {
    /// Installs ripgrep if needed.
    pub(super) fn install() -> Result<Self, String> {
        crate::needs::require_ripgrep()?;
        let output = Command::new(PROGRAM).arg("--version").output().map_err(|error| error.to_string())?;
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(Self { version: output.lines().next().unwrap_or(PROGRAM).to_owned() })
    }

    /// All lines that match a query.
    pub(super) fn find_hits(
        &self,
        tree: &Path,
        query: &str,
        syntax: RipgrepBenchPatternKind,
        rules: BenchIgnoreRulesMode,
    ) -> Result<BTreeSet<SearchBenchHitLine>, String> {
        let mut command = ripgrep_command(tree, rules);
        if syntax == RipgrepBenchPatternKind::Literal {
            command.arg("--fixed-strings");
        }
        command.args(["--line-number", "--no-heading", "--with-filename", "--null", "--regexp", query, "./"]);
        let output = command.output().map_err(|error| format!("{PROGRAM}: {error}"))?;
        if !matches!(output.status.code(), Some(0..=1)) {
            return Err(format!("{PROGRAM} {query}: {}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(output.stdout.split(|byte| *byte == b'\n').filter_map(parse_hit).collect())
    }

    /// The number of lines that contain a text, and the run time of ripgrep.
    pub(super) fn count_lines(
        &self,
        tree: &Path,
        query: &str,
        rules: BenchIgnoreRulesMode,
    ) -> Result<(u64, f64), String> {
        let mut command = ripgrep_command(tree, rules);
        command.args(["--fixed-strings", "--line-number", "--no-heading", "--regexp", query, "./"]);
        count_output_lines(&mut command)
    }

    /// The peak memory of ripgrep during a search in MB.
    pub(super) fn peak_megabytes(&self, tree: &Path, query: &str, rules: BenchIgnoreRulesMode) -> Result<f64, String> {
        let mut command = ripgrep_command(tree, rules);
        command.args(["--fixed-strings", "--line-number", "--no-heading", "--regexp", query, "./"]);
        let failed = |error: std::io::Error| format!("{PROGRAM}: {error}");
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
        let mut output = child.stdout.take().ok_or("no output")?;
        let drain = thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        let mut most = 0.0_f64;
        while child.try_wait().map_err(failed)?.is_none() {
            // Fails if the process has just exited; earlier samples count.
            most = most.max(process_peak_megabytes(child.id()).unwrap_or(0.0));
            thread::sleep(PEAK_SAMPLE_INTERVAL);
        }
        drop(drain.join());
        Ok(most)
    }

    /// The number of files whose name matches a glob, and the run time of ripgrep.
    pub(super) fn count_names(&self, tree: &Path, name: &str) -> Result<(u64, f64), String> {
        let mut command = ripgrep_command(tree, BenchIgnoreRulesMode::Respect);
        count_output_lines(command.args(["--files", "--glob", name, "./"]))
    }
}

fn ripgrep_command(tree: &Path, rules: BenchIgnoreRulesMode) -> Command {
    let mut command = Command::new(PROGRAM);
    command.current_dir(tree).args(COMMON_ARGUMENTS);
    if rules == BenchIgnoreRulesMode::Ignore {
        command.args(["--no-ignore", "--hidden"]);
    }
    command
}

fn count_output_lines(command: &mut Command) -> Result<(u64, f64), String> {
    let started = Instant::now();
    let output = command.output().map_err(|error| format!("{PROGRAM}: {error}"))?;
    let ended = started.elapsed();
    Ok((output.stdout.iter().filter(|byte| **byte == b'\n').count() as u64, to_milliseconds(ended)))
}

/// Parses a line of ripgrep's output; `None` if the line is no match, such as a note about a binary file.
fn parse_hit(line: &[u8]) -> Option<SearchBenchHitLine> {
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
    fn output_lines_are_parsed_as_hits() {
        assert_eq!(parse_hit(b"./a/b.rs\x0012:let x: u8"), Some((b"a/b.rs".to_vec(), 12)));
        assert_eq!(parse_hit(b"./a/b.pyc: binary file matches"), None);
    }
}
