//! The parser that turns a caller's text into a checked path. All protocols and dialects share this parser.
//! [`PathSyntax`] describes how a dialect writes paths; no setting lets a path leave the root.

use crate::{PATH_BYTES_MAX, PathError, RelPath};

/// How `..` in a path is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DotDotRule {
    /// A path with `..` is an error, so that each file has only one path.
    Refuse,
    /// `a/../b` becomes `b` without access to the file system. A path that would leave the root is an error.
    Fold,
    /// `..` is resolved in the absolute path. `../ws/a` is therefore valid if the root directory is named `ws`.
    FoldAbsolute,
}

/// How a path with a leading slash is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbsolutePathRule {
    /// An absolute path must start with one of the root paths, and this prefix is removed.
    BelowRoot,
    /// A path with a leading slash is an error.
    Refuse,
}

/// The meaning of a backslash in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathBackslashRule {
    /// A backslash starts an escape sequence of [`RelPath::to_wire`]; a backslash without a valid escape is an error.
    Escape,
    /// A backslash is an ordinary character.
    Literal,
}

/// The meaning of a trailing slash in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrailingSlashRule {
    /// A path with a trailing slash must be a directory.
    RequiresDirectory,
    /// A trailing slash has no meaning.
    Ignored,
}

/// How an empty path is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyPathRule {
    /// An empty path is an error.
    Refuse,
    /// An empty path means the directory that relative paths start from.
    DefaultDirectory,
}

/// How a dialect writes paths. No setting lets a path leave the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathSyntax {
    /// The directory below the root that relative paths start from.
    pub default_directory: RelPath,
    /// How this dialect handles `..` in a path.
    pub dot_dot: DotDotRule,
    /// How this dialect handles a path with a leading slash.
    pub absolute_paths: AbsolutePathRule,
    /// The meaning of a backslash in the paths of this dialect.
    pub backslash: PathBackslashRule,
    /// The meaning of a trailing slash in the paths of this dialect.
    pub trailing_slash: TrailingSlashRule,
    /// How an empty path is handled.
    pub empty_path: EmptyPathRule,
}

impl Default for PathSyntax {
    /// The native syntax: each file has one path.
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

/// Whether the caller's spelling of a path requires a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKindImpliedBySpelling {
    /// The spelling of the path allows any file type.
    Any,
    /// The caller's path ended in `/` or `/.`, so it must be a directory.
    Directory,
}

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedPath {
    /// The parsed path, relative to the root.
    pub path: RelPath,
    /// Whether the path must be a directory.
    pub required_kind: PathKindImpliedBySpelling,
}

/// Parses a path. `roots` are the absolute paths of the workspace root that callers may use as a prefix; the first of
/// them is the canonical path. Paths are compared component by component, never as text.
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
        // With this rule, the prefix of an absolute path is compared with the root only after `..` has been folded.
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

/// Appends the path components in `bytes` to `components`, and treats `..` as `dot_dot` says.
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

/// Removes the matching root from an absolute path without `..`; fails if the path is below none of the roots.
fn strip_root_components<'a>(whole: &[&'a [u8]], roots: &[String]) -> Result<Vec<&'a [u8]>, PathError> {
    let below_root = |root: &String| {
        let root: Vec<&[u8]> = split_components(root.as_bytes()).collect();
        whole.starts_with(&root).then(|| whole[root.len()..].to_vec())
    };
    roots.iter().find_map(below_root).ok_or(PathError::ForeignSyntax)
}

/// The part of an absolute path that is below one of the roots; `.` if the path is the root itself.
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

/// Rejects a path with a drive letter or a URI, which some systems would resolve outside the workspace.
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

/// Decodes the escapes of [`RelPath::to_wire`], which are `\\` and `\xHH`. A backslash without a valid escape is an
/// error, so that a Windows path is not taken for an unusual file name.
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
                // Only bytes outside ASCII may be escaped. If ASCII bytes could be escaped, an escape could hide a
                // slash or a dot.
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
