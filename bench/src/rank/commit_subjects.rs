//! Searches for the subject line of a commit, and finds the rank of the files that the commit changed. Ten commits at a
//! time are measured on the tree before the oldest of them.

use std::{
    fmt,
    path::Path,
    process::{Command, Stdio},
};

use stead_text::rank::natural_language;

use super::packages::{BenchPackageSourceFile, read_source_texts};

const COMMITS_MAX: usize = 120;
/// Commits that change more files than this are skipped, because their subject says too little about each file.
const CHANGED_FILES_MAX: usize = 3;
const COMMITS_PER_TREE: usize = 10;
const RANK_DEPTHS: [usize; 3] = [1, 5, 10];

/// The number of commits of which a changed file is among the first 1, 5 or 10 search results.
#[derive(Debug, Default)]
pub(super) struct RankBenchTopResultCounts {
    files: usize,
    commits: usize,
    found_within_depth: [usize; RANK_DEPTHS.len()],
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct RankBenchGitCommit {
    pub(super) name: String,
    pub(super) subject: String,
    pub(super) changed_paths: Vec<String>,
}

/// Measures the newest commits of a repository.
pub(super) fn measure_repository(repository: &Path) -> Result<RankBenchTopResultCounts, String> {
    let log = run_git(repository, &["log", "--no-merges", "--diff-filter=M", "--name-only", "--format=%x01%H%x09%s"])?;
    let mut commits: Vec<RankBenchGitCommit> = parse_log(&log)
        .into_iter()
        .filter(|commit| (1..=CHANGED_FILES_MAX).contains(&commit.changed_paths.len()))
        .collect();
    commits.truncate(COMMITS_MAX);
    let mut early = RankBenchTopResultCounts::default();
    for block in commits.chunks(COMMITS_PER_TREE) {
        early.measure_commits(repository, block)?;
    }
    Ok(early)
}

impl RankBenchTopResultCounts {
    /// Measures a group of commits, with a search in the source tree before the oldest of them.
    fn measure_commits(&mut self, repository: &Path, commits: &[RankBenchGitCommit]) -> Result<(), String> {
        let Some(oldest) = commits.last() else { return Ok(()) };
        let tree = tempfile::tempdir().map_err(|error| error.to_string())?;
        check_out_commit(repository, &format!("{}^", oldest.name), tree.path())?;
        self.measure_on_tree(&read_source_texts(tree.path())?, commits);
        Ok(())
    }

    /// Measures the commits that change at most [`CHANGED_FILES_MAX`] files, with a search in the given source files.
    pub(super) fn measure_on_tree(&mut self, sources: &[BenchPackageSourceFile], commits: &[RankBenchGitCommit]) {
        self.files = self.files.max(sources.len());
        for commit in commits.iter().filter(|commit| commit.changed_paths.len() <= CHANGED_FILES_MAX) {
            let there = |path: &String| sources.iter().any(|source| source.path == *path);
            if !commit.changed_paths.iter().any(there) {
                continue;
            }
            self.commits += 1;
            let place = rank_paths(sources, &commit.subject)
                .iter()
                .position(|path| commit.changed_paths.iter().any(|changed| changed == path));
            for (within, depth) in self.found_within_depth.iter_mut().zip(RANK_DEPTHS) {
                *within += usize::from(place.is_some_and(|place| place < depth));
            }
        }
    }
}

/// The paths of the files that match a question, in ranking order.
fn rank_paths<'a>(sources: &'a [BenchPackageSourceFile], question: &str) -> Vec<&'a str> {
    let words = natural_language::query_words(question);
    let mut tallies = Vec::new();
    let mut paths = Vec::new();
    for source in sources {
        let mut tally = natural_language::FileQueryWordCounts::new(&source.path, source.text.len() as u64, &words);
        for line in source.text.lines() {
            tally.add_line(line, &words);
        }
        if tally.distinct_words_found() > 0 {
            tallies.push(tally);
            paths.push(source.path.as_str());
        }
    }
    natural_language::rank_files(&tallies, sources.len() as u64).into_iter().map(|at| paths[at]).collect()
}

fn parse_log(log: &str) -> Vec<RankBenchGitCommit> {
    log.split('\u{1}')
        .filter_map(|part| {
            let (head, changed) = part.split_once('\n')?;
            let (name, subject) = head.split_once('\t')?;
            let changed = changed.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
            Some(RankBenchGitCommit { name: name.to_owned(), subject: subject.to_owned(), changed_paths: changed })
        })
        .collect()
}

/// Writes the files of a commit into an empty directory.
fn check_out_commit(repository: &Path, commit: &str, into: &Path) -> Result<(), String> {
    let explain = |error: std::io::Error| format!("git archive: {error}");
    let mut archive = Command::new("git")
        .arg("-C")
        .arg(repository)
        .args(["archive", commit])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(explain)?;
    let archived = archive.stdout.take().ok_or("git archive has no output")?;
    let unpacked = Command::new("tar").arg("-x").arg("-C").arg(into).stdin(archived).status().map_err(explain)?;
    let archived = archive.wait().map_err(explain)?;
    if archived.success() && unpacked.success() { Ok(()) } else { Err(format!("{commit} cannot be unpacked")) }
}

fn run_git(directory: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").arg("-C").arg(directory).args(arguments).output();
    let output = output.map_err(|error| format!("git: {error}"))?;
    if !output.status.success() {
        return Err(format!("git: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl fmt::Display for RankBenchTopResultCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |count: usize| 100.0 * count as f64 / self.commits.max(1) as f64;
        let [one, five, ten] = self.found_within_depth.map(share);
        write!(f, "{} commits, {} files, subject line to changed file: ", self.commits, self.files)?;
        write!(f, "first {one:.1} %, in five {five:.1} %, in ten {ten:.1} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_log_is_parsed() {
        let commits = parse_log("\u{1}aa\tdisk: a lease\n\nsrc/a.rs\nsrc/b.rs\n\u{1}bb\tdocs\n");
        assert_eq!(commits.len(), 2);
        assert_eq!((commits[0].subject.as_str(), commits[0].changed_paths.len()), ("disk: a lease", 2));
        assert!(commits[1].changed_paths.is_empty());
    }
}
