//! `cargo xtask bench edits`: stale edits made from real history, and how well they end.
//!
//! Owns the order of a run and its report. Two questions are asked. An edit that was written against an old text: does
//! it apply to the text as it is now, and is the result what `git merge-file` makes of it? A quote that is no longer
//! there: does the hint name the lines that took its place? Promises to fail if a single result differs from a clean
//! one of `git merge-file`. Never changes the repository that it reads.

mod hint;
mod history;
mod stale;
mod versions;

use std::{path::PathBuf, process::Command, time::Instant};

use hint::Hints;
use history::History;
use stale::{Judge, Tally};

/// The newest commits of a repository that are looked at.
const COMMITS_MAX: usize = 2000;

/// Texts longer than this are left out, as are those that programs write.
const BYTES_MAX: usize = 400_000;
const WRITTEN_BY_PROGRAMS: &[&str] = &[".lock", ".json", ".jsonl", ".svg"];

/// A text of history, and what it became.
#[derive(Debug)]
struct Pair {
    name: String,
    old: String,
    new: String,
}

/// A text that two sides changed, each in its own way.
#[derive(Debug)]
struct Fork {
    name: String,
    base: String,
    /// What the caller wants, cut into edits.
    wanted: String,
    /// What is on disk by now.
    current: String,
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Wish {
    repository: PathBuf,
    crates: Option<PathBuf>,
    shows: Shows,
}

/// Whether the report names each hint that missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shows {
    Figures,
    Misses,
}

/// Makes the edits, applies them and reports.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let wish = wish(arguments)?;
    if cfg!(debug_assertions) {
        // The time that is reported is that of the code as it is shipped.
        let again = ["run", "--quiet", "--release", "--package", "xtask", "--", "bench", "edits"];
        return crate::succeed(Command::new("cargo").args(again).args(arguments));
    }
    let started = Instant::now();
    let mut judge = Judge::new()?;
    let history = History::read(&wish.repository)?;
    println!("{}: {} commits", wish.repository.display(), history.commits);
    let mut hints = Hints::default();
    history.pairs.iter().for_each(|pair| hints.ask(pair));
    let mut differing = report("merge commits", &mut judge, &history.merges)?;
    differing += report("a commit's changes under the next one's", &mut judge, &history.followed)?;
    differing += report("every other change of a commit", &mut judge, &dealt(&history.pairs))?;
    hints.report(wish.shows);
    if let Some(directory) = &wish.crates {
        let pairs = versions::pairs(directory)?;
        println!("{}: {} files that differ between two versions", directory.display(), pairs.len());
        let mut hints = Hints::default();
        pairs.iter().for_each(|pair| hints.ask(pair));
        differing += report("every other change of a version", &mut judge, &dealt(&pairs))?;
        hints.report(wish.shows);
    }
    println!("took {:.1} s", started.elapsed().as_secs_f64());
    if differing == 0 { Ok(()) } else { Err(format!("{differing} results differ from git merge-file")) }
}

fn dealt(pairs: &[Pair]) -> Vec<Fork> {
    pairs.iter().filter_map(stale::deal).collect()
}

/// Applies what `forks` ask for, prints what came of it, and gives the results that differ from git's.
fn report(what: &str, judge: &mut Judge, forks: &[Fork]) -> Result<usize, String> {
    let mut tally = Tally::default();
    for fork in forks {
        judge.apply(fork, &mut tally)?;
    }
    if tally.files > 0 {
        println!("{what}: {tally}");
    }
    Ok(tally.differing())
}

/// Whether an edit of this text says something: not too long, and written by hand.
fn is_of_interest(name: &str, text: &[u8]) -> bool {
    text.len() <= BYTES_MAX
        && !text.contains(&0)
        && !WRITTEN_BY_PROGRAMS.iter().any(|ending| name.ends_with(ending))
}

fn wish(arguments: &[String]) -> Result<Wish, String> {
    let mut wish = Wish { repository: crate::root(), crates: None, shows: Shows::Figures };
    let mut left = arguments.iter();
    while let Some(flag) = left.next() {
        let mut value = || left.next().map(PathBuf::from).ok_or_else(|| format!("{flag} needs a directory"));
        match flag.as_str() {
            "--repository" => wish.repository = value()?,
            "--crates" => wish.crates = Some(value()?),
            "--misses" => wish.shows = Shows::Misses,
            other => {
                return Err(format!(
                    "edits knows --repository DIR, --crates DIR and --misses, not '{other}'"
                ));
            }
        }
    }
    Ok(wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_understood_and_others_refused() {
        let parsed = |arguments: &[&str]| {
            wish(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
        };
        let wish = parsed(&["--repository", "a", "--crates", "b", "--misses"]).unwrap();
        let expected = Wish { repository: "a".into(), crates: Some("b".into()), shows: Shows::Misses };
        assert_eq!(wish, expected);
        assert!(parsed(&["--crates"]).is_err());
        assert!(parsed(&["--rounds", "3"]).unwrap_err().contains("--misses"));
    }

    #[test]
    fn what_programs_write_and_what_is_no_text_is_left_out() {
        assert!(is_of_interest("src/a.rs", b"fn a() {}\n"));
        assert!(!is_of_interest("Cargo.lock", b"x"));
        assert!(!is_of_interest("a.bin", b"\0"));
        assert!(!is_of_interest("a.rs", &vec![b'x'; BYTES_MAX + 1]));
    }
}
