//! Finds leftovers: marks of unfinished work, absolute paths of one machine, ignored tests.

use super::{
    RepositoryFile, TidyFinding,
    rust_source::{RustCodeAndComments, identifiers},
};

const TODO_MARKS: &[&str] = &["FIXME", "TODO", "XXX"];
/// The top-level directories in which absolute paths exist on one machine only.
const MACHINE_DIRECTORIES: &[&str] = &["work", "root", "home"];

/// Marks of unfinished work in strings are allowed.
pub(super) fn find_todo_marks(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in files {
        let searched = file.rust_source.as_ref().map_or(file.text.as_str(), |source| &source.comments);
        for (index, line) in searched.lines().enumerate() {
            let marked = identifiers(line).find(|word| TODO_MARKS.contains(word));
            findings.extend(
                marked.map(|mark| TidyFinding::new(file, index + 1, format!("{mark}: finish it or file an issue"))),
            );
        }
    }
    findings
}

pub(super) fn find_machine_paths(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            if let Some(name) = MACHINE_DIRECTORIES.iter().find(|name| contains_path(line, name)) {
                findings.push(TidyFinding::new(file, index + 1, format!("absolute path of one machine: /{name}")));
            }
        }
    }
    findings
}

fn contains_path(line: &str, name: &str) -> bool {
    let start = format!("/{name}/");
    line.match_indices(&start).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '~' | '}' | '>' | '…' | '*'))
    })
}

pub(super) fn find_ignored_tests(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (file, source) in rust_files(files) {
        for (index, line) in source.code.lines().enumerate() {
            if line.trim_start().starts_with("#[ignore") {
                findings.push(TidyFinding::new(file, index + 1, "ignored test; run it or delete it"));
            }
        }
    }
    findings
}

pub(super) fn rust_files(files: &[RepositoryFile]) -> impl Iterator<Item = (&RepositoryFile, &RustCodeAndComments)> {
    files.iter().filter_map(|file| Some((file, file.rust_source.as_ref()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn todo_marks_in_comments_and_documents_are_found() {
        for mark in TODO_MARKS {
            assert_eq!(
                find_todo_marks(&[RepositoryFile::new("src/a.rs", format!("fn a() {{}} // {mark}: later"))]).len(),
                1
            );
            assert_eq!(find_todo_marks(&[RepositoryFile::new("a.md", format!("{mark} later"))]).len(), 1);
            assert_eq!(
                find_todo_marks(&[RepositoryFile::new("src/a.rs", format!("let a = \"{mark}\"; // {mark}S"))]),
                []
            );
        }
    }

    #[test]
    fn machine_paths_are_found() {
        for name in MACHINE_DIRECTORIES {
            for bad in [format!("see /{name}/x"), format!("\"/{name}/x\""), format!("(`/{name}/a/b`)")] {
                assert_eq!(find_machine_paths(&[RepositoryFile::new("a.md", bad.clone())]).len(), 1, "{bad}");
            }
            for good in [format!("a/{name}/b"), format!("{{base}}/{name}/b"), format!("the {name} / other")] {
                assert_eq!(find_machine_paths(&[RepositoryFile::new("a.md", good.clone())]), [], "{good}");
            }
        }
    }

    #[test]
    fn ignored_tests_are_found() {
        assert_eq!(
            find_ignored_tests(&[RepositoryFile::new("a.rs", "#[test]\n#[ignore = \"slow\"]\nfn a() {}")]).len(),
            1
        );
        assert_eq!(find_ignored_tests(&[RepositoryFile::new("a.rs", "#[test]\nfn ignore() {}")]), []);
    }
}
