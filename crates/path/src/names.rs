//! Rules for single names: the folded form, by which look-alike names are compared, and the portability rules.
//!
//! Two names with the same folded form may be the same file on some file system, or look the same to a person. A folded
//! form is never used to open a file. A portable name can be stored on every common file system and is displayed as it
//! is. Only a name that is about to be created must be portable, so existing files stay reachable.

use unicode_normalization::UnicodeNormalization;

/// A name in its folded form, which is the same for all names that some file system treats as equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FoldedName(String);

impl FoldedName {
    /// Returns the folded name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Folds a name: applies the Unicode compatibility form and full case folding, and removes invisible characters,
/// trailing dots and trailing blanks. The NTFS short name of `.git` is folded to `.git`.
pub fn fold_name(name: &[u8]) -> FoldedName {
    let text = String::from_utf8_lossy(name);
    if text.is_ascii() {
        return FoldedName(expand_dos_short_name(text.trim_end_matches(['.', ' ']).to_ascii_lowercase()));
    }
    // The text is converted to upper case first, because that maps ß to ss; conversion to lower case alone does not.
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

/// Joiners, direction controls and variation selectors are invisible characters.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
        | '\u{E0000}'..='\u{E0FFF}')
}

/// The reason why a name is not portable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PortableNameError {
    /// The name is not valid UTF-8.
    #[error("the name is not valid UTF-8")]
    NotUtf8,
    /// The name contains a control character.
    #[error("the name contains a control character")]
    ControlCharacter,
    /// The name contains an invisible or direction-changing character.
    #[error("the name contains an invisible or direction-changing character")]
    InvisibleCharacter,
    /// The name contains a character that some systems reserve.
    #[error("the name contains one of < > : \" | ? * or a backslash")]
    ReservedCharacter,
    /// The name ends in a dot or a blank.
    #[error("the name ends in a dot or a blank")]
    TrailingDotOrSpace,
    /// The name is a device name on some systems, with or without an extension.
    #[error("the name is a device name on some systems")]
    ReservedDeviceName,
}

/// Checks the name of a new file against the portability rules.
pub fn check_portable_name(name: &[u8]) -> Result<(), PortableNameError> {
    let text = std::str::from_utf8(name).map_err(|_| PortableNameError::NotUtf8)?;
    for c in text.chars() {
        match c {
            _ if c.is_control() => return Err(PortableNameError::ControlCharacter),
            _ if is_invisible(c) && c != '\u{FE0F}' => return Err(PortableNameError::InvisibleCharacter),
            '<' | '>' | ':' | '"' | '|' | '?' | '*' | '\\' => {
                return Err(PortableNameError::ReservedCharacter);
            }
            _ => {}
        }
    }
    if is_reserved_device_name(text) {
        return Err(PortableNameError::ReservedDeviceName);
    }
    if text.ends_with(['.', ' ']) {
        return Err(PortableNameError::TrailingDotOrSpace);
    }
    Ok(())
}

fn is_reserved_device_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_uppercase();
    if matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$" | "CLOCK$") {
        return true;
    }
    let mut chars = stem.chars();
    let prefix: String = chars.by_ref().take(3).collect();
    let port = matches!(chars.next(), Some('0'..='9' | '¹' | '²' | '³'));
    (prefix == "COM" || prefix == "LPT") && port && chars.next().is_none()
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

    #[test]
    fn rejects_names_that_are_not_portable() {
        for (name, problem) in [
            ("nul.txt", PortableNameError::ReservedDeviceName),
            ("COM1", PortableNameError::ReservedDeviceName),
            ("com¹", PortableNameError::ReservedDeviceName),
            ("LPT9.log", PortableNameError::ReservedDeviceName),
            ("aux ", PortableNameError::ReservedDeviceName),
            ("CONIN$", PortableNameError::ReservedDeviceName),
            ("a:b", PortableNameError::ReservedCharacter),
            ("what?", PortableNameError::ReservedCharacter),
            ("trail.", PortableNameError::TrailingDotOrSpace),
            ("trail ", PortableNameError::TrailingDotOrSpace),
            ("tab\tname", PortableNameError::ControlCharacter),
            ("evil\u{202e}txt", PortableNameError::InvisibleCharacter),
            ("zero\u{200b}width", PortableNameError::InvisibleCharacter),
        ] {
            assert_eq!(check_portable_name(name.as_bytes()), Err(problem), "{name:?}");
        }
        assert_eq!(check_portable_name(b"a\xff"), Err(PortableNameError::NotUtf8));
    }

    #[test]
    fn accepts_ordinary_names() {
        for name in ["a", "Makefile", ".gitignore", "über.txt", "command", "com10", "a b", "日本.rs", "...x"] {
            assert_eq!(check_portable_name(name.as_bytes()), Ok(()), "{name:?}");
        }
    }
}
