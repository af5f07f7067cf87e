//! Patches made from this project's own history. Every change of a text file becomes an envelope, with much context and
//! with none, with git's headings as anchors and without, all hunks together and each alone: it must give what git
//! has, or be refused. Runs git, so only where it is asked for:
//! `cargo nextest run -p text --run-ignored only history --no-capture`.

#![expect(clippy::disallowed_methods, reason = "the history is git's")]

use std::collections::BTreeMap;
use std::process::Command;

use text::patch::{Action, Grammar, Reason, Rules, apply, parse};

/// The most commits looked at, the newest first.
const COMMITS_MAX: &str = "400";

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

fn git(arguments: &[&str]) -> Option<String> {
    let run = Command::new("git").args(arguments).output().ok()?;
    run.status.success().then(|| String::from_utf8(run.stdout).ok()).flatten()
}

fn hunks(diff: &str) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for line in diff.lines().skip_while(|line| !line.starts_with("@@ ")) {
        match line.strip_prefix("@@ -").and_then(|rest| rest.split_once(" @@")) {
            Some((numbers, heading)) => {
                let old = numbers.split(' ').next().unwrap();
                let (start, count) = old.split_once(',').unwrap_or((old, "1"));
                let start: usize = start.parse().unwrap();
                let start = if count == "0" { start } else { start - 1 };
                hunks.push(Hunk { start, heading: heading.trim().to_owned(), lines: Vec::new() });
            }
            None => hunks.last_mut().unwrap().lines.push(line.to_owned()),
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
    let patch = parse(&envelope(hunks, headings), Grammar::TOLERANT).unwrap();
    let Action::Update { chunks, .. } = &patch.sections[0].action else { return "no update" };
    match (apply(old, chunks, &Rules::tolerant(name)), hunks) {
        (Ok(applied), _) if applied.text == spliced(old, hunks) => "right",
        (Ok(applied), [only]) if only.is_insertion() => insertion(old, only, headings, &applied.text),
        (Ok(_), _) => "WRONG",
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
    let begins = |(_, line): &(usize, &str)| line.trim_start().starts_with(&hunk.heading);
    let anchors: Vec<usize> = old.lines().enumerate().filter(begins).map(|(at, _)| at + 1).collect();
    match (headings, hunk.heading.is_empty(), anchors.as_slice()) {
        (Headings::Left, _, _) | (_, true, _) if after == at(old.lines().count()) => "at the end",
        (Headings::Shown, false, [only]) if after == at(*only) => "behind the anchor",
        (Headings::Shown, false, several)
            if several.iter().filter(|start| old.lines().nth(**start - 1) == Some(&hunk.heading)).count()
                == 1
                && several.iter().any(|start| after == at(*start)) =>
        {
            "behind the anchor"
        }
        (Headings::Shown | Headings::Left, _, _) => "WRONG",
    }
}

/// The files that commits changed: commit, name, text before.
fn changed() -> Vec<(String, String, String)> {
    let commits = git(&["log", "--no-merges", "--format=%H", "-n", COMMITS_MAX]).unwrap();
    let mut changed = Vec::new();
    for commit in commits.lines() {
        let parent = format!("{commit}~");
        let Some(names) = git(&["diff", "--name-only", "--diff-filter=M", &parent, commit]) else { continue };
        for name in names.lines() {
            if let Some(old) = git(&["show", &format!("{parent}:{name}")]) {
                changed.push((commit.to_owned(), name.to_owned(), old));
            }
        }
    }
    changed
}

#[test]
#[ignore = "runs git over the whole history"]
fn what_history_changed_is_changed_the_same_way_or_refused() {
    let mut counts: BTreeMap<String, BTreeMap<&str, usize>> = BTreeMap::new();
    let changed = changed();
    let mut wrong = Vec::new();
    for (commit, name, old) in &changed {
        for context in [3, 1, 0] {
            let parent = format!("{commit}~");
            let arguments = ["diff", &format!("-U{context}"), &parent, commit, "--", &format!(":/{name}")];
            let diff = git(&arguments).unwrap_or_default();
            // What has no newline at its end is not what this is about.
            if diff.contains("\n\\ ") {
                continue;
            }
            let hunks = hunks(&diff);
            let quoting: Vec<&Hunk> = hunks.iter().filter(|hunk| !hunk.is_insertion()).collect();
            for headings in [Headings::Shown, Headings::Left] {
                let mut count = |what: &str, hunks: &[&Hunk]| {
                    if hunks.is_empty() {
                        return;
                    }
                    let outcome = outcome(name, old, hunks, headings);
                    if outcome == "WRONG" {
                        wrong.push(format!(
                            "{commit} {name} -U{context} {headings:?} {what} {}",
                            hunks[0].start
                        ));
                    }
                    let kind = format!("-U{context} headings {headings:?}: {what}");
                    *counts.entry(kind).or_default().entry(outcome).or_default() += 1;
                };
                count("whole files", &quoting);
                for hunk in &hunks {
                    let what = if hunk.is_insertion() { "single insertions" } else { "single hunks" };
                    count(what, &[hunk]);
                }
            }
        }
    }
    println!("{} changed files", changed.len());
    for (key, count) in &counts {
        println!("{key}: {count:?}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
