//! From what a caller wrote to a checked path. One parser for every face and dialect: the only freedom a dialect has
//! is whether inner `..` is refused or folded lexically.

use crate::{PATH_BYTES_MAX, PathError, RelPath};

/// What to do with `..` in a spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dots {
    /// Refuse it: one place has one spelling.
    Refuse,
    /// Fold `a/../b` to `b` lexically, and refuse only what would leave the root.
    Fold,
}

/// Whether the spelling insisted on a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trailing {
    /// Nothing was said.
    Open,
    /// It ended in `/` or `/.`: only a directory will do.
    Directory,
}

/// A parsed spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spelling {
    /// The place meant, relative to the root.
    pub path: RelPath,
    /// Whether it must be a directory.
    pub trailing: Trailing,
}

/// Parses what a caller wrote. `roots` are the absolute spellings of the workspace root that callers may use as a
/// prefix; they are compared component by component, never as text.
pub fn parse(input: &str, roots: &[String], dots: Dots) -> Result<Spelling, PathError> {
    if input.is_empty() {
        return Err(PathError::Empty);
    }
    if input.contains('\0') {
        return Err(PathError::Nul);
    }
    let relative = if input.starts_with('/') { strip_root(input, roots)? } else { input };
    if relative.len() > PATH_BYTES_MAX {
        return Err(PathError::PathTooLong);
    }
    refuse_foreign_forms(relative)?;
    let bytes = unescape(relative)?;
    let trailing = match bytes.rsplit(|byte| *byte == b'/').next() {
        Some(b"" | b".") if bytes.contains(&b'/') => Trailing::Directory,
        Some(_) | None => Trailing::Open,
    };
    let mut kept: Vec<&[u8]> = Vec::new();
    for component in bytes.split(|byte| *byte == b'/') {
        match (component, dots) {
            (b"" | b".", _) => {}
            (b"..", Dots::Refuse) => return Err(PathError::DotDot),
            (b"..", Dots::Fold) => {
                kept.pop().ok_or(PathError::DotDot)?;
            }
            (name, _) => kept.push(name),
        }
    }
    Ok(Spelling { path: RelPath::from_components(kept)?, trailing })
}

/// Strips a registered root from an absolute spelling.
fn strip_root<'a>(input: &'a str, roots: &[String]) -> Result<&'a str, PathError> {
    for root in roots {
        let mut rest = input;
        let matched = root.split('/').filter(|part| !part.is_empty()).all(|part| {
            let trimmed = rest.trim_start_matches('/');
            let end = trimmed.find('/').unwrap_or(trimmed.len());
            rest = &trimmed[end..];
            &trimmed[..end] == part
        });
        if matched {
            let below = rest.trim_start_matches('/');
            return Ok(if below.is_empty() { "." } else { below });
        }
    }
    Err(PathError::Foreign)
}

/// Drive letters and URIs mean a place elsewhere on some system; a name like that is never looked up here.
fn refuse_foreign_forms(input: &str) -> Result<(), PathError> {
    let bytes = input.as_bytes();
    let drive = bytes.len() >= 2
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes.get(2), None | Some(b'/' | b'\\'));
    let scheme = input.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-'))
    });
    if drive || scheme { Err(PathError::Foreign) } else { Ok(()) }
}

