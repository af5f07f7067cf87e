//! The path parser turns a caller's text into a checked path for all protocols and dialects. [`PathSyntax`] describes
//! how a dialect writes paths. No setting of the parser lets a path leave the workspace root.

use crate::{PATH_BYTES_MAX, PathError, RelPath};

/// A dot-dot rule says how the path parser handles `..` in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DotDotRule {
    /// The parser refuses a path that contains `..`, so that each file has only one path.
    Refuse,
    /// The parser folds `a/../b` into `b` without access to the file system. The parser refuses a path whose `..` would
    /// leave the workspace root.
    Fold,
    /// The parser makes a relative path absolute before it folds `..`. For example, `../ws/a` is the file `a` in a
    /// workspace whose root directory is named `ws`.
    FoldAbsolute,
}

/// An absolute-path rule says how the path parser handles a path with a leading slash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbsolutePathRule {
    /// An absolute path must start with one of the workspace's root paths, and the parser removes this prefix.
    BelowRoot,
    Refuse,
}

/// A backslash rule says what a backslash in a path means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathBackslashRule {
    /// A backslash starts an escape sequence of [`RelPath::to_wire`], and the parser refuses any other backslash.
    Escape,
    Literal,
}

/// A trailing-slash rule says what a slash at the end of a path means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrailingSlashRule {
    RequiresDirectory,
    Ignored,
}

/// An empty-path rule says how the path parser handles an empty path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyPathRule {
    Refuse,
    /// An empty path means the directory that relative paths start from.
    DefaultDirectory,
}

/// A path syntax describes how a dialect writes paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathSyntax {
    /// The directory below the workspace root from which relative paths of the dialect start.
    pub default_directory: RelPath,
    pub dot_dot: DotDotRule,
    pub absolute_paths: AbsolutePathRule,
    pub backslash: PathBackslashRule,
    pub trailing_slash: TrailingSlashRule,
    pub empty_path: EmptyPathRule,
}

impl Default for PathSyntax {
    fn default() -> Self {
        Self {
            default_directory: RelPath::root(),
            dot_dot: DotDotRule::Refuse,
            absolute_paths: AbsolutePathRule::BelowRoot,
            backslash: PathBackslashRule::Escape,
            trailing_slash: TrailingSlashRule::RequiresDirectory,
            empty_path: EmptyPathRule::Refuse,
        }
    }
}

/// The caller's spelling of a path can imply that the path must be a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKindImpliedBySpelling {
    Any,
    /// The caller's path ends in `/` or `/.`, so it must be a directory.
    Directory,
}

/// A parsed path is the checked form of a path that a caller wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedPath {
    pub path: RelPath,
    pub required_kind: PathKindImpliedBySpelling,
}

/// Parses a path that a caller wrote. Each of the `roots` is an absolute path of the workspace root that callers may
/// use as a prefix. The first of the `roots` is the canonical path of the workspace root. The parser compares paths
/// component by component, never as text.
pub fn parse_path(input: &str, roots: &[String], syntax: &PathSyntax) -> Result<ParsedPath, PathError> {
    if input.is_empty() && syntax.empty_path == EmptyPathRule::Refuse {
        return Err(PathError::Empty);
    }
    if input.contains('\0') {
        return Err(PathError::Nul);
    }
    let (relative, start) = match (input.starts_with('/'), syntax.absolute_paths, syntax.dot_dot) {
        (false, _, _) => (input, syntax.default_directory.components().collect()),
        (true, AbsolutePathRule::Refuse, _) => return Err(PathError::Absolute),
        // The prefix is compared with the root only after `..` has been folded.
        (true, AbsolutePathRule::BelowRoot, DotDotRule::FoldAbsolute) => (input, Vec::new()),
        (true, AbsolutePathRule::BelowRoot, DotDotRule::Refuse | DotDotRule::Fold) => {
            (strip_root_prefix(input, roots)?, Vec::new())
        }
    };
    if relative.len() > PATH_BYTES_MAX {
        return Err(PathError::PathTooLong);
    }
    reject_foreign_syntax(relative)?;
    let bytes = match syntax.backslash {
        PathBackslashRule::Escape => decode_escapes(relative)?,
        PathBackslashRule::Literal => relative.as_bytes().to_vec(),
    };
    let required_kind = match (syntax.trailing_slash, bytes.rsplit(|byte| *byte == b'/').next()) {
        (TrailingSlashRule::RequiresDirectory, Some(b"" | b".")) if bytes.contains(&b'/') => {
            PathKindImpliedBySpelling::Directory
        }
        (TrailingSlashRule::RequiresDirectory | TrailingSlashRule::Ignored, _) => PathKindImpliedBySpelling::Any,
    };
    let components = match syntax.dot_dot {
        DotDotRule::Refuse | DotDotRule::Fold => fold_components(start, &bytes, syntax.dot_dot)?,
        DotDotRule::FoldAbsolute => {
            let root = roots.first().map_or(&[][..], |root| root.as_bytes());
            let above = if input.starts_with('/') { Vec::new() } else { split_components(root).chain(start).collect() };
            strip_root_components(&fold_components(above, &bytes, DotDotRule::FoldAbsolute)?, roots)?
        }
    };
    Ok(ParsedPath { path: RelPath::from_components(components)?, required_kind })
}

