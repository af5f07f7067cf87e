//! `cargo xtask tidy` checks project rules that no lint covers, such as crate dependencies and file lengths.
//!
//! Every rule is a pure function over file texts. `cargo xtask tidy` never changes a file.

mod dependencies;
mod documents;
mod engine_json;
mod file_layout;
mod leftovers;
mod limits;
mod names;
mod public_docs;
mod rust_source;
mod storage_access;

use std::{fmt, fs, path::Path};

use rust_source::RustCodeAndComments;

const SKIPPED_DIRECTORIES: &[&str] = &[".git", "target"];
/// The maximum size in bytes of a source file in the repository.
const FILE_BYTES_MAX: u64 = 4 << 20;

#[derive(Debug)]
struct RepositoryFile {
    /// The path of the file relative to the repository root, with `/` as the separator.
    path: String,
    text: String,
    rust_source: Option<RustCodeAndComments>,
}

impl RepositoryFile {
    fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let (path, text) = (path.into(), text.into());
        let rust_source = has_extension(&path, "rs").then(|| RustCodeAndComments::new(&text));
        Self { path, text, rust_source }
    }
}

/// Fuzz targets, and the programs in `bench/peers/` that only tests start, are excluded.
fn is_project_path(path: &str) -> bool {
    path.starts_with("crates/") || (path.starts_with("bench/") && !path.starts_with("bench/peers/"))
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

#[derive(Debug, PartialEq, Eq)]
struct TidyFinding {
    path: String,
    /// The line number of the finding; zero if the finding is about the whole file.
    line: usize,
    problem: String,
}

impl TidyFinding {
    fn new(file: &RepositoryFile, line: usize, problem: impl Into<String>) -> Self {
        Self { path: file.path.clone(), line, problem: problem.into() }
    }
}

impl fmt::Display for TidyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.problem),
            line => write!(f, "{}:{line}: {}", self.path, self.problem),
        }
    }
}

/// A rule gets all files at once, because some rules compare files.
type TidyRuleFn = fn(&[RepositoryFile]) -> Vec<TidyFinding>;

const RULES: &[TidyRuleFn] = &[
    dependencies::check_crate_dependencies,
    dependencies::check_restricted_dependencies,
    dependencies::check_lint_settings,
    file_layout::check_file_length,
    file_layout::check_module_layout,
    file_layout::check_module_docs,
    names::find_duplicate_types,
    names::find_verb_form_types,
    public_docs::find_undocumented_items,
    documents::require_one_title,
    documents::check_quoted_names,
    leftovers::find_todo_marks,
    leftovers::find_machine_paths,
    leftovers::find_ignored_tests,
    limits::find_unused_limits,
    limits::find_scattered_limits,
    limits::find_undescribed_limits,
    storage_access::find_unlogged_storage_access,
    engine_json::find_json_values_in_engine,
];

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    if let Some(unknown) = arguments.first() {
        return Err(format!("unexpected argument '{unknown}'; tidy takes none"));
    }
    let files = repository_files(&crate::repository_root())?;
    let findings: Vec<TidyFinding> = RULES.iter().flat_map(|rule| rule(&files)).collect();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("tidy: {} files, {} rules, no findings", files.len(), RULES.len());
            Ok(())
        }
        count => Err(format!("{count} findings")),
    }
}

pub(crate) fn has_doc_examples() -> Result<bool, String> {
    let files = repository_files(&crate::repository_root())?;
    Ok(files.iter().filter_map(|file| file.rust_source.as_ref()).any(RustCodeAndComments::has_doc_example))
}

fn repository_files(root: &Path) -> Result<Vec<RepositoryFile>, String> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(directory) = pending.pop() {
        let entries = fs::read_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        for entry in entries {
            let entry = entry.map_err(|error| format!("{}: {error}", directory.display()))?;
            let kind = entry.file_type().map_err(|error| format!("{}: {error}", entry.path().display()))?;
            let name = entry.file_name();
            if kind.is_dir() && !SKIPPED_DIRECTORIES.iter().any(|skipped| name == *skipped) {
                pending.push(entry.path());
            } else if kind.is_file() {
                found.extend(read_text_file(root, &entry.path())?);
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Reads a file of the repository, and returns `None` if the file is not UTF-8.
fn read_text_file(root: &Path, path: &Path) -> Result<Option<RepositoryFile>, String> {
    let shown = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
    let length = fs::metadata(path).map_err(|error| format!("{shown}: {error}"))?.len();
    if length > FILE_BYTES_MAX {
        return Err(format!("{shown}: too large for a source file ({length} bytes)"));
    }
    let bytes = fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
    Ok(String::from_utf8(bytes).ok().map(|text| RepositoryFile::new(shown, text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_has_no_findings() {
        let files = repository_files(&crate::repository_root()).unwrap();
        assert!(files.len() > 20, "the walk found the repository");
        let findings: Vec<String> =
            RULES.iter().flat_map(|rule| rule(&files)).map(|finding| finding.to_string()).collect();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }
}
