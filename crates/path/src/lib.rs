//! Paths without file access: the only path type that reaches the disk ([`RelPath`]), the parser for paths of callers,
//! and the rules for names.
//!
//! A [`RelPath`] never holds `..`, `.`, an empty component, a NUL or a leading slash, and fits the limits of the
//! operating system. This crate accesses no file, and does not expand `~`, variables, URIs or the escapes of URLs and
//! shells.

mod names;
mod parse;
mod rel_path;

/// The prefix of the names of temporary files and internal directories, which callers cannot use in a path.
pub const TEMPORARY_PREFIX: &str = ".stead~";

pub use names::{FoldedName, PortableNameError, check_portable_name, fold_name};
pub use parse::{
    AbsolutePathRule, DotDotRule, EmptyPathRule, ParsedPath, PathBackslashRule, PathKindImpliedBySpelling, PathSyntax,
    TrailingSlashRule, parse_path,
};
pub use rel_path::{DEPTH_MAX, FileName, NAME_BYTES_MAX, PATH_BYTES_MAX, RelPath};

/// How a symbolic link in the last component of a path is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinalSymlink {
    Follow,
    Keep,
}

/// The reason why a path is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("the path is empty")]
    Empty,
    #[error("the path contains a NUL byte")]
    Nul,
    #[error("the path contains '..'")]
    DotDot,
    /// The path is absolute and not below the root, or it names a drive, a share or a URI.
    #[error("the path is not below the workspace root")]
    ForeignSyntax,
    #[error("the path is absolute; it must be relative to the workspace root")]
    Absolute,
    #[error("the path contains a backslash that is not an escape (\\\\ or \\xHH)")]
    Backslash,
    #[error("a name in the path is longer than {NAME_BYTES_MAX} bytes")]
    NameTooLong,
    #[error("the path is longer than {PATH_BYTES_MAX} bytes")]
    PathTooLong,
    #[error("the path has more than {DEPTH_MAX} components")]
    TooDeep,
}
