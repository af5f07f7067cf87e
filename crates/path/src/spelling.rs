//! From what a caller wrote to a checked path. One parser for every face and dialect: how a dialect
//! spells places is a [`Reading`], and no reading lets a spelling leave the root.

use crate::{PATH_BYTES_MAX, PathError, RelPath};

/// What to do with `..` in a spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dots {
    /// Refuse it: one place has one spelling.
    Refuse,
    /// Fold `a/../b` to `b` lexically, and refuse only what would leave the root.
    Fold,
    /// Fold the whole absolute spelling, so that `../ws/a` comes back into a root that is called `ws`.
    Reenter,
}

/// What to do with a spelling that starts with a slash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absolute {
    /// It must begin with a spelling of the root, which is taken off.
    BelowRoot,
    /// Refuse it, wherever it leads.
    Refuse,
}

/// What a backslash is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backslash {
    /// The start of an escape, as [`RelPath::to_wire`] writes it; any other is refused.
    Escape,
    /// A character like any other.
    Plain,
}

/// What a slash at the end says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// That only a directory will do.
    Insists,
    /// Nothing.
    Ignored,
}

/// How a dialect spells places. None of it lets a spelling leave the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Where relative spellings start, beneath the root.
    pub home: RelPath,
    /// What `..` means.
    pub dots: Dots,
    /// What a leading slash means.
    pub absolute: Absolute,
    /// What a backslash means.
    pub backslash: Backslash,
    /// What a trailing slash means.
    pub ending: Ending,
    /// What the empty spelling means.
    pub empty: Empty,
}

/// What the empty spelling means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Empty {
    /// Nothing: it is refused.
    Refuse,
    /// The place where relative spellings start.
    Home,
}

