//! Which words of a policy are operations or tools. A rule about a name that nothing has would bind nobody, and whoever
//! wrote it would not know: it is refused, with what was meant.

use super::Right;
use crate::{operation::nearest, ops::OPERATIONS};

/// The tools of every dialect by their full names, one a line; generated from `definitions/`.
const TOOLS: &str = include_str!("tools.txt");

/// What is wrong with a word that stands for operations: exact, or a start with a star. Nothing when it is about any.
pub(super) fn objection(word: &str) -> Option<String> {
    let is_about = |name: &str| match word.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == word,
    };
    if known().any(is_about) {
        return None;
    }
    if Right::ALL.iter().any(|right| right.word() == word) {
        return Some(format!("'{word}' is a right and no operation; say rights = [\"{word}\"]"));
    }
    let spelled = word.replace("__", ".");
    let meant = nearest(spelled.trim_end_matches(['*', '.', '/']), known());
    let meant = meant.map(|name| format!("; perhaps '{name}'")).unwrap_or_default();
    Some(format!("there is no operation or tool '{word}'{meant}"))
}

/// Every operation, and every tool with and without its dialect.
fn known() -> impl Iterator<Item = &'static str> + Clone {
    let bare = |tool: &'static str| tool.split_once('/').map(|(_, name)| name);
    OPERATIONS.iter().map(|row| row.name).chain(TOOLS.lines().filter_map(bare)).chain(TOOLS.lines())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_about_nothing_are_refused_with_what_was_meant() {
        for fine in ["*", "remove", "filesystem.delete", "krux/filesystem.delete", "filesystem.*", "comma/*"]
        {
            assert_eq!(objection(fine), None, "{fine}");
        }
        for (word, said) in [
            ("delete", "'delete' is a right"),
            ("removee", "perhaps 'remove'"),
            ("filesystem__delete", "perhaps 'krux/filesystem.delete'"),
            ("filesistem.*", "no operation or tool"),
            ("acp/fs/write", "no operation or tool"),
        ] {
            let objection = objection(word).expect(word);
            assert!(objection.contains(said), "{word}: {objection}");
        }
    }
}