fn split_components(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."))
}

fn fold_components<'a>(
    mut components: Vec<&'a [u8]>,
    bytes: &'a [u8],
    dot_dot: DotDotRule,
) -> Result<Vec<&'a [u8]>, PathError> {
    for name in split_components(bytes) {
        match (name, dot_dot) {
            (b"..", DotDotRule::Refuse) => return Err(PathError::DotDot),
            (b"..", DotDotRule::Fold) => {
                components.pop().ok_or(PathError::DotDot)?;
            }
            // The parent of `/` is `/`.
            (b"..", DotDotRule::FoldAbsolute) => drop(components.pop()),
            (name, _) => components.push(name),
        }
    }
    Ok(components)
}

fn strip_root_components<'a>(whole: &[&'a [u8]], roots: &[String]) -> Result<Vec<&'a [u8]>, PathError> {
    let below_root = |root: &String| {
        let root: Vec<&[u8]> = split_components(root.as_bytes()).collect();
        whole.starts_with(&root).then(|| whole[root.len()..].to_vec())
    };
    roots.iter().find_map(below_root).ok_or(PathError::ForeignSyntax)
}

fn strip_root_prefix<'a>(input: &'a str, roots: &[String]) -> Result<&'a str, PathError> {
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
    Err(PathError::ForeignSyntax)
}

/// Rejects a drive letter and a URI, because some systems would resolve them outside the workspace.
fn reject_foreign_syntax(input: &str) -> Result<(), PathError> {
    let bytes = input.as_bytes();
    let drive = bytes.len() >= 2
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes.get(2), None | Some(b'/' | b'\\'));
    let scheme = input.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-'))
    });
    if drive || scheme { Err(PathError::ForeignSyntax) } else { Ok(()) }
}

/// Decodes the escapes `\\` and `\xHH` that [`RelPath::to_wire`] writes. A backslash that starts no escape is an error,
/// because it is probably part of a Windows path.
pub(crate) fn decode_escapes(wire: &str) -> Result<Vec<u8>, PathError> {
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
                let value = hex_digit(*high).zip(hex_digit(*low)).map(|(h, l)| h << 4 | l);
                // Only bytes outside ASCII may be escaped, because an escaped ASCII byte could hide a slash or a dot.
                out.push(value.filter(|byte| *byte >= 0x80).ok_or(PathError::Backslash)?);
                rest = after;
            }
            (b'\\', _) => return Err(PathError::Backslash),
            (plain, _) => out.push(plain),
        }
    }
    Ok(out)
}

