//! A repository's history as texts: what each commit changed, and what two sides changed before they were merged.
//!
//! Owns the questions to git. Promises texts as they were committed. Never writes to the repository.

use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use super::{COMMITS_MAX, Fork, Pair, is_of_interest, stale};

/// What a history has to offer.
#[derive(Debug)]
pub(super) struct History {
    pub(super) commits: usize,
    /// Each file that a commit changed.
    pub(super) pairs: Vec<Pair>,
    /// Each file that both sides of a merge changed.
    pub(super) merges: Vec<Fork>,
    /// Each file that a commit changed, with what the next commit to change it wanted as far as that was possible before.
    pub(super) followed: Vec<Fork>,
}

/// A file that was modified, by the names of its contents.
#[derive(Debug)]
struct Modified {
    path: String,
    before: String,
    after: String,
}

impl History {
    /// Reads the newest commits of the repository in `directory`.
    pub(super) fn read(directory: &Path) -> Result<Self, String> {
        let most = format!("--max-count={COMMITS_MAX}");
        let log = git(directory, &["log", &most, "--format=%H %P"])?;
        let mut objects = Objects::open(directory)?;
        let mut pairs = Vec::new();
        let mut merges = Vec::new();
        let mut followed = Vec::new();
        // The next change of each file: what it was before, and what it became.
        let mut next: HashMap<String, (String, usize)> = HashMap::new();
        for commit in log.lines() {
            let names: Vec<&str> = commit.split(' ').filter(|name| !name.is_empty()).collect();
            match names.as_slice() {
                [_, ours, theirs] => merges.extend(forks(directory, &mut objects, ours, theirs)?),
                [commit, parent] => {
                    for file in modified(directory, parent, commit)? {
                        let Some(pair) = objects.pair(&file)? else { continue };
                        let Modified { path, before, after } = file;
                        let later = next.get(&path).filter(|(name, _)| *name == after).map(|(_, at)| *at);
                        let later: Option<&Pair> = later.and_then(|at| pairs.get(at));
                        followed.extend(later.and_then(|later| stale::follow(&pair, later)));
                        next.insert(path, (before, pairs.len()));
                        pairs.push(pair);
                    }
                }
                _ => {}
            }
        }
        Ok(Self { commits: log.lines().count(), pairs, merges, followed })
    }
}

/// The files that both sides of a merge changed since they parted.
fn forks(directory: &Path, objects: &mut Objects, ours: &str, theirs: &str) -> Result<Vec<Fork>, String> {
    // Histories without a common commit, or with one that is not here, have nothing to merge from.
    let Ok(base) = git(directory, &["merge-base", ours, theirs]) else { return Ok(Vec::new()) };
    let mut current: HashMap<String, Modified> =
        modified(directory, base.trim(), ours)?.into_iter().map(|file| (file.path.clone(), file)).collect();
    let mut forks = Vec::new();
    for file in modified(directory, base.trim(), theirs)? {
        let Some(other) = current.remove(&file.path).filter(|other| other.after != file.after) else {
            continue;
        };
        if let (Some(wanted), Some(current)) = (objects.pair(&file)?, objects.pair(&other)?) {
            forks.push(Fork {
                name: wanted.name,
                base: wanted.old,
                wanted: wanted.new,
                current: current.new,
            });
        }
    }
    Ok(forks)
}

fn modified(directory: &Path, from: &str, to: &str) -> Result<Vec<Modified>, String> {
    let flags = ["diff", "--raw", "-z", "--no-renames", "--abbrev=64", "--diff-filter=M"];
    let raw = git(directory, &[&flags[..], &[from, to]].concat())?;
    let mut fields = raw.split('\0');
    let mut found = Vec::new();
    while let (Some(facts), Some(path)) = (fields.next(), fields.next()) {
        if let [_, "100644" | "100755", before, after, _] = facts.split(' ').collect::<Vec<_>>()[..] {
            let (path, before, after) = (path.to_owned(), before.to_owned(), after.to_owned());
            found.push(Modified { path, before, after });
        }
    }
    Ok(found)
}

fn git(directory: &Path, arguments: &[&str]) -> Result<String, String> {
    let run = Command::new("git").arg("-C").arg(directory).args(arguments).stdin(Stdio::null()).output();
    let output = run.map_err(|error| format!("git: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// One `git cat-file --batch`, asked for one object after the other. It ends when its input does.
struct Objects {
    directory: PathBuf,
    process: Child,
    asks: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Objects {
    fn open(directory: &Path) -> Result<Self, String> {
        let mut command = Command::new("git");
        command.arg("-C").arg(directory).args(["cat-file", "--batch"]);
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("git: {error}"))?;
        let (asks, answers) = (process.stdin.take(), process.stdout.take());
        let answers = answers.ok_or("git cat-file: no output")?;
        Ok(Self { directory: directory.to_owned(), process, asks, answers: BufReader::new(answers) })
    }

    /// Both contents of a file, if they are texts of interest.
    fn pair(&mut self, file: &Modified) -> Result<Option<Pair>, String> {
        let (old, new) = (self.content(&file.before)?, self.content(&file.after)?);
        if !is_of_interest(&file.path, &old) || !is_of_interest(&file.path, &new) {
            return Ok(None);
        }
        let (Ok(old), Ok(new)) = (String::from_utf8(old), String::from_utf8(new)) else { return Ok(None) };
        Ok(Some(Pair { name: file.path.clone(), old, new }))
    }

    fn content(&mut self, name: &str) -> Result<Vec<u8>, String> {
        self.ask(name).map_err(|error| format!("{}: object {name}: {error}", self.directory.display()))
    }

    fn ask(&mut self, name: &str) -> std::io::Result<Vec<u8>> {
        if let Some(asks) = &mut self.asks {
            writeln!(asks, "{name}")?;
            asks.flush()?;
        }
        let mut header = String::new();
        self.answers.read_line(&mut header)?;
        let size = header.split_whitespace().nth(2).and_then(|size| size.parse::<usize>().ok());
        let size = size.ok_or_else(|| std::io::Error::other(header.trim().to_owned()))?;
        let mut content = vec![0; size + 1];
        self.answers.read_exact(&mut content)?;
        content.truncate(size);
        Ok(content)
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        drop(self.asks.take());
        if let Err(error) = self.process.wait() {
            eprintln!("git cat-file: {error}");
        }
    }
}
