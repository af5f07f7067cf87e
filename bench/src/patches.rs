//! `cargo xtask bench patches [REPOSITORY]` makes patches from Git history and compares their results with Git's.
//!
//! Every change of a text file is converted to patches with three, one and no context lines, with and without Git's
//! hunk headings as anchors, with all hunks together and with each hunk alone. The benchmark fails if a patch is
//! applied at a wrong position; a rejected patch is no failure.

use std::{collections::BTreeMap, process::Command};

use stead_text::patch::{
    PatchApplyErrorKind, PatchChunkMatching, PatchChunkPlacementRules, PatchGrammar, PatchSectionKind, apply_chunks,
    parse_patch,
};

const COMMITS_MAX: &str = "2000";

/// The outcome of a patch that was applied at a wrong position, which fails the benchmark.
const WRONG_RESULT: &str = "WRONG";

/// Whether Git's hunk headings are used as anchors after `@@`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BenchHunkHeadingInclusion {
    Shown,
    Omitted,
}

struct GitHunk {
    /// The 0-based line of the old text where the hunk starts.
    start_line: usize,
    heading: String,
    /// The lines of the hunk with their signs (`+`, `-` or a space).
    lines: Vec<String>,
}

impl GitHunk {
    fn is_insertion(&self) -> bool {
        self.lines.iter().all(|line| line.starts_with('+'))
    }

    fn lines_with_signs<'a>(&'a self, signs: &'a [char]) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter(move |line| line.starts_with(signs)).map(|line| &line[1..])
    }
}

/// The output of Git; `None` if it fails or is not UTF-8.
fn run_git(repository: &str, arguments: &[&str]) -> Option<String> {
    let run = Command::new("git").arg("-C").arg(repository).args(arguments).output().ok()?;
    run.status.success().then(|| String::from_utf8(run.stdout).ok()).flatten()
}

fn parse_hunks(diff: &str) -> Vec<GitHunk> {
    let mut hunks: Vec<GitHunk> = Vec::new();
    for line in diff.lines().skip_while(|line| !line.starts_with("@@ ")) {
        let header = line.strip_prefix("@@ -").and_then(|rest| rest.split_once(" @@"));
        if let Some((numbers, heading)) = header {
            let old = numbers.split(' ').next().unwrap_or_default();
            let (start, count) = old.split_once(',').unwrap_or((old, "1"));
            let number: usize = start.parse().unwrap_or_default();
            let start = if count == "0" { number } else { number.saturating_sub(1) };
            hunks.push(GitHunk { start_line: start, heading: heading.trim().to_owned(), lines: Vec::new() });
        } else if let Some(hunk) = hunks.last_mut() {
            hunk.lines.push(line.to_owned());
        }
    }
    hunks
}

fn patch_envelope(hunks: &[&GitHunk], headings: BenchHunkHeadingInclusion) -> String {
    let body: String = hunks
        .iter()
        .map(|hunk| {
            let heading = if headings == BenchHunkHeadingInclusion::Shown { &hunk.heading } else { "" };
            format!("@@ {heading}\n{}\n", hunk.lines.join("\n"))
        })
        .collect();
    format!("*** Begin Patch\n*** Update File: f\n{body}*** End Patch\n")
}

/// The text `old` with the given hunks applied, as Git applies them.
fn apply_hunks(old: &str, hunks: &[&GitHunk]) -> String {
    let lines: Vec<&str> = old.split_inclusive('\n').collect();
    let mut at = 0;
    let mut text = String::new();
    for hunk in hunks {
        text.extend(lines[at..hunk.start_line].iter().copied());
        text.extend(hunk.lines_with_signs(&[' ', '+']).flat_map(|line| [line, "\n"]));
        at = hunk.start_line + hunk.lines_with_signs(&[' ', '-']).count();
    }
    text.extend(lines[at..].iter().copied());
    text
}

/// Applies a patch with the given hunks to `old`, and compares the result with the expected text.
fn patch_outcome(name: &str, old: &str, hunks: &[&GitHunk], headings: BenchHunkHeadingInclusion) -> &'static str {
    let patch = parse_patch(&patch_envelope(hunks, headings), PatchGrammar::Tolerant);
    let action = patch.ok().and_then(|sections| sections.into_iter().next()).map(|section| section.kind);
    let Some(PatchSectionKind::Update { chunks, .. }) = action else { return "not read" };
    match (apply_chunks(old, &chunks, &PatchChunkPlacementRules::new(name, PatchChunkMatching::Tolerant)), hunks) {
        (Ok(applied), _) if applied.text == apply_hunks(old, hunks) => "right",
        (Ok(applied), [only]) if only.is_insertion() => insertion_outcome(old, only, headings, &applied.text),
        (Ok(_), _) => WRONG_RESULT,
        (Err(error), _) => match error.reason {
            PatchApplyErrorKind::NotFound { .. } => "not found",
            PatchApplyErrorKind::AnchorNotFound { .. } => "anchor not found",
            PatchApplyErrorKind::Ambiguous { .. } => "ambiguous",
            PatchApplyErrorKind::Overlap { .. } => "overlap",
            PatchApplyErrorKind::NumberOnly { .. } => "number only",
            PatchApplyErrorKind::Exhausted => "exhausted",
        },
    }
}

