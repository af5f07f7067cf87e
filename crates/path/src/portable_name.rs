//! Portability rules for new names: names that every common file system can store and that are displayed as they are.
//! Checks only names about to be created; existing files stay reachable.

use crate::folded_name::is_invisible;

/// Why a name is not portable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PortableNameError {
    /// The bytes are not UTF-8.
    #[error("the name is not valid UTF-8")]
    NotUtf8,
    /// The name has a control character.
    #[error("the name contains a control character")]
    ControlCharacter,
    /// The name has an invisible or direction-changing character.
    #[error("the name contains an invisible or direction-changing character")]
    InvisibleCharacter,
    /// The name has a character that some systems reserve.
    #[error("the name contains one of < > : \" | ? * or a backslash")]
    ReservedCharacter,
    /// The name ends in a dot or a blank.
    #[error("the name ends in a dot or a blank")]
    TrailingDotOrSpace,
    /// A device name on some systems, with or without an extension.
    #[error("the name is a device name on some systems")]
    ReservedDeviceName,
}

/// Checks a name against the portability rules.
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
