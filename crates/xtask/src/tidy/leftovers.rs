//! Things that were meant to go: marks for later, paths of one machine, switched-off tests, limits nobody keeps.

use std::collections::HashSet;

use super::{
    File, Finding,
    source::{Source, words},
};

/// Marks that mean unfinished work; an issue is the place for that.
const MARKS: &[&str] = &["FIXME", "TODO", "XXX"];
/// First components of paths that exist on one machine only.
const MACHINE_DIRECTORIES: &[&str] = &["work", "root", "home"];
/// How a file ends where limits have their names.
const LIMITS: &str = "/src/limits.rs";

/// No marks in comments or documents. A mark in a string is content.
pub(super) fn marks(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let looked = file.source.as_ref().map_or(file.text.as_str(), |source| &source.comments);
        for (index, line) in looked.lines().enumerate() {
            let marked = words(line).find(|word| MARKS.contains(word));
            findings.extend(
                marked.map(|mark| Finding::new(file, index + 1, format!("{mark}: finish it or file it"))),
            );
        }
    }
    findings
}

/// No absolute path of somebody's machine.
pub(super) fn machine_paths(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            if let Some(name) = MACHINE_DIRECTORIES.iter().find(|name| holds_path(line, name)) {
                findings.push(Finding::new(file, index + 1, format!("a path of one machine: /{name}")));
            }
        }
    }
    findings
}

/// Whether `/name` stands in the line as the start of a path and goes on.
fn holds_path(line: &str, name: &str) -> bool {
    let start = format!("/{name}/");
    line.match_indices(&start).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| {
            c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '~' | '}' | '>' | '…' | '*')
        })
    })
}

/// No test that does not run.
pub(super) fn ignored_tests(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in rust(files) {
        for (index, line) in source.code.lines().enumerate() {
            if line.trim_start().starts_with("#[ignore") {
                findings.push(Finding::new(file, index + 1, "a test that does not run is not a test"));
            }
        }
    }
    findings
}

/// Every named limit is kept by somebody.
pub(super) fn unused_limits(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, limits) in rust(files).filter(|(file, _)| file.path.ends_with(LIMITS)) {
        let others: HashSet<&str> = rust(files)
            .filter(|(other, _)| other.path != file.path)
            .flat_map(|(_, source)| words(&source.code))
            .collect();
        let unused = limits.definitions().into_iter().filter(|(_, name)| !others.contains(name));
        findings.extend(unused.map(|(line, name)| Finding::new(file, line, format!("nobody keeps {name}"))));
    }
    findings
}

/// The Rust files among them.
fn rust(files: &[File]) -> impl Iterator<Item = (&File, &Source)> {
    files.iter().filter_map(|file| Some((file, file.source.as_ref()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_in_comments_and_documents_are_found() {
        for mark in MARKS {
            assert_eq!(marks(&[File::new("src/a.rs", format!("fn a() {{}} // {mark}: later"))]).len(), 1);
            assert_eq!(marks(&[File::new("a.md", format!("{mark} later"))]).len(), 1);
            assert_eq!(marks(&[File::new("src/a.rs", format!("let a = \"{mark}\"; // {mark}S"))]), []);
        }
    }

    #[test]
    fn machine_paths_are_found() {
        for name in MACHINE_DIRECTORIES {
            for bad in [format!("see /{name}/x"), format!("\"/{name}/x\""), format!("(`/{name}/a/b`)")] {
                assert_eq!(machine_paths(&[File::new("a.md", bad.clone())]).len(), 1, "{bad}");
            }
            for good in [format!("a/{name}/b"), format!("{{base}}/{name}/b"), format!("the {name} / other")] {
                assert_eq!(machine_paths(&[File::new("a.md", good.clone())]), [], "{good}");
            }
        }
    }

    #[test]
    fn switched_off_tests_are_found() {
        assert_eq!(ignored_tests(&[File::new("a.rs", "#[test]\n#[ignore = \"slow\"]\nfn a() {}")]).len(), 1);
        assert_eq!(ignored_tests(&[File::new("a.rs", "#[test]\nfn ignore() {}")]), []);
    }

    #[test]
    fn limits_that_nobody_keeps_are_found() {
        let limits =
            || File::new("crates/engine/src/limits.rs", "pub const A: usize = 1;\npub const B: usize = A;");
        let found =
            unused_limits(&[limits(), File::new("crates/engine/src/a.rs", "let a = limits::A; // B")]);
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [2]);
        assert_eq!(unused_limits(&[limits(), File::new("b.rs", "limits::A + limits::B")]), []);
    }
}
