//! The folded key: two names with the same key may be the same file on some file system, or look the same to a
//! person. Used to compare against protected names and to refuse twins; never to open a file.

use unicode_normalization::UnicodeNormalization;

/// A name reduced to what every file system would agree is the same name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FoldedKey(String);

impl FoldedKey {
    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Folds one name: compatibility form, full case fold, invisible characters and trailing dots and blanks removed.
/// The short names that NTFS gives `.git` and its kin fold to the long one.
pub fn fold(name: &[u8]) -> FoldedKey {
    let text = String::from_utf8_lossy(name);
    if text.is_ascii() {
        return FoldedKey(short_name(text.trim_end_matches(['.', ' ']).to_ascii_lowercase()));
    }
    // Upper then lower is the full fold: it maps ß to ss, which lower-casing alone does not.
    let folded: String = text
        .chars()
        .filter(|c| !is_invisible(*c))
        .nfkc()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .nfkc()
        .collect();
    FoldedKey(short_name(folded.trim_end_matches(['.', ' ']).to_owned()))
}

fn short_name(name: String) -> String {
    match name.as_str() {
        "git~1" => ".git".to_owned(),
        _ => name,
    }
}

/// Characters that take part in a name without being seen in it: joiners, direction controls, variation selectors.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
        | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_share_a_key() {
        for (a, b) in [
            ("README.MD", "readme.md"),
            ("STRASSE", "straße"),
            (".GIT", ".git"),
            (".git.", ".git"),
            (".git ", ".git"),
            (".g\u{200c}it", ".git"),
            ("GIT~1", ".git"),
            ("e\u{301}", "é"),
            (".ｇit", ".git"),
        ] {
            assert_eq!(fold(a.as_bytes()), fold(b.as_bytes()), "{a:?} {b:?}");
        }
        assert_ne!(fold(b"a"), fold(b"b"));
    }
}
