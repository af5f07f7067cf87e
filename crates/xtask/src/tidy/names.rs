//! Words that say nothing. When one of them is the best name, the thing is not understood yet.

use super::{File, Finding};

/// Not in a file, module, type, function or constant of ours; plurals neither.
const BANNED: &[&str] =
    &["manager", "helper", "util", "common", "misc", "handler", "service", "data", "info"];
/// Names that a trait of another crate asks for.
const FOREIGN: &[&str] = &["ServerHandler", "get_info"];

/// Banned words in the names of files and of what they define.
pub(super) fn banned_words(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        if let Some(word) = banned(file.stem()) {
            findings.push(Finding::new(file, 0, format!("a file is not called '{word}'")));
        }
        for (line, name) in file.source.iter().flat_map(|source| source.definitions()) {
            if let Some(word) = banned(name).filter(|_| !FOREIGN.contains(&name)) {
                findings.push(Finding::new(file, line, format!("'{name}': not with '{word}'")));
            }
        }
    }
    findings
}

/// The banned word in a name, if there is one.
fn banned(name: &str) -> Option<&'static str> {
    let parts = parts(name);
    BANNED.iter().copied().find(|word| {
        parts.iter().any(|part| part == word || part.strip_suffix('s').is_some_and(|single| single == *word))
    })
}

/// `snake_case`, `kebab-case` and `CamelCase` in lower-case words.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut after_small = false;
    for c in name.chars() {
        if matches!(c, '_' | '-' | '.') || (c.is_uppercase() && after_small) {
            parts.push(String::new());
        }
        if let Some(last) = parts.last_mut().filter(|_| c.is_alphanumeric()) {
            last.extend(c.to_lowercase());
        }
        after_small = c.is_lowercase();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_words_are_found_wherever_they_hide() {
        for bad in [
            "fn path_helper() {}",
            "struct LockManager;",
            "mod utils;",
            "enum FileInfo {}",
            "const COMMON_NAMES: u8 = 1;",
            "trait Service {}",
        ] {
            assert_eq!(banned_words(&[File::new("src/a.rs", bad)]).len(), 1, "{bad}");
        }
        assert_eq!(banned_words(&[File::new("src/file_utils.rs", "")]).len(), 1);
        assert_eq!(banned_words(&[File::new("docs/misc.md", "")]).len(), 1);
    }

    #[test]
    fn uses_texts_and_longer_words_are_free() {
        for good in [
            "impl ServerHandler for Face { fn get_info(&self) {} }",
            "fn metadata() { let utility = \"fn helper()\"; } // a helper",
            "use other::Manager;",
        ] {
            assert_eq!(banned_words(&[File::new("src/a.rs", good)]), [], "{good}");
        }
    }
}
