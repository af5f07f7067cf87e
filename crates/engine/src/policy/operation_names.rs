//! The operation and tool names that a policy may use. A rule about an unknown name would never match without its
//! author noticing, so it is refused with a suggestion.

use super::AccessRight;
use crate::{operation::nearest_name, ops::OPERATIONS};

/// The tools of every dialect by full name, one per line; generated from `definitions/`.
const TOOL_NAMES: &str = include_str!("tools.txt");

/// The error for a word that matches no operation or tool: an exact name, or a prefix with a star.
pub(super) fn unknown_name_error(word: &str) -> Option<String> {
    let is_about = |name: &str| match word.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == word,
    };
    if known_names().any(is_about) {
        return None;
    }
    if AccessRight::ALL.iter().any(|right| right.as_str() == word) {
        return Some(format!("'{word}' is a right, not an operation; use rights = [\"{word}\"]"));
    }
    let normalized = word.replace("__", ".");
    let suggestion = nearest_name(normalized.trim_end_matches(['*', '.', '/']), known_names());
    let suggestion = suggestion.map(|name| format!("; did you mean '{name}'?")).unwrap_or_default();
    Some(format!("unknown operation or tool '{word}'{suggestion}"))
}

/// Every operation, and every tool with and without its dialect.
fn known_names() -> impl Iterator<Item = &'static str> + Clone {
    let bare = |tool: &'static str| tool.split_once('/').map(|(_, name)| name);
    OPERATIONS.iter().map(|row| row.name).chain(TOOL_NAMES.lines().filter_map(bare)).chain(TOOL_NAMES.lines())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_rejected_with_suggestion() {
        for fine in ["*", "remove", "filesystem.delete", "krux/filesystem.delete", "filesystem.*", "comma/*"] {
            assert_eq!(unknown_name_error(fine), None, "{fine}");
        }
        for (word, expected) in [
            ("delete", "'delete' is a right"),
            ("removee", "did you mean 'remove'?"),
            ("filesystem__delete", "did you mean 'krux/filesystem.delete'?"),
            ("filesistem.*", "unknown operation or tool"),
            ("acp/fs/write", "unknown operation or tool"),
        ] {
            let objection = unknown_name_error(word).expect(word);
            assert!(objection.contains(expected), "{word}: {objection}");
        }
    }
}