/// The outcome of a patch that only inserts lines: they belong after the anchor or, without an anchor, at the end of
/// the file.
fn insertion_outcome(old: &str, hunk: &GitHunk, headings: BenchHunkHeadingInclusion, after: &str) -> &'static str {
    let at =
        |start| apply_hunks(old, &[&GitHunk { start_line: start, heading: String::new(), lines: hunk.lines.clone() }]);
    let is_alone = headings == BenchHunkHeadingInclusion::Omitted || hunk.heading.is_empty();
    if is_alone {
        return if after == at(old.lines().count()) { "at the end" } else { WRONG_RESULT };
    }
    let behind = |fits: &dyn Fn(&str) -> bool| -> Vec<usize> {
        old.lines().enumerate().filter(|(_, line)| fits(line)).map(|(at, _)| at + 1).collect()
    };
    let whole = behind(&|line| line.trim() == hunk.heading);
    let heading_prefix = behind(&|line| line.trim_start().starts_with(&hunk.heading));
    match (whole.as_slice(), heading_prefix.as_slice()) {
        ([only], _) | ([], [only]) if after == at(*only) => "behind the anchor",
        (_, _) => WRONG_RESULT,
    }
}

struct BenchGitChangedFile {
    commit: String,
    name: String,
    old: String,
}

fn changed_files(repository: &str) -> Vec<BenchGitChangedFile> {
    let commits = run_git(repository, &["log", "--no-merges", "--format=%H", "-n", COMMITS_MAX]).unwrap_or_default();
    let mut changed = Vec::new();
    for commit in commits.lines() {
        let parent = format!("{commit}~");
        let Some(names) = run_git(repository, &["diff", "--name-only", "--diff-filter=M", &parent, commit]) else {
            continue;
        };
        for name in names.lines() {
            if let Some(old) = run_git(repository, &["show", &format!("{parent}:{name}")]) {
                changed.push(BenchGitChangedFile { commit: commit.to_owned(), name: name.to_owned(), old });
            }
        }
    }
    changed
}

/// The number of patches by kind and outcome, and the patches that were applied at a wrong position.
#[derive(Default)]
struct PatchBenchOutcomeCounts {
    counts: BTreeMap<String, BTreeMap<&'static str, usize>>,
    wrong_patches: Vec<String>,
}

impl PatchBenchOutcomeCounts {
    fn count_file(&mut self, repository: &str, file: &BenchGitChangedFile, context: usize) {
        let parent = format!("{}~", file.commit);
        let place = format!(":/{}", file.name);
        let arguments = ["diff", &format!("-U{context}"), &parent, &file.commit, "--", &place];
        let diff = run_git(repository, &arguments).unwrap_or_default();
        // Files without a final newline are out of scope.
        if diff.contains("\n\\ ") {
            return;
        }
        let hunks = parse_hunks(&diff);
        let quoting: Vec<&GitHunk> = hunks.iter().filter(|hunk| !hunk.is_insertion()).collect();
        for headings in [BenchHunkHeadingInclusion::Shown, BenchHunkHeadingInclusion::Omitted] {
            let sort = format!("-U{context}, headings {headings:?}");
            self.count_patch(file, &quoting, headings, format!("{sort}: whole files"));
            for hunk in &hunks {
                let what = if hunk.is_insertion() { "single insertions" } else { "single hunks" };
                self.count_patch(file, &[hunk], headings, format!("{sort}: {what}"));
            }
        }
    }

    fn count_patch(
        &mut self,
        file: &BenchGitChangedFile,
        hunks: &[&GitHunk],
        headings: BenchHunkHeadingInclusion,
        sort: String,
    ) {
        let Some(first) = hunks.first() else { return };
        let outcome = patch_outcome(&file.name, &file.old, hunks, headings);
        if outcome == WRONG_RESULT {
            self.wrong_patches.push(format!("{} {} line {}, {sort}", file.commit, file.name, first.start_line + 1));
        }
        *self.counts.entry(sort).or_default().entry(outcome).or_default() += 1;
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let repository = match arguments {
        [] => ".",
        [only] => only,
        [_, ..] => return Err("one repository at most".to_owned()),
    };
    let changed = changed_files(repository);
    let mut tally = PatchBenchOutcomeCounts::default();
    for file in &changed {
        for context in [3, 1, 0] {
            tally.count_file(repository, file, context);
        }
    }
    println!("{} changed files", changed.len());
    for (sort, counts) in &tally.counts {
        let counts: Vec<String> = counts.iter().map(|(outcome, count)| format!("{outcome} {count}")).collect();
        println!("{sort}: {}", counts.join(", "));
    }
    if changed.is_empty() {
        return Err("no commit changes a file".to_owned());
    }
    if tally.wrong_patches.is_empty() {
        return Ok(());
    }
    Err(format!("applied in a wrong place:\n{}", tally.wrong_patches.join("\n")))
}