/// Undoes the escapes of [`RelPath::to_wire`]: `\\` and `\xHH`. Any other backslash is refused, so that a Windows
/// spelling is an error and not a strange name.
pub(crate) fn unescape(wire: &str) -> Result<Vec<u8>, PathError> {
    let mut out = Vec::with_capacity(wire.len());
    let mut rest = wire.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match (byte, tail) {
            (b'\\', [b'\\', after @ ..]) => {
                out.push(b'\\');
                rest = after;
            }
            (b'\\', [b'x', high, low, after @ ..]) => {
                let value = hex(*high).zip(hex(*low)).map(|(h, l)| h << 4 | l);
                // Escaping is for bytes that UTF-8 cannot carry; an escaped ASCII byte could smuggle a slash or a dot.
                out.push(value.filter(|byte| *byte >= 0x80).ok_or(PathError::Backslash)?);
                rest = after;
            }
            (b'\\', _) => return Err(PathError::Backslash),
            (plain, _) => out.push(plain),
        }
    }
    Ok(out)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn roots() -> Vec<String> {
        vec!["/srv/ws".to_owned()]
    }

    fn refused(input: &str) -> PathError {
        parse(input, &roots(), Dots::Refuse).unwrap_err()
    }

    fn accepted(input: &str) -> (String, Trailing) {
        let spelling = parse(input, &roots(), Dots::Refuse).unwrap();
        (spelling.path.to_string(), spelling.trailing)
    }

    #[test]
    fn refuses_what_leads_elsewhere() {
        assert_eq!(refused(""), PathError::Empty);
        assert_eq!(refused("a\0b"), PathError::Nul);
        for dots in ["..", "../x", "a/../b", "a/.."] {
            assert_eq!(refused(dots), PathError::DotDot, "{dots}");
        }
        for foreign in
            ["/", "//", "/etc/passwd", "/srv/ws-evil/x", "/srv/w", "file:///etc/passwd", "C:/x", "c:"]
        {
            assert_eq!(refused(foreign), PathError::Foreign, "{foreign}");
        }
        for windows in ["..\\out", "\\\\server\\share", "C:\\x", "a\\u002e", "a\\x2e", "a\\x2fb"] {
            assert!(matches!(refused(windows), PathError::Backslash | PathError::Foreign), "{windows}");
        }
        assert_eq!(refused(&"a/".repeat(2100)), PathError::PathTooLong);
    }

    #[test]
    fn accepts_plain_and_absolute_spellings() {
        assert_eq!(accepted("a//b///"), ("a/b".into(), Trailing::Directory));
        assert_eq!(accepted("./a/./b"), ("a/b".into(), Trailing::Open));
        assert_eq!(accepted("f/."), ("f".into(), Trailing::Directory));
        assert_eq!(accepted("."), (".".into(), Trailing::Open));
        assert_eq!(accepted("./"), (".".into(), Trailing::Directory));
        assert_eq!(accepted("/srv/ws/f"), ("f".into(), Trailing::Open));
        assert_eq!(accepted("/srv//ws/./f"), ("f".into(), Trailing::Open));
        assert_eq!(accepted("/srv/ws"), (".".into(), Trailing::Open));
        assert_eq!(accepted("..;/x"), ("..;/x".into(), Trailing::Open));
        assert_eq!(accepted("%2e%2e/x"), ("%2e%2e/x".into(), Trailing::Open));
        assert_eq!(accepted("~/x"), ("~/x".into(), Trailing::Open));
    }

    #[test]
    fn folding_never_leaves_the_root() {
        let fold = |input: &str| parse(input, &roots(), Dots::Fold).map(|s| s.path.to_string());
        assert_eq!(fold("a/../b"), Ok("b".into()));
        assert_eq!(fold("a/../../b"), Err(PathError::DotDot));
    }

    proptest! {
        #[test]
        fn wire_form_parses_to_the_same_path(parts in prop::collection::vec(prop::collection::vec(1u8.., 1..12), 1..6)) {
            if let Ok(path) = RelPath::from_components(parts.iter().map(Vec::as_slice)) {
                prop_assert_eq!(RelPath::from_wire(&path.to_wire()).unwrap(), path.clone());
            }
        }

        #[test]
        fn no_spelling_yields_a_dot_dot(input in ".{0,40}") {
            for dots in [Dots::Refuse, Dots::Fold] {
                if let Ok(spelling) = parse(&input, &roots(), dots) {
                    prop_assert!(spelling.path.components().all(|c| c != b".." && c != b"." && !c.contains(&0)));
                }
            }
        }
    }
}
