//! How files are cut: not too long, modules beside their folders, each with its purpose at the top. Function length
//! is clippy's, with the threshold that `edges` watches.

use super::{File, Finding, has_extension};

/// Longest Rust file, tests included.
const FILE_LINES_MAX: usize = 600;

/// Files that nobody writes by hand.
fn is_generated(file: &File) -> bool {
    file.path.split('/').any(|part| part == "generated" || part == "generated.rs")
}

/// No file beyond the limit.
pub(super) fn file_length(files: &[File]) -> Vec<Finding> {
    let long = |file: &&File| has_extension(&file.path, "rs") && !is_generated(file);
    let counted = files.iter().filter(long).map(|file| (file, file.text.lines().count()));
    counted
        .filter(|(_, lines)| *lines > FILE_LINES_MAX)
        .map(|(file, lines)| Finding::new(file, 0, format!("{lines} lines; {FILE_LINES_MAX} is the most")))
        .collect()
}

/// `foo.rs` and `foo/`, never the other way.
pub(super) fn module_files(files: &[File]) -> Vec<Finding> {
    let wrong = files.iter().filter(|file| file.path.rsplit('/').next() == Some("mod.rs"));
    wrong.map(|file| Finding::new(file, 0, "name the file after the module, beside its folder")).collect()
}

/// Every module says what it is.
pub(super) fn module_docs(files: &[File]) -> Vec<Finding> {
    let rust = files.iter().filter(|file| has_extension(&file.path, "rs") && !is_generated(file));
    rust.filter(|file| !file.text.trim_start().starts_with("//!"))
        .map(|file| Finding::new(file, 1, "starts with `//!`: what it owns, promises and never does"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_found_unless_generated() {
        let long = "\n".repeat(FILE_LINES_MAX + 1);
        assert_eq!(file_length(&[File::new("src/a.rs", long.clone())]).len(), 1);
        assert_eq!(file_length(&[File::new("src/generated/a.rs", long)]), []);
        assert_eq!(file_length(&[File::new("src/a.rs", "\n".repeat(FILE_LINES_MAX))]), []);
    }

    #[test]
    fn the_old_module_layout_is_found() {
        assert_eq!(module_files(&[File::new("src/a/mod.rs", "")]).len(), 1);
        assert_eq!(module_files(&[File::new("src/a.rs", "")]), []);
    }

    #[test]
    fn a_module_without_a_purpose_is_found() {
        assert_eq!(module_docs(&[File::new("src/a.rs", "fn a() {}")]).len(), 1);
        assert_eq!(module_docs(&[File::new("src/a.rs", "//! Owns a.\nfn a() {}")]), []);
    }
}
