//! What documents must keep: one title each, and in those about the inside no name that the sources do not have.

use std::collections::HashSet;

use super::{File, Finding, has_extension, source::words};

const ARCHITECTURE: &str = "ARCHITECTURE.md";
/// Where the rest about the inside is.
const INSIDE: &str = "docs/inside/";
/// Endings by which a quoted word is known as a file.
const FILE_ENDINGS: &[&str] = &["rs", "md", "toml", "yaml", "json"];

/// Exactly one first-level heading.
pub(super) fn one_title(files: &[File]) -> Vec<Finding> {
    let documents = files.iter().filter(|file| has_extension(&file.path, "md"));
    let titles = |file: &File| prose(&file.text).filter(|(_, line)| line.starts_with("# ")).count();
    documents
        .map(|file| (file, titles(file)))
        .filter(|(_, count)| *count != 1)
        .map(|(file, count)| Finding::new(file, 0, format!("{count} titles; a document has one")))
        .collect()
}

/// Every quoted name exists: identifiers in the code, paths in the tree. Quoted commands and flags are not names.
pub(super) fn architecture_names(files: &[File]) -> Vec<Finding> {
    let ours = files.iter().filter(|file| file.path.starts_with("crates/"));
    let mut known: HashSet<&str> =
        ours.filter_map(|file| file.source.as_ref()).flat_map(|source| words(&source.code)).collect();
    known.extend(files.iter().filter_map(|file| file.path.strip_prefix("crates/")?.split('/').next()));
    let mut findings = Vec::new();
    let is_inside = |file: &&File| file.path == ARCHITECTURE || file.path.starts_with(INSIDE);
    for document in files.iter().filter(is_inside) {
        for (line, text) in prose(&document.text) {
            for quoted in text.split('`').skip(1).step_by(2) {
                if let Some(missing) = missing_part(quoted, files, &known) {
                    let finding = format!("`{quoted}`: there is no '{missing}'");
                    findings.push(Finding::new(document, line, finding));
                }
            }
        }
    }
    findings
}

/// The part of a quoted name that nothing bears.
fn missing_part<'a>(quoted: &'a str, files: &[File], known: &HashSet<&str>) -> Option<&'a str> {
    let name = quoted.trim_end_matches("()").trim_end_matches('!');
    let is_file = name.contains('/') || FILE_ENDINGS.iter().any(|ending| has_extension(name, ending));
    if is_file {
        let place = name.trim_end_matches('/');
        let ends =
            |path: &str| path.strip_suffix(place).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
        let within = |path: &str| path.starts_with(&format!("{place}/"));
        let there = files.iter().any(|file| ends(&file.path) || within(&file.path));
        return (!there && !name.contains(' ')).then_some(quoted);
    }
    let identifier = |part: &str| part.chars().all(|c| c.is_alphanumeric() || c == '_') && !part.is_empty();
    if !name.split("::").all(identifier) {
        return None;
    }
    name.split("::").find(|part| !known.contains(part))
}

/// The lines outside fences, numbered from one.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
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
    fn titles_are_counted_outside_fences() {
        assert_eq!(one_title(&[File::new("a.md", "text")]).len(), 1);
        assert_eq!(one_title(&[File::new("a.md", "# a\n# b\n")]).len(), 1);
        assert_eq!(one_title(&[File::new("a.md", "# a\n```sh\n# comment\n```\n## b\n")]), []);
    }

    #[test]
    fn names_that_nothing_bears_are_found() {
        let check = |text: &str| {
            let plan = || File::new("crates/engine/src/plan.rs", "pub struct Plan; // Ghost");
            let found = architecture_names(&[File::new(ARCHITECTURE, text), plan()]);
            let inside = architecture_names(&[File::new("docs/inside/plans.md", text), plan()]);
            assert_eq!(found.len(), inside.len(), "{text}");
            found
        };
        for bad in
            ["`Ghost`", "`Plan::ghost`", "`engine::Plan` and `ghost()`", "`crates/ghost/`", "`ghost.rs`"]
        {
            assert_eq!(check(bad).len(), 1, "{bad}");
        }
        for good in
            ["`engine::Plan`", "`plan.rs`", "`crates/engine`", "`cargo xtask test`", "`--long`", "Ghost"]
        {
            assert_eq!(check(good), [], "{good}");
        }
        assert_eq!(check("```\n`Ghost`\n```"), []);
    }
}
