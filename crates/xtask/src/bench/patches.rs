//! `cargo xtask bench patches [REPOSITORY]`: patches made from real history, and whether they end where git has them.
//!
//! Owns the making of envelopes from git's hunks and the count of how they end. Every change of a text file is tried
//! with much context and with none, with git's headings as anchors and without, all hunks together and each alone.
//! Promises to fail if one is applied in a wrong place; being refused is fine. Never changes the repository it reads.

use std::{collections::BTreeMap, process::Command};

use text::patch::{Action, Grammar, Reason, Rules, apply, parse};

/// The most commits looked at, the newest first.
const COMMITS_MAX: &str = "2000";

/// How a patch ends that must not.
const WRONG: &str = "WRONG";

/// Whether the headings that git shows stand behind `@@`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Headings {
    Shown,
    Left,
}

/// One hunk of git's diff.
struct Hunk {
    /// The 0-based line it replaces, or comes before.
    start: usize,
    heading: String,
    /// With their signs.
    lines: Vec<String>,
}

impl Hunk {
    fn is_insertion(&self) -> bool {
        self.lines.iter().all(|line| line.starts_with('+'))
    }

    fn side<'a>(&'a self, signs: &'a [char]) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter(move |line| line.starts_with(signs)).map(|line| &line[1..])
    }
}

/// What git says; nothing if it fails or says something that is not text.
fn git(repository: &str, arguments: &[&str]) -> Option<String> {
    let run = Command::new("git").arg("-C").arg(repository).args(arguments).output().ok()?;
    run.status.success().then(|| String::from_utf8(run.stdout).ok()).flatten()
}

fn hunks(diff: &str) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for line in diff.lines().skip_while(|line| !line.starts_with("@@ ")) {
        let header = line.strip_prefix("@@ -").and_then(|rest| rest.split_once(" @@"));
        if let Some((numbers, heading)) = header {
            let old = numbers.split(' ').next().unwrap_or_default();
            let (start, count) = old.split_once(',').unwrap_or((old, "1"));
            let number: usize = start.parse().unwrap_or_default();
            let start = if count == "0" { number } else { number.saturating_sub(1) };
            hunks.push(Hunk { start, heading: heading.trim().to_owned(), lines: Vec::new() });
        } else if let Some(hunk) = hunks.last_mut() {
            hunk.lines.push(line.to_owned());
        }
    }
    hunks
}

fn envelope(hunks: &[&Hunk], headings: Headings) -> String {
    let body: String = hunks
        .iter()
        .map(|hunk| {
            let heading = if headings == Headings::Shown { &hunk.heading } else { "" };
            format!("@@ {heading}\n{}\n", hunk.lines.join("\n"))
        })
        .collect();
    format!("*** Begin Patch\n*** Update File: f\n{body}*** End Patch\n")
}

/// What git would have if only these hunks were there.
fn spliced(old: &str, hunks: &[&Hunk]) -> String {
    let lines: Vec<&str> = old.split_inclusive('\n').collect();
    let mut at = 0;
    let mut text = String::new();
    for hunk in hunks {
        text.extend(lines[at..hunk.start].iter().copied());
        text.extend(hunk.side(&[' ', '+']).flat_map(|line| [line, "\n"]));
        at = hunk.start + hunk.side(&[' ', '-']).count();
    }
    text.extend(lines[at..].iter().copied());
    text
}

/// What becomes of a patch of these hunks.
fn outcome(name: &str, old: &str, hunks: &[&Hunk], headings: Headings) -> &'static str {
    let patch = parse(&envelope(hunks, headings), Grammar::TOLERANT);
    let action = patch.ok().and_then(|patch| patch.sections.into_iter().next()).map(|section| section.action);
    let Some(Action::Update { chunks, .. }) = action else { return "not read" };
    match (apply(old, &chunks, &Rules::tolerant(name)), hunks) {
        (Ok(applied), _) if applied.text == spliced(old, hunks) => "right",
        (Ok(applied), [only]) if only.is_insertion() => insertion(old, only, headings, &applied.text),
        (Ok(_), _) => WRONG,
        (Err(error), _) => match error.reason {
            Reason::NotFound { .. } => "not found",
            Reason::AnchorNotFound { .. } => "anchor not found",
            Reason::Ambiguous { .. } => "ambiguous",
            Reason::Overlap { .. } => "overlap",
            Reason::NumberOnly { .. } => "number only",
            Reason::Exhausted => "exhausted",
        },
    }
}

