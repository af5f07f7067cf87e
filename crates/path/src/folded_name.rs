//! Folded names. Two names with the same folded form may be the same file on some file system, or look the same to a
//! person. Used to compare with protected names and to reject look-alikes; never to open a file.

use unicode_normalization::UnicodeNormalization;

/// A name reduced to the form that all file systems treat as equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FoldedName(String);

impl FoldedName {
    /// The folded name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Folds one name: compatibility form, full case folding, without invisible characters and trailing dots and blanks.
/// The NTFS short names of `.git` and similar directories fold to the long name.
pub fn fold_name(name: &[u8]) -> FoldedName {
    let text = String::from_utf8_lossy(name);
    if text.is_ascii() {
        return FoldedName(expand_dos_short_name(text.trim_end_matches(['.', ' ']).to_ascii_lowercase()));
    }
    // Upper then lower case is the full fold: it maps ß to ss, which lower-casing alone does not.
    let folded: String = text
        .chars()
        .filter(|c| !is_invisible(*c))
        .nfkc()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .nfkc()
        .collect();
    FoldedName(expand_dos_short_name(folded.trim_end_matches(['.', ' ']).to_owned()))
}

fn expand_dos_short_name(name: String) -> String {
    match name.as_str() {
        "git~1" => ".git".to_owned(),
        _ => name,
    }
}

/// Invisible characters: joiners, direction controls, variation selectors.
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
    fn look_alike_names_fold_to_the_same_key() {
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
            assert_eq!(fold_name(a.as_bytes()), fold_name(b.as_bytes()), "{a:?} {b:?}");
        }
        assert_ne!(fold_name(b"a"), fold_name(b"b"));
    }
}
