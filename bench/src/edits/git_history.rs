//! Reads texts from the history of a repository: the changes of each commit, and the changes of both sides of a
//! merge.
//!
//! The Git repository is only read.

use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use super::{BenchOldAndNewText, COMMITS_MAX, DivergedTextBenchCase, is_handwritten_text, stale_edits};

#[derive(Debug)]
pub(super) struct GitHistoryBenchCases {
    pub(super) commits: usize,
    /// The old and new text of each file that a commit changed.
    pub(super) changed_files: Vec<BenchOldAndNewText>,
    /// The base and both versions of each file that both sides of a merge commit changed.
    pub(super) merged_files: Vec<DivergedTextBenchCase>,
    /// Two successive changes of a file by commits, converted to concurrent changes where possible.
    pub(super) successive_changes: Vec<DivergedTextBenchCase>,
}

/// A file that a commit modified, with the Git object ids of its old and new content.
#[derive(Debug)]
struct GitHistoryModifiedFile {
    path: String,
    before: String,
    after: String,
}

impl GitHistoryBenchCases {
    /// Reads the newest commits of the repository in `directory`.
    pub(super) fn load(directory: &Path) -> Result<Self, String> {
        let most = format!("--max-count={COMMITS_MAX}");
        let log = run_git(directory, &["log", &most, "--format=%H %P"])?;
        let mut objects = GitCatFileProcess::open(directory)?;
        let mut pairs = Vec::new();
        let mut merges = Vec::new();
        let mut followed = Vec::new();
        // The next change of each file: its old content, and the index of the change.
        let mut next: HashMap<String, (String, usize)> = HashMap::new();
        for commit in log.lines() {
            let names: Vec<&str> = commit.split(' ').filter(|name| !name.is_empty()).collect();
            match names.as_slice() {
                [_, ours, theirs] => merges.extend(merged_forks(directory, &mut objects, ours, theirs)?),
                [commit, parent] => {
                    for file in modified_files(directory, parent, commit)? {
                        let Some(pair) = objects.text_change(&file)? else { continue };
                        let GitHistoryModifiedFile { path, before, after } = file;
                        let later = next.get(&path).filter(|(name, _)| *name == after).map(|(_, at)| *at);
                        let later: Option<&BenchOldAndNewText> = later.and_then(|at| pairs.get(at));
                        followed.extend(later.and_then(|later| stale_edits::as_concurrent_change(&pair, later)));
                        next.insert(path, (before, pairs.len()));
                        pairs.push(pair);
                    }
                }
                _ => {}
            }
        }
        Ok(Self {
            commits: log.lines().count(),
            changed_files: pairs,
            merged_files: merges,
            successive_changes: followed,
        })
    }
}

/// The files that both sides of a merge changed since their common ancestor.
fn merged_forks(
    directory: &Path,
    objects: &mut GitCatFileProcess,
    ours: &str,
    theirs: &str,
) -> Result<Vec<DivergedTextBenchCase>, String> {
    // There is no merge base for unrelated or shallow histories.
    let Ok(base) = run_git(directory, &["merge-base", ours, theirs]) else { return Ok(Vec::new()) };
    let mut current: HashMap<String, GitHistoryModifiedFile> =
        modified_files(directory, base.trim(), ours)?.into_iter().map(|file| (file.path.clone(), file)).collect();
    let mut forks = Vec::new();
    for file in modified_files(directory, base.trim(), theirs)? {
        let Some(other) = current.remove(&file.path).filter(|other| other.after != file.after) else {
            continue;
        };
        if let (Some(wanted), Some(current)) = (objects.text_change(&file)?, objects.text_change(&other)?) {
            forks.push(DivergedTextBenchCase {
                name: wanted.name,
                base: wanted.old,
                wanted: wanted.new,
                current: current.new,
            });
        }
    }
    Ok(forks)
}

fn modified_files(directory: &Path, from: &str, to: &str) -> Result<Vec<GitHistoryModifiedFile>, String> {
    let flags = ["diff", "--raw", "-z", "--no-renames", "--abbrev=64", "--diff-filter=M"];
    let raw = run_git(directory, &[&flags[..], &[from, to]].concat())?;
    let mut fields = raw.split('\0');
    let mut found = Vec::new();
    while let (Some(facts), Some(path)) = (fields.next(), fields.next()) {
        if let [_, "100644" | "100755", before, after, _] = facts.split(' ').collect::<Vec<_>>()[..] {
            let (path, before, after) = (path.to_owned(), before.to_owned(), after.to_owned());
            found.push(GitHistoryModifiedFile { path, before, after });
        }
    }
    Ok(found)
}

fn run_git(directory: &Path, arguments: &[&str]) -> Result<String, String> {
    let run = Command::new("git").arg("-C").arg(directory).args(arguments).stdin(Stdio::null()).output();
    let output = run.map_err(|error| format!("git: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// A `git cat-file --batch` process, which ends with its input.
struct GitCatFileProcess {
    directory: PathBuf,
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl GitCatFileProcess {
    fn open(directory: &Path) -> Result<Self, String> {
        let mut command = Command::new("git");
        command.arg("-C").arg(directory).args(["cat-file", "--batch"]);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|error| format!("git: {error}"))?;
        let (asks, answers) = (process.stdin.take(), process.stdout.take());
        let answers = answers.ok_or("git cat-file: no output")?;
        Ok(Self { directory: directory.to_owned(), process, input: asks, output: BufReader::new(answers) })
    }

    /// The old and new content of a modified file; `None` if one of them is binary, generated or too large.
    fn text_change(&mut self, file: &GitHistoryModifiedFile) -> Result<Option<BenchOldAndNewText>, String> {
        let (old, new) = (self.object_content(&file.before)?, self.object_content(&file.after)?);
        if !is_handwritten_text(&file.path, &old) || !is_handwritten_text(&file.path, &new) {
            return Ok(None);
        }
        let (Ok(old), Ok(new)) = (String::from_utf8(old), String::from_utf8(new)) else { return Ok(None) };
        Ok(Some(BenchOldAndNewText { name: file.path.clone(), old, new }))
    }

    fn object_content(&mut self, name: &str) -> Result<Vec<u8>, String> {
        self.request_object(name).map_err(|error| format!("{}: object {name}: {error}", self.directory.display()))
    }

    fn request_object(&mut self, name: &str) -> std::io::Result<Vec<u8>> {
        if let Some(asks) = &mut self.input {
            writeln!(asks, "{name}")?;
            asks.flush()?;
        }
        let mut header = String::new();
        self.output.read_line(&mut header)?;
        let size = header.split_whitespace().nth(2).and_then(|size| size.parse::<usize>().ok());
        let size = size.ok_or_else(|| std::io::Error::other(header.trim().to_owned()))?;
        let mut content = vec![0; size + 1];
        self.output.read_exact(&mut content)?;
        content.truncate(size);
        Ok(content)
    }
}

impl Drop for GitCatFileProcess {
    fn drop(&mut self) {
        drop(self.input.take());
        if let Err(error) = self.process.wait() {
            eprintln!("git cat-file: {error}");
        }
    }
}
