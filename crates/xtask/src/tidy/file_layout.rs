//! Rules for source files: maximum length, no `mod.rs`, a module document at the top.

use super::{RepositoryFile, TidyFinding, has_extension};

const FILE_LINES_MAX: usize = 600;

fn is_generated(file: &RepositoryFile) -> bool {
    file.path.split('/').any(|part| part == "generated" || part == "generated.rs")
}

pub(super) fn check_file_length(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    let is_source = |file: &&RepositoryFile| has_extension(&file.path, "rs") && !is_generated(file);
    let counted = files.iter().filter(is_source).map(|file| (file, file.text.lines().count()));
    counted
        .filter(|(_, lines)| *lines > FILE_LINES_MAX)
        .map(|(file, lines)| TidyFinding::new(file, 0, format!("{lines} lines; the maximum is {FILE_LINES_MAX}")))
        .collect()
}

/// Forbids `mod.rs` files: the module `foo` must be in `foo.rs`, beside the directory `foo/`.
pub(super) fn check_module_layout(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    let wrong = files.iter().filter(|file| file.path.rsplit('/').next() == Some("mod.rs"));
    wrong.map(|file| TidyFinding::new(file, 0, "name the file after the module, beside its folder")).collect()
}

pub(super) fn check_module_docs(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    let rust = files.iter().filter(|file| has_extension(&file.path, "rs") && !is_generated(file));
    rust.filter(|file| !file.text.trim_start().starts_with("//!"))
        .map(|file| TidyFinding::new(file, 1, "must start with `//!`: what the module owns, promises and never does"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_found_unless_generated() {
        let long = "\n".repeat(FILE_LINES_MAX + 1);
        assert_eq!(check_file_length(&[RepositoryFile::new("src/a.rs", long.clone())]).len(), 1);
        assert_eq!(check_file_length(&[RepositoryFile::new("src/generated/a.rs", long)]), []);
        assert_eq!(check_file_length(&[RepositoryFile::new("src/a.rs", "\n".repeat(FILE_LINES_MAX))]), []);
    }

    #[test]
    fn mod_rs_files_are_found() {
        assert_eq!(check_module_layout(&[RepositoryFile::new("src/a/mod.rs", "")]).len(), 1);
        assert_eq!(check_module_layout(&[RepositoryFile::new("src/a.rs", "")]), []);
    }

    #[test]
    fn module_without_docs_is_found() {
        assert_eq!(check_module_docs(&[RepositoryFile::new("src/a.rs", "fn a() {}")]).len(), 1);
        assert_eq!(check_module_docs(&[RepositoryFile::new("src/a.rs", "//! Owns a.\nfn a() {}")]), []);
    }
}
