//! `cargo xtask bench edits` applies stale edits made from real Git history.
//!
//! The benchmark measures whether an edit of an old text applies to the current text with the same result as `git
//! merge-file`. It also measures whether the hint for a quote that no longer occurs names the lines that replaced the
//! quote. The benchmark fails if a single result differs from a clean merge of `git merge-file`.

mod crate_versions;
mod git_history;
mod hints;
mod stale_edits;

use std::{path::PathBuf, time::Instant};

use git_history::GitHistoryBenchCases;
use hints::EditHintBenchStatistics;
use stale_edits::{StaleEditGitMergeBenchRunner, StaleEditTally};

/// The number of newest commits of a repository that the benchmark reads.
const COMMITS_MAX: usize = 2000;

/// Files with more bytes than this are skipped.
const TEXT_BYTES_MAX: usize = 400_000;
const GENERATED_FILE_ENDINGS: &[&str] = &[".lock", ".json", ".jsonl", ".svg"];

/// A file before and after a commit.
#[derive(Debug)]
struct BenchOldAndNewText {
    name: String,
    old: String,
    new: String,
}

/// A text and two changed versions of it, as if two writers changed it at the same time.
#[derive(Debug)]
struct DivergedTextBenchCase {
    name: String,
    base: String,
    /// The version of the caller, whose changes are applied as edits to `current`.
    wanted: String,
    current: String,
}

#[derive(Debug, PartialEq, Eq)]
struct EditsBenchOptions {
    repository: PathBuf,
    crates: Option<PathBuf>,
    detail: HintBenchReportDetailLevel,
}

/// Whether the report lists each wrong hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HintBenchReportDetailLevel {
    Summary,
    WithMisses,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let wish = parse_options(arguments)?;
    let started = Instant::now();
    let mut judge = StaleEditGitMergeBenchRunner::new()?;
    let history = GitHistoryBenchCases::load(&wish.repository)?;
    println!("{}: {} commits", wish.repository.display(), history.commits);
    let mut hints = EditHintBenchStatistics::default();
    history.changed_files.iter().for_each(|pair| hints.measure(pair));
    let mut differing = apply_and_report("merge commits", &mut judge, &history.merged_files)?;
    differing += apply_and_report("a commit's changes under the next one's", &mut judge, &history.successive_changes)?;
    differing += apply_and_report("every other change of a commit", &mut judge, &split_all(&history.changed_files))?;
    hints.report(wish.detail);
    if let Some(directory) = &wish.crates {
        let pairs = crate_versions::changed_files(directory)?;
        println!("{}: {} files that differ between two versions", directory.display(), pairs.len());
        let mut hints = EditHintBenchStatistics::default();
        pairs.iter().for_each(|pair| hints.measure(pair));
        differing += apply_and_report("every other change of a version", &mut judge, &split_all(&pairs))?;
        hints.report(wish.detail);
    }
    println!("took {:.1} s", started.elapsed().as_secs_f64());
    if differing == 0 { Ok(()) } else { Err(format!("{differing} results differ from git merge-file")) }
}

fn split_all(pairs: &[BenchOldAndNewText]) -> Vec<DivergedTextBenchCase> {
    pairs.iter().filter_map(stale_edits::split_changes).collect()
}

/// Applies the edits of `forks`, prints statistics, and returns the number of results that differ from Git's.
fn apply_and_report(
    what: &str,
    judge: &mut StaleEditGitMergeBenchRunner,
    forks: &[DivergedTextBenchCase],
) -> Result<usize, String> {
    let mut tally = StaleEditTally::default();
    for fork in forks {
        judge.apply(fork, &mut tally)?;
    }
    if tally.files > 0 {
        println!("{what}: {tally}");
    }
    Ok(tally.count_differing())
}

/// Whether a text is short enough and not generated.
fn is_handwritten_text(name: &str, text: &[u8]) -> bool {
    text.len() <= TEXT_BYTES_MAX
        && !text.contains(&0)
        && !GENERATED_FILE_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

fn parse_options(arguments: &[String]) -> Result<EditsBenchOptions, String> {
    let mut wish = EditsBenchOptions {
        repository: crate::repository_root(),
        crates: None,
        detail: HintBenchReportDetailLevel::Summary,
    };
    let mut left = arguments.iter();
    while let Some(flag) = left.next() {
        let mut value = || left.next().map(PathBuf::from).ok_or_else(|| format!("{flag} needs a directory"));
        match flag.as_str() {
            "--repository" => wish.repository = value()?,
            "--crates" => wish.crates = Some(value()?),
            "--misses" => wish.detail = HintBenchReportDetailLevel::WithMisses,
            other => {
                return Err(format!("unknown argument '{other}'; usage: edits --repository DIR --crates DIR --misses"));
            }
        }
    }
    Ok(wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_flags_are_parsed_and_others_rejected() {
        let parsed = |arguments: &[&str]| {
            parse_options(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
        };
        let wish = parsed(&["--repository", "a", "--crates", "b", "--misses"]).unwrap();
        let expected = EditsBenchOptions {
            repository: "a".into(),
            crates: Some("b".into()),
            detail: HintBenchReportDetailLevel::WithMisses,
        };
        assert_eq!(wish, expected);
        assert!(parsed(&["--crates"]).is_err());
        assert!(parsed(&["--rounds", "3"]).unwrap_err().contains("--misses"));
    }

    #[test]
    fn generated_and_binary_files_are_skipped() {
        assert!(is_handwritten_text("src/a.rs", b"fn a() {}\n"));
        assert!(!is_handwritten_text("Cargo.lock", b"x"));
        assert!(!is_handwritten_text("a.bin", b"\0"));
        assert!(!is_handwritten_text("a.rs", &vec![b'x'; TEXT_BYTES_MAX + 1]));
    }
}