/// Lines that come alone belong behind their only anchor, or at the end when they have none.
fn insertion(old: &str, hunk: &Hunk, headings: Headings, after: &str) -> &'static str {
    let at = |start| spliced(old, &[&Hunk { start, heading: String::new(), lines: hunk.lines.clone() }]);
    let is_alone = headings == Headings::Left || hunk.heading.is_empty();
    if is_alone {
        return if after == at(old.lines().count()) { "at the end" } else { WRONG };
    }
    let behind = |fits: &dyn Fn(&str) -> bool| -> Vec<usize> {
        old.lines().enumerate().filter(|(_, line)| fits(line)).map(|(at, _)| at + 1).collect()
    };
    let whole = behind(&|line| line.trim() == hunk.heading);
    let begun = behind(&|line| line.trim_start().starts_with(&hunk.heading));
    match (whole.as_slice(), begun.as_slice()) {
        ([only], _) | ([], [only]) if after == at(*only) => "behind the anchor",
        (_, _) => WRONG,
    }
}

/// A file that a commit changed.
struct Changed {
    commit: String,
    name: String,
    old: String,
}

fn changed(repository: &str) -> Vec<Changed> {
    let commits =
        git(repository, &["log", "--no-merges", "--format=%H", "-n", COMMITS_MAX]).unwrap_or_default();
    let mut changed = Vec::new();
    for commit in commits.lines() {
        let parent = format!("{commit}~");
        let Some(names) = git(repository, &["diff", "--name-only", "--diff-filter=M", &parent, commit])
        else {
            continue;
        };
        for name in names.lines() {
            if let Some(old) = git(repository, &["show", &format!("{parent}:{name}")]) {
                changed.push(Changed { commit: commit.to_owned(), name: name.to_owned(), old });
            }
        }
    }
    changed
}

/// How many patches of each sort end how, and those that end wrong.
#[derive(Default)]
struct Tally {
    counts: BTreeMap<String, BTreeMap<&'static str, usize>>,
    wrong: Vec<String>,
}

impl Tally {
    fn file(&mut self, repository: &str, file: &Changed, context: usize) {
        let parent = format!("{}~", file.commit);
        let place = format!(":/{}", file.name);
        let arguments = ["diff", &format!("-U{context}"), &parent, &file.commit, "--", &place];
        let diff = git(repository, &arguments).unwrap_or_default();
        // What has no newline at its end is not what this is about.
        if diff.contains("\n\\ ") {
            return;
        }
        let hunks = hunks(&diff);
        let quoting: Vec<&Hunk> = hunks.iter().filter(|hunk| !hunk.is_insertion()).collect();
        for headings in [Headings::Shown, Headings::Left] {
            let sort = format!("-U{context}, headings {headings:?}");
            self.count(file, &quoting, headings, format!("{sort}: whole files"));
            for hunk in &hunks {
                let what = if hunk.is_insertion() { "single insertions" } else { "single hunks" };
                self.count(file, &[hunk], headings, format!("{sort}: {what}"));
            }
        }
    }

    fn count(&mut self, file: &Changed, hunks: &[&Hunk], headings: Headings, sort: String) {
        let Some(first) = hunks.first() else { return };
        let outcome = outcome(&file.name, &file.old, hunks, headings);
        if outcome == WRONG {
            self.wrong.push(format!("{} {} line {}, {sort}", file.commit, file.name, first.start + 1));
        }
        *self.counts.entry(sort).or_default().entry(outcome).or_default() += 1;
    }
}

/// Makes the patches, applies them and reports.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let repository = match arguments {
        [] => ".",
        [only] => only,
        [_, ..] => return Err("one repository at most".to_owned()),
    };
    let changed = changed(repository);
    let mut tally = Tally::default();
    for file in &changed {
        for context in [3, 1, 0] {
            tally.file(repository, file, context);
        }
    }
    println!("{} changed files", changed.len());
    for (sort, counts) in &tally.counts {
        let counts: Vec<String> =
            counts.iter().map(|(outcome, count)| format!("{outcome} {count}")).collect();
        println!("{sort}: {}", counts.join(", "));
    }
    if changed.is_empty() {
        return Err("no commit changes a file".to_owned());
    }
    if tally.wrong.is_empty() {
        return Ok(());
    }
    Err(format!("applied in a wrong place:\n{}", tally.wrong.join("\n")))
}
