//! From a commit's subject line to a file that it changed, on the tree as it was before a few of the commits.

use std::{
    fmt,
    path::Path,
    process::{Command, Stdio},
};

use text::rank::prose;

use super::packages::{Source, sources};

/// The newest commits that are asked about.
const COMMITS_MAX: usize = 120;
/// A commit that changes more files than this says too little about each.
const CHANGED_MAX: usize = 3;
/// Commits that are asked about on one tree.
const COMMITS_PER_TREE: usize = 10;
/// How early is early.
const DEPTHS: [usize; 3] = [1, 5, 10];

/// How many commits were found how early.
#[derive(Debug, Default)]
pub(super) struct Early {
    files: usize,
    commits: usize,
    within: [usize; DEPTHS.len()],
}

/// A commit as its author described it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) name: String,
    pub(super) subject: String,
    pub(super) changed: Vec<String>,
}

/// Asks about the newest commits of a repository.
pub(super) fn ask(repository: &Path) -> Result<Early, String> {
    let log =
        git(repository, &["log", "--no-merges", "--diff-filter=M", "--name-only", "--format=%x01%H%x09%s"])?;
    let mut commits: Vec<Commit> =
        read(&log).into_iter().filter(|commit| (1..=CHANGED_MAX).contains(&commit.changed.len())).collect();
    commits.truncate(COMMITS_MAX);
    let mut early = Early::default();
    for block in commits.chunks(COMMITS_PER_TREE) {
        early.ask(repository, block)?;
    }
    Ok(early)
}

impl Early {
    /// Asks about commits on the tree before the oldest of them.
    fn ask(&mut self, repository: &Path, commits: &[Commit]) -> Result<(), String> {
        let Some(oldest) = commits.last() else { return Ok(()) };
        let tree = tempfile::tempdir().map_err(|error| error.to_string())?;
        check_out(repository, &format!("{}^", oldest.name), tree.path())?;
        self.ask_on(&sources(tree.path())?, commits);
        Ok(())
    }

    /// Asks about those commits that change few enough files of a tree.
    pub(super) fn ask_on(&mut self, sources: &[Source], commits: &[Commit]) {
        self.files = self.files.max(sources.len());
        for commit in commits.iter().filter(|commit| commit.changed.len() <= CHANGED_MAX) {
            let there = |path: &String| sources.iter().any(|source| source.path == *path);
            if !commit.changed.iter().any(there) {
                continue;
            }
            self.commits += 1;
            let place = ranked(sources, &commit.subject)
                .iter()
                .position(|path| commit.changed.iter().any(|changed| changed == path));
            for (within, depth) in self.within.iter_mut().zip(DEPTHS) {
                *within += usize::from(place.is_some_and(|place| place < depth));
            }
        }
    }
}

/// Paths in the order in which ranking shows them for a question.
fn ranked<'a>(sources: &'a [Source], question: &str) -> Vec<&'a str> {
    let words = prose::words(question);
    let mut tallies = Vec::new();
    let mut paths = Vec::new();
    for source in sources {
        let mut tally = prose::Tally::new(&source.path, source.text.len() as u64, &words);
        for line in source.text.lines() {
            tally.add(line, &words);
        }
        if tally.present() > 0 {
            tallies.push(tally);
            paths.push(source.path.as_str());
        }
    }
    prose::order(&tallies, sources.len() as u64).into_iter().map(|at| paths[at]).collect()
}

fn read(log: &str) -> Vec<Commit> {
    log.split('\u{1}')
        .filter_map(|part| {
            let (head, changed) = part.split_once('\n')?;
            let (name, subject) = head.split_once('\t')?;
            let changed = changed.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
            Some(Commit { name: name.to_owned(), subject: subject.to_owned(), changed })
        })
        .collect()
}

/// Writes the files of a commit into an empty directory.
fn check_out(repository: &Path, commit: &str, into: &Path) -> Result<(), String> {
    let explain = |error: std::io::Error| format!("git archive: {error}");
    let mut archive = Command::new("git")
        .arg("-C")
        .arg(repository)
        .args(["archive", commit])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(explain)?;
    let archived = archive.stdout.take().ok_or("git archive says nothing")?;
    let unpacked =
        Command::new("tar").arg("-x").arg("-C").arg(into).stdin(archived).status().map_err(explain)?;
    let archived = archive.wait().map_err(explain)?;
    if archived.success() && unpacked.success() {
        Ok(())
    } else {
        Err(format!("{commit} cannot be unpacked"))
    }
}

fn git(directory: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").arg("-C").arg(directory).args(arguments).output();
    let output = output.map_err(|error| format!("git: {error}"))?;
    if !output.status.success() {
        return Err(format!("git: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl fmt::Display for Early {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |count: usize| 100.0 * count as f64 / self.commits.max(1) as f64;
        let [one, five, ten] = self.within.map(share);
        write!(f, "{} commits, {} files, subject line to changed file: ", self.commits, self.files)?;
        write!(f, "first {one:.1} %, in five {five:.1} %, in ten {ten:.1} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read() {
        let commits = read("\u{1}aa\tdisk: a lease\n\nsrc/a.rs\nsrc/b.rs\n\u{1}bb\tdocs\n");
        assert_eq!(commits.len(), 2);
        assert_eq!((commits[0].subject.as_str(), commits[0].changed.len()), ("disk: a lease", 2));
        assert!(commits[1].changed.is_empty());
    }
}