impl Default for Reading {
    /// The native reading: one place, one spelling.
    fn default() -> Self {
        Self {
            home: RelPath::root(),
            dots: Dots::Refuse,
            absolute: Absolute::BelowRoot,
            backslash: Backslash::Escape,
            ending: Ending::Insists,
            empty: Empty::Refuse,
        }
    }
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
/// prefix; they are compared component by component, never as text. The first one is the root's own.
pub fn parse(input: &str, roots: &[String], reading: &Reading) -> Result<Spelling, PathError> {
    if input.is_empty() && reading.empty == Empty::Refuse {
        return Err(PathError::Empty);
    }
    if input.contains('\0') {
        return Err(PathError::Nul);
    }
    let (relative, home) = match (input.starts_with('/'), reading.absolute, reading.dots) {
        (false, _, _) => (input, reading.home.components().collect()),
        (true, Absolute::Refuse, _) => return Err(PathError::Absolute),
        // What is folded as a whole is compared with the root after folding.
        (true, Absolute::BelowRoot, Dots::Reenter) => (input, Vec::new()),
        (true, Absolute::BelowRoot, Dots::Refuse | Dots::Fold) => (strip_root(input, roots)?, Vec::new()),
    };
    if relative.len() > PATH_BYTES_MAX {
        return Err(PathError::PathTooLong);
    }
    refuse_foreign_forms(relative)?;
    let bytes = match reading.backslash {
        Backslash::Escape => unescape(relative)?,
        Backslash::Plain => relative.as_bytes().to_vec(),
    };
    let trailing = match (reading.ending, bytes.rsplit(|byte| *byte == b'/').next()) {
        (Ending::Insists, Some(b"" | b".")) if bytes.contains(&b'/') => Trailing::Directory,
        (Ending::Insists | Ending::Ignored, _) => Trailing::Open,
    };
    let kept = match reading.dots {
        Dots::Refuse | Dots::Fold => folded(home, &bytes, reading.dots)?,
        Dots::Reenter => {
            let root = roots.first().map_or(&[][..], |root| root.as_bytes());
            let above = if input.starts_with('/') { Vec::new() } else { named(root).chain(home).collect() };
            below_root(&folded(above, &bytes, Dots::Reenter)?, roots)?
        }
    };
    Ok(Spelling { path: RelPath::from_components(kept)?, trailing })
}

/// The names in a spelling.
fn named(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."))
}

/// The names of a spelling that starts at a place, with `..` treated as said.
fn folded<'a>(mut kept: Vec<&'a [u8]>, bytes: &'a [u8], dots: Dots) -> Result<Vec<&'a [u8]>, PathError> {
    for name in named(bytes) {
        match (name, dots) {
            (b"..", Dots::Refuse) => return Err(PathError::DotDot),
            (b"..", Dots::Fold) => {
                kept.pop().ok_or(PathError::DotDot)?;
            }
            // Above the top of everything is the top of everything.
            (b"..", Dots::Reenter) => drop(kept.pop()),
            (name, _) => kept.push(name),
        }
    }
    Ok(kept)
}

/// What is left of a folded absolute spelling behind one of the roots.
fn below_root<'a>(whole: &[&'a [u8]], roots: &[String]) -> Result<Vec<&'a [u8]>, PathError> {
    let behind = |root: &String| {
        let root: Vec<&[u8]> = named(root.as_bytes()).collect();
        whole.starts_with(&root).then(|| whole[root.len()..].to_vec())
    };
    roots.iter().find_map(behind).ok_or(PathError::Foreign)
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
        parse(input, &roots(), &Reading::default()).unwrap_err()
    }

    fn accepted(input: &str) -> (String, Trailing) {
        let spelling = parse(input, &roots(), &Reading::default()).unwrap();
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
        let reading = Reading { dots: Dots::Fold, ..Reading::default() };
        let fold = |input: &str| parse(input, &roots(), &reading).map(|s| s.path.to_string());
        assert_eq!(fold("a/../b"), Ok("b".into()));
        assert_eq!(fold("a/../../b"), Err(PathError::DotDot));
        assert_eq!(fold("../ws/b"), Err(PathError::DotDot));
    }

    #[test]
    fn a_spelling_may_leave_and_come_back_where_the_dialect_says_so() {
        let reading = Reading { dots: Dots::Reenter, empty: Empty::Home, ..Reading::default() };
        let fold = |input: &str| parse(input, &roots(), &reading).map(|s| s.path.to_string());
        for (input, expected) in
            [("../ws/b", "b"), ("a/../../ws/b", "b"), ("/srv/x/../ws/b", "b"), ("/srv/ws", "."), ("", ".")]
        {
            assert_eq!(fold(input), Ok(expected.into()), "{input}");
        }
        for outside in ["..", "../ws2/b", "/", "/etc/passwd", "../../../../../etc/passwd", "/srv/ws/../x"] {
            assert_eq!(fold(outside), Err(PathError::Foreign), "{outside}");
        }
    }

    #[test]
    fn a_dialect_may_start_below_the_root_and_refuse_absolutes() {
        let home = RelPath::from_wire("srv/ws").unwrap();
        let reading = Reading { home, dots: Dots::Reenter, ..Reading::default() };
        let wide = |input: &str| parse(input, &["/".to_owned()], &reading).map(|s| s.path.to_string());
        assert_eq!(wide("a"), Ok("srv/ws/a".into()));
        assert_eq!(wide("../x"), Ok("srv/x".into()));
        assert_eq!(wide("/etc/hosts"), Ok("etc/hosts".into()));
        assert_eq!(wide("../../../../etc"), Ok("etc".into()));
        let reading = Reading { absolute: Absolute::Refuse, ..Reading::default() };
        assert_eq!(parse("/srv/ws/a", &roots(), &reading), Err(PathError::Absolute));
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
            for dots in [Dots::Refuse, Dots::Fold, Dots::Reenter] {
                let reading = Reading { dots, ..Reading::default() };
                if let Ok(spelling) = parse(&input, &roots(), &reading) {
                    prop_assert!(spelling.path.components().all(|c| c != b".." && c != b"." && !c.contains(&0)));
                }
            }
        }
    }
}
