//! Rules for Markdown documents: each has one title, and names in backticks in internal documents exist in the sources.

use std::collections::HashSet;

use super::{RepositoryFile, TidyFinding, has_extension, is_project_path, rust_source::identifiers};

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const INSIDE_DIRECTORY: &str = "docs/inside/";
const FILE_ENDINGS: &[&str] = &["rs", "md", "toml", "yaml", "json"];

pub(super) fn require_one_title(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    let documents = files.iter().filter(|file| has_extension(&file.path, "md"));
    let titles = |file: &RepositoryFile| prose_lines(&file.text).filter(|(_, line)| line.starts_with("# ")).count();
    documents
        .map(|file| (file, titles(file)))
        .filter(|(_, count)| *count != 1)
        .map(|(file, count)| TidyFinding::new(file, 0, format!("{count} titles; a document must have one")))
        .collect()
}

/// Names in backticks must exist as identifiers in the code or as paths in the repository.
pub(super) fn check_quoted_names(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    let crate_files = files.iter().filter(|file| is_project_path(&file.path));
    let mut known: HashSet<&str> =
        crate_files.filter_map(|file| file.rust_source.as_ref()).flat_map(|source| identifiers(&source.code)).collect();
    known.extend(files.iter().filter_map(|file| file.path.strip_prefix("crates/")?.split('/').next()));
    let mut findings = Vec::new();
    let is_inside = |file: &&RepositoryFile| file.path == ARCHITECTURE || file.path.starts_with(INSIDE_DIRECTORY);
    for document in files.iter().filter(is_inside) {
        for (line, text) in prose_lines(&document.text) {
            for quoted in text.split('`').skip(1).step_by(2) {
                if let Some(missing) = unknown_name_part(quoted, files, &known) {
                    let finding = format!("`{quoted}`: '{missing}' does not exist");
                    findings.push(TidyFinding::new(document, line, finding));
                }
            }
        }
    }
    findings
}

fn unknown_name_part<'a>(quoted: &'a str, files: &[RepositoryFile], known: &HashSet<&str>) -> Option<&'a str> {
    let name = quoted.trim_end_matches("()").trim_end_matches('!');
    let is_file = name.contains('/') || FILE_ENDINGS.iter().any(|ending| has_extension(name, ending));
    if is_file {
        let path_suffix = name.trim_end_matches('/');
        let ends =
            |path: &str| path.strip_suffix(path_suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
        let within = |path: &str| path.starts_with(&format!("{path_suffix}/"));
        let exists = files.iter().any(|file| ends(&file.path) || within(&file.path));
        return (!exists && !name.contains(' ')).then_some(quoted);
    }
    let identifier = |part: &str| part.chars().all(|c| c.is_alphanumeric() || c == '_') && !part.is_empty();
    if !name.split("::").all(identifier) {
        return None;
    }
    name.split("::").find(|part| !known.contains(part))
}

/// Returns the lines of a Markdown text outside of code fences, with line numbers that start at one.
fn prose_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_in_code_fences_are_ignored() {
        assert_eq!(require_one_title(&[RepositoryFile::new("a.md", "text")]).len(), 1);
        assert_eq!(require_one_title(&[RepositoryFile::new("a.md", "# a\n# b\n")]).len(), 1);
        assert_eq!(require_one_title(&[RepositoryFile::new("a.md", "# a\n```sh\n# comment\n```\n## b\n")]), []);
    }

    #[test]
    fn unknown_quoted_names_are_found() {
        let check = |text: &str| {
            let plan = || RepositoryFile::new("crates/engine/src/plan.rs", "pub struct Plan; // Ghost");
            let found = check_quoted_names(&[RepositoryFile::new(ARCHITECTURE, text), plan()]);
            let inside = check_quoted_names(&[RepositoryFile::new("docs/inside/plans.md", text), plan()]);
            assert_eq!(found.len(), inside.len(), "{text}");
            found
        };
        for bad in ["`Ghost`", "`Plan::ghost`", "`engine::Plan` and `ghost()`", "`crates/ghost/`", "`ghost.rs`"] {
            assert_eq!(check(bad).len(), 1, "{bad}");
        }
        for good in ["`engine::Plan`", "`plan.rs`", "`crates/engine`", "`cargo xtask test`", "`--long`", "Ghost"] {
            assert_eq!(check(good), [], "{good}");
        }
        assert_eq!(check("```\n`Ghost`\n```"), []);
    }
}
