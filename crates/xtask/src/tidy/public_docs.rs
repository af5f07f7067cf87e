//! Requires a doc comment on every public item and method of the library crates.
//!
//! The lint `missing_docs` requires one on every field and variant as well, where most comments only repeat the name.

use super::{RepositoryFile, TidyFinding, leftovers::rust_files, rust_source::identifiers};

const UNCHECKED_CRATES: &[&str] = &["crates/stead/", "crates/testkit/", "crates/xtask/", "bench/"];
/// `definitions/stead.yaml` describes the arguments and outcomes of operations, with their parts.
const DESCRIBED_BY_DEFINITIONS: &[&str] =
    &["crates/engine/src/next_step.rs", "crates/engine/src/ops/", "crates/engine/src/outcome.rs"];
const ITEM_KEYWORDS: &[&str] =
    &["async", "const", "enum", "fn", "static", "struct", "trait", "type", "union", "unsafe"];

pub(super) fn find_undocumented_items(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (file, source) in rust_files(files).filter(|(file, _)| is_checked(&file.path)) {
        let code = source.code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let (mut is_documented, mut in_public_trait, mut open_brackets) = (false, false, 0_usize);
        for (index, (line, comment)) in code.lines().zip(source.comments.lines()).enumerate() {
            if open_brackets > 0 || line.trim_start().starts_with("#[") {
                open_brackets = (open_brackets + line.matches('[').count()).saturating_sub(line.matches(']').count());
            } else if comment.trim_start().starts_with("///") {
                is_documented = true;
            } else if !line.trim().is_empty() {
                in_public_trait = line.starts_with("pub trait ") || (in_public_trait && !line.starts_with('}'));
                let is_item = is_public_item(line) || (in_public_trait && line.starts_with("    fn "));
                if is_item && !is_documented {
                    findings.push(TidyFinding::new(file, index + 1, "a public item needs a doc comment"));
                }
                is_documented = false;
            }
        }
    }
    findings
}

fn is_checked(path: &str) -> bool {
    let is_excepted = |prefix: &&str| path.starts_with(*prefix);
    path.starts_with("crates/")
        && path.contains("/src/")
        && !UNCHECKED_CRATES.iter().chain(DESCRIBED_BY_DEFINITIONS).any(is_excepted)
}

/// A module in a file of its own is documented in this file.
fn is_public_item(line: &str) -> bool {
    let mut words = identifiers(line);
    let keyword = (words.next() == Some("pub")).then(|| words.next()).flatten();
    keyword.is_some_and(|keyword| ITEM_KEYWORDS.contains(&keyword) || (keyword == "mod" && line.ends_with('{')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_items_without_a_doc_comment_are_found() {
        let lines = |path: &str, code: &str| -> Vec<usize> {
            let file = RepositoryFile::new(path, code);
            find_undocumented_items(&[file]).into_iter().map(|finding| finding.line).collect()
        };
        let undocumented = "pub mod a {\n    pub const A: u8 = 1;\n}\npub struct B {\n    pub field: u8,\n}\n\
                            impl B {\n    pub const fn c(&self) {}\n}\npub trait D {\n    fn e(&self);\n}\n";
        assert_eq!(lines("crates/text/src/a.rs", undocumented), [1, 2, 4, 8, 10, 11]);
        let documented = "/// A.\n#[derive(\n    Debug,\n)]\npub enum A {\n    B,\n}\n// Why.\npub(crate) fn c() {}\n\
                          pub mod d;\ntrait E {\n    fn f();\n}\n#[cfg(test)]\nmod tests {\n    pub fn g() {}\n}\n";
        assert!(lines("crates/text/src/a.rs", documented).is_empty());
        for unchecked in ["crates/stead/src/main.rs", "crates/engine/src/ops/read.rs", "crates/text/tests/it/main.rs"] {
            assert!(lines(unchecked, undocumented).is_empty(), "{unchecked}");
        }
    }
}
