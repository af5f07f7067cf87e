//! Checks the lists of limits: each crate has the limits that a caller can notice in its `limits.rs`.

use std::collections::HashSet;

use super::{
    RepositoryFile, TidyFinding,
    leftovers::rust_files,
    rust_source::{RustCodeAndComments, identifiers},
};

const LIMITS_FILE: &str = "/src/limits.rs";
const SHARED_CONSTANT_PREFIXES: &[&str] = &["pub const ", "pub(crate) const "];

fn limit_lists(files: &[RepositoryFile]) -> impl Iterator<Item = (&RepositoryFile, &RustCodeAndComments, &str)> {
    rust_files(files).filter_map(|(file, source)| Some((file, source, file.path.strip_suffix(LIMITS_FILE)?)))
}

pub(super) fn find_unused_limits(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (file, limits, _) in limit_lists(files) {
        let others: HashSet<&str> = rust_files(files)
            .filter(|(other, _)| other.path != file.path)
            .flat_map(|(_, source)| identifiers(&source.code))
            .collect();
        let unused = limits.definitions().into_iter().filter(|(_, name)| !others.contains(name));
        findings.extend(unused.map(|(line, name)| TidyFinding::new(file, line, format!("unused limit {name}"))));
    }
    findings
}

/// A limit that several modules use belongs in the list of limits of its crate. A private constant of one algorithm may
/// be next to its code.
pub(super) fn find_scattered_limits(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (list, limits, directory) in limit_lists(files) {
        let listed: HashSet<&str> = limits.definitions().into_iter().map(|(_, name)| name).collect();
        let sources = format!("{directory}/src/");
        for (file, source) in rust_files(files).filter(|(file, _)| file.path.starts_with(&sources)) {
            if file.path == list.path {
                continue;
            }
            for (index, line) in source.code.lines().enumerate() {
                let shared = SHARED_CONSTANT_PREFIXES.iter().find_map(|prefix| line.trim_start().strip_prefix(prefix));
                let constant = shared.or_else(|| line.trim_start().strip_prefix("const "));
                let Some(name) = constant.and_then(|constant| identifiers(constant).next()) else { continue };
                if listed.contains(name) {
                    findings.push(TidyFinding::new(file, index + 1, format!("{name} is also in {}", list.path)));
                } else if shared.is_some() && name.split('_').any(|word| word == "MAX") {
                    findings.push(TidyFinding::new(file, index + 1, format!("move the limit {name} to {}", list.path)));
                }
            }
        }
    }
    findings
}

pub(super) fn find_undescribed_limits(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (file, limits, _) in limit_lists(files) {
        let lines: Vec<&str> = file.text.lines().collect();
        let is_described = |line: usize| line > 1 && lines[line - 2].trim_start().starts_with("///");
        let undescribed = limits.definitions().into_iter().filter(|(line, _)| !is_described(*line));
        findings.extend(
            undescribed
                .map(|(line, name)| TidyFinding::new(file, line, format!("say what {name} limits, in which unit"))),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_limits_are_found() {
        let limits =
            || RepositoryFile::new("crates/engine/src/limits.rs", "pub const A: usize = 1;\npub const B: usize = A;");
        let found =
            find_unused_limits(&[limits(), RepositoryFile::new("crates/engine/src/a.rs", "let a = limits::A; // B")]);
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [2]);
        assert_eq!(find_unused_limits(&[limits(), RepositoryFile::new("b.rs", "limits::A + limits::B")]), []);
    }

    #[test]
    fn limits_outside_the_list_are_found() {
        let scattered = |path: &str, text: &str| {
            let limits = RepositoryFile::new("crates/engine/src/limits.rs", "pub const A_MAX: usize = 1;");
            find_scattered_limits(&[limits, RepositoryFile::new(path, text)]).len()
        };
        let inside = "crates/engine/src/a.rs";
        assert_eq!(scattered(inside, "pub(crate) const B_MAX: usize = 1;"), 1);
        assert_eq!(scattered(inside, "    pub const B_MAX_MS: usize = 1;"), 1);
        assert_eq!(scattered(inside, "const A_MAX: usize = 1;"), 1);
        assert_eq!(scattered(inside, "const B_MAX: usize = 1; pub const MAXIMAL: u8 = 1;\npub const B: u8 = 1;"), 0);
        assert_eq!(scattered("crates/text/src/a.rs", "pub const A_MAX: usize = 1;"), 0);
    }

    #[test]
    fn limits_without_a_sentence_are_found() {
        let found =
            |text: &str| find_undescribed_limits(&[RepositoryFile::new("crates/engine/src/limits.rs", text)]).len();
        assert_eq!(found("/// Bytes.\npub const A: usize = 1;\npub const B: usize = A;"), 1);
        assert_eq!(found("/// Bytes.\npub const A: usize = 1;"), 0);
    }
}
