//! Which new names are fit to create: names that every common file system can hold and that show what they are.
//! Judges only names about to be created; what already exists stays reachable.

use crate::fold::is_invisible;

/// Why a name is not portable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameProblem {
    /// The bytes are not UTF-8.
    #[error("the name is not valid UTF-8")]
    NotUtf8,
    /// A control character.
    #[error("the name holds a control character")]
    Control,
    /// A character that changes direction or cannot be seen.
    #[error("the name holds an invisible or direction-changing character")]
    Invisible,
    /// One of the characters some systems reserve.
    #[error("the name holds one of < > : \" | ? * or a backslash")]
    Reserved,
    /// It ends in a dot or a blank.
    #[error("the name ends in a dot or a blank")]
    Ending,
    /// A device name on some systems, with or without an extension.
    #[error("the name is a device name on some systems")]
    Device,
}

/// Checks one name against the portable profile.
pub fn check_portable(name: &[u8]) -> Result<(), NameProblem> {
    let text = std::str::from_utf8(name).map_err(|_| NameProblem::NotUtf8)?;
    for c in text.chars() {
        match c {
            _ if c.is_control() => return Err(NameProblem::Control),
            _ if is_invisible(c) && c != '\u{FE0F}' => return Err(NameProblem::Invisible),
            '<' | '>' | ':' | '"' | '|' | '?' | '*' | '\\' => return Err(NameProblem::Reserved),
            _ => {}
        }
    }
    if is_device(text) {
        return Err(NameProblem::Device);
    }
    if text.ends_with(['.', ' ']) {
        return Err(NameProblem::Ending);
    }
    Ok(())
}

fn is_device(name: &str) -> bool {
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
    fn names_that_some_system_cannot_hold() {
        for (name, problem) in [
            ("nul.txt", NameProblem::Device),
            ("COM1", NameProblem::Device),
            ("com¹", NameProblem::Device),
            ("LPT9.log", NameProblem::Device),
            ("aux ", NameProblem::Device),
            ("CONIN$", NameProblem::Device),
            ("a:b", NameProblem::Reserved),
            ("what?", NameProblem::Reserved),
            ("trail.", NameProblem::Ending),
            ("trail ", NameProblem::Ending),
            ("tab\tname", NameProblem::Control),
            ("evil\u{202e}txt", NameProblem::Invisible),
            ("zero\u{200b}width", NameProblem::Invisible),
        ] {
            assert_eq!(check_portable(name.as_bytes()), Err(problem), "{name:?}");
        }
        assert_eq!(check_portable(b"a\xff"), Err(NameProblem::NotUtf8));
    }

    #[test]
    fn ordinary_names_pass() {
        for name in ["a", "Makefile", ".gitignore", "über.txt", "command", "com10", "a b", "日本.rs", "...x"]
        {
            assert_eq!(check_portable(name.as_bytes()), Ok(()), "{name:?}");
        }
    }
}
