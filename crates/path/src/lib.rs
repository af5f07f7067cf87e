//! Pure paths. Owns the one type that may reach a disk ([`RelPath`]), the one parser that turns a caller's spelling
//! into it, the portable-name rules for new names, and the folded key by which look-alike names are compared.
//!
//! Promises: a [`RelPath`] never holds `..`, `.`, an empty component, a NUL or a leading slash, and fits the
//! operating system's limits. Never touches a file, never expands `~`, variables, escapes of other layers or URIs.

mod fold;
mod portable;
mod rel_path;
mod spelling;

/// What the names of half-made files and of the server's own places start with; no caller can name one.
pub const TEMPORARY_PREFIX: &str = ".stead~";

pub use fold::{FoldedKey, fold};
pub use portable::{NameProblem, check_portable};
pub use rel_path::{DEPTH_MAX, NAME_BYTES_MAX, Name, PATH_BYTES_MAX, RelPath};
pub use spelling::{Absolute, Backslash, Dots, Empty, Ending, Reading, Spelling, Trailing, parse};

/// Why a spelling is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The spelling is empty.
    #[error("the path is empty")]
    Empty,
    /// The spelling holds a NUL byte.
    #[error("the path holds a NUL byte")]
    Nul,
    /// The spelling holds a `..` component.
    #[error("the path holds '..'")]
    DotDot,
    /// The spelling is absolute and does not lie beneath the root, or names a drive, share or URI.
    #[error("the path is not beneath the workspace root")]
    Foreign,
    /// The spelling is absolute and the dialect takes only relative ones.
    #[error("the path is absolute; it must be relative to the workspace root")]
    Absolute,
    /// A backslash that is not one of our escapes.
    #[error("the path holds a backslash that is not an escape (\\\\ or \\xHH)")]
    Backslash,
    /// One component is longer than [`NAME_BYTES_MAX`].
    #[error("a name in the path is longer than {NAME_BYTES_MAX} bytes")]
    NameTooLong,
    /// The whole is longer than [`PATH_BYTES_MAX`].
    #[error("the path is longer than {PATH_BYTES_MAX} bytes")]
    PathTooLong,
    /// More than [`DEPTH_MAX`] components.
    #[error("the path is deeper than {DEPTH_MAX} components")]
    TooDeep,
}