fn hex_digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn roots() -> Vec<String> {
        vec!["/srv/ws".to_owned()]
    }

    fn parse_error(input: &str) -> PathError {
        parse_path(input, &roots(), &PathSyntax::default()).unwrap_err()
    }

    fn parse_ok(input: &str) -> (String, PathKindImpliedBySpelling) {
        let parsed = parse_path(input, &roots(), &PathSyntax::default()).unwrap();
        (parsed.path.to_string(), parsed.required_kind)
    }

    #[test]
    fn rejects_paths_outside_the_root() {
        assert_eq!(parse_error(""), PathError::Empty);
        assert_eq!(parse_error("a\0b"), PathError::Nul);
        for dots in ["..", "../x", "a/../b", "a/.."] {
            assert_eq!(parse_error(dots), PathError::DotDot, "{dots}");
        }
        for foreign in ["/", "//", "/etc/passwd", "/srv/ws-evil/x", "/srv/w", "file:///etc/passwd", "C:/x", "c:"] {
            assert_eq!(parse_error(foreign), PathError::ForeignSyntax, "{foreign}");
        }
        for windows in ["..\\out", "\\\\server\\share", "C:\\x", "a\\u002e", "a\\x2e", "a\\x2fb"] {
            assert!(matches!(parse_error(windows), PathError::Backslash | PathError::ForeignSyntax), "{windows}");
        }
        assert_eq!(parse_error(&"a/".repeat(2100)), PathError::PathTooLong);
    }

    #[test]
    fn accepts_relative_and_absolute_paths() {
        assert_eq!(parse_ok("a//b///"), ("a/b".into(), PathKindImpliedBySpelling::Directory));
        assert_eq!(parse_ok("./a/./b"), ("a/b".into(), PathKindImpliedBySpelling::Any));
        assert_eq!(parse_ok("f/."), ("f".into(), PathKindImpliedBySpelling::Directory));
        assert_eq!(parse_ok("."), (".".into(), PathKindImpliedBySpelling::Any));
        assert_eq!(parse_ok("./"), (".".into(), PathKindImpliedBySpelling::Directory));
        assert_eq!(parse_ok("/srv/ws/f"), ("f".into(), PathKindImpliedBySpelling::Any));
        assert_eq!(parse_ok("/srv//ws/./f"), ("f".into(), PathKindImpliedBySpelling::Any));
        assert_eq!(parse_ok("/srv/ws"), (".".into(), PathKindImpliedBySpelling::Any));
        assert_eq!(parse_ok("..;/x"), ("..;/x".into(), PathKindImpliedBySpelling::Any));
        assert_eq!(parse_ok("%2e%2e/x"), ("%2e%2e/x".into(), PathKindImpliedBySpelling::Any));
        assert_eq!(parse_ok("~/x"), ("~/x".into(), PathKindImpliedBySpelling::Any));
    }

    #[test]
    fn folding_never_leaves_the_root() {
        let syntax = PathSyntax { dot_dot: DotDotRule::Fold, ..PathSyntax::default() };
        let fold = |input: &str| parse_path(input, &roots(), &syntax).map(|s| s.path.to_string());
        assert_eq!(fold("a/../b"), Ok("b".into()));
        assert_eq!(fold("a/../../b"), Err(PathError::DotDot));
        assert_eq!(fold("../ws/b"), Err(PathError::DotDot));
    }

    #[test]
    fn fold_absolute_allows_leaving_and_reentering_the_root() {
        let syntax = PathSyntax {
            dot_dot: DotDotRule::FoldAbsolute,
            empty_path: EmptyPathRule::DefaultDirectory,
            ..PathSyntax::default()
        };
        let fold = |input: &str| parse_path(input, &roots(), &syntax).map(|s| s.path.to_string());
        for (input, expected) in
            [("../ws/b", "b"), ("a/../../ws/b", "b"), ("/srv/x/../ws/b", "b"), ("/srv/ws", "."), ("", ".")]
        {
            assert_eq!(fold(input), Ok(expected.into()), "{input}");
        }
        for outside in ["..", "../ws2/b", "/", "/etc/passwd", "../../../../../etc/passwd", "/srv/ws/../x"] {
            assert_eq!(fold(outside), Err(PathError::ForeignSyntax), "{outside}");
        }
    }

    #[test]
    fn syntax_can_set_a_default_directory_and_reject_absolute_paths() {
        let default_directory = RelPath::from_wire("srv/ws").unwrap();
        let syntax = PathSyntax { default_directory, dot_dot: DotDotRule::FoldAbsolute, ..PathSyntax::default() };
        let parse = |input: &str| parse_path(input, &["/".to_owned()], &syntax).map(|s| s.path.to_string());
        assert_eq!(parse("a"), Ok("srv/ws/a".into()));
        assert_eq!(parse("../x"), Ok("srv/x".into()));
        assert_eq!(parse("/etc/hosts"), Ok("etc/hosts".into()));
        assert_eq!(parse("../../../../etc"), Ok("etc".into()));
        let syntax = PathSyntax { absolute_paths: AbsolutePathRule::Refuse, ..PathSyntax::default() };
        assert_eq!(parse_path("/srv/ws/a", &roots(), &syntax), Err(PathError::Absolute));
    }

    proptest! {
        #[test]
        fn wire_form_parses_back_to_the_same_path(parts in prop::collection::vec(prop::collection::vec(1u8.., 1..12), 1..6)) {
            if let Ok(path) = RelPath::from_components(parts.iter().map(Vec::as_slice)) {
                prop_assert_eq!(RelPath::from_wire(&path.to_wire()).unwrap(), path.clone());
            }
        }

        #[test]
        fn parsed_paths_never_contain_dot_dot(input in ".{0,40}") {
            for dots in [DotDotRule::Refuse, DotDotRule::Fold, DotDotRule::FoldAbsolute] {
                let syntax = PathSyntax { dot_dot: dots, ..PathSyntax::default() };
                if let Ok(parsed) = parse_path(&input, &roots(), &syntax) {
                    prop_assert!(parsed.path.components().all(|c| c != b".." && c != b"." && !c.contains(&0)));
                }
            }
        }
    }
}
