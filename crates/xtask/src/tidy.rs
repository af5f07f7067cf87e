//! The rules of the house that no lint knows: crate edges, lengths, names, documents, leftovers, limits.
//!
//! Owns the walk over the repository and the list of rules. Promises that every rule is a pure function over file
//! texts, tested against snippets that break it. Never changes a file.

mod documents;
mod edges;
mod leftovers;
mod names;
mod shape;
mod source;

use std::{fmt, fs, path::Path};

use source::Source;

/// Directories that hold nothing of ours.
const SKIPPED_DIRECTORIES: &[&str] = &[".git", "target"];
/// Files beyond this are not sources; a rule that must see them would need another way.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// One file of the repository, as text.
#[derive(Debug)]
struct File {
    /// From the root, with `/`.
    path: String,
    text: String,
    /// Code and comments told apart; only for Rust.
    source: Option<Source>,
}

impl File {
    fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let (path, text) = (path.into(), text.into());
        let source = has_extension(&path, "rs").then(|| Source::new(&text));
        Self { path, text, source }
    }

    fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        name.split('.').find(|part| !part.is_empty()).unwrap_or(name)
    }
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

/// One broken rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    path: String,
    /// Zero when the whole file is meant.
    line: usize,
    problem: String,
}

impl Finding {
    fn new(file: &File, line: usize, problem: impl Into<String>) -> Self {
        Self { path: file.path.clone(), line, problem: problem.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.problem),
            line => write!(f, "{}:{line}: {}", self.path, self.problem),
        }
    }
}

/// A rule looks at all files at once, because some of them compare one with another.
type Rule = fn(&[File]) -> Vec<Finding>;

/// Every rule.
const RULES: &[Rule] = &[
    edges::crate_edges,
    edges::kept_dependencies,
    edges::lint_settings,
    shape::file_length,
    shape::module_files,
    shape::module_docs,
    names::banned_words,
    documents::one_title,
    documents::architecture_names,
    leftovers::marks,
    leftovers::machine_paths,
    leftovers::ignored_tests,
    leftovers::unused_limits,
];

/// Checks them all.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    if let Some(unknown) = arguments.first() {
        return Err(format!("takes no arguments, not even '{unknown}'"));
    }
    let files = files(&crate::root())?;
    let findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(&files)).collect();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("tidy: {} files, {} rules, nothing to say", files.len(), RULES.len());
            Ok(())
        }
        count => Err(format!("{count} findings")),
    }
}

/// Whether any documentation comment of the sources holds an example that rustdoc would run.
pub(crate) fn has_doc_examples() -> Result<bool, String> {
    let files = files(&crate::root())?;
    Ok(files.iter().filter_map(|file| file.source.as_ref()).any(Source::has_doc_example))
}

/// Every text file below the root, in the order of paths.
fn files(root: &Path) -> Result<Vec<File>, String> {
    let mut found = Vec::new();
    let mut waiting = vec![root.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        let listed = fs::read_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        for entry in listed {
            let entry = entry.map_err(|error| format!("{}: {error}", directory.display()))?;
            let kind = entry.file_type().map_err(|error| format!("{}: {error}", entry.path().display()))?;
            let name = entry.file_name();
            if kind.is_dir() && !SKIPPED_DIRECTORIES.iter().any(|skipped| name == *skipped) {
                waiting.push(entry.path());
            } else if kind.is_file() {
                found.extend(text_file(root, &entry.path())?);
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The file as text; nothing when it is not text.
fn text_file(root: &Path, path: &Path) -> Result<Option<File>, String> {
    let shown = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
    let length = fs::metadata(path).map_err(|error| format!("{shown}: {error}"))?.len();
    if length > FILE_BYTES_MAX {
        return Err(format!("{shown}: {length} bytes is no source file"));
    }
    let bytes = fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
    Ok(String::from_utf8(bytes).ok().map(|text| File::new(shown, text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let files = files(&crate::root()).unwrap();
        assert!(files.len() > 20, "the walk found the repository");
        let findings: Vec<String> =
            RULES.iter().flat_map(|rule| rule(&files)).map(|finding| finding.to_string()).collect();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }

    #[test]
    fn a_stem_is_the_name_before_the_first_dot() {
        for (path, stem) in [("a/b.rs", "b"), (".ci/run", "run"), ("x/.envrc", "envrc"), ("a.tar.gz", "a")] {
            assert_eq!(File::new(path, "").stem(), stem);
        }
    }
}
