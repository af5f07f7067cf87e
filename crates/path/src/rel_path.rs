//! The checked relative path and the checked single name. Bytes, because Linux names are bytes; shown in an escaped
//! UTF-8 form so that every existing file can be named over JSON.

use std::{borrow::Cow, fmt};

use crate::PathError;

/// Longest single name, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Longest path, in bytes.
pub const PATH_BYTES_MAX: usize = 4096;
/// Most components in a path.
pub const DEPTH_MAX: usize = 256;

/// A path beneath a root: checked, slash-separated, never absolute. The empty path is the root itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RelPath(Box<[u8]>);

/// One checked component of a path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<[u8]>);

impl Name {
    /// Checks one component.
    pub fn new(bytes: &[u8]) -> Result<Self, PathError> {
        match bytes {
            b"" => Err(PathError::Empty),
            b"." | b".." => Err(PathError::DotDot),
            _ if bytes.contains(&0) => Err(PathError::Nul),
            _ if bytes.contains(&b'/') => Err(PathError::Foreign),
            _ if bytes.len() > NAME_BYTES_MAX => Err(PathError::NameTooLong),
            _ => Ok(Self(bytes.into())),
        }
    }

    /// The bytes the operating system sees.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The escaped form that callers see.
    pub fn to_wire(&self) -> Cow<'_, str> {
        to_wire(&self.0)
    }
}

impl RelPath {
    /// The root itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Builds a path from raw components, checking each one and the whole.
    pub fn from_components<'a>(components: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, PathError> {
        let mut bytes = Vec::new();
        let mut depth = 0;
        for component in components {
            let name = Name::new(component)?;
            if depth > 0 {
                bytes.push(b'/');
            }
            bytes.extend_from_slice(name.as_bytes());
            depth += 1;
        }
        if depth > DEPTH_MAX {
            return Err(PathError::TooDeep);
        }
        if bytes.len() > PATH_BYTES_MAX {
            return Err(PathError::PathTooLong);
        }
        Ok(Self(bytes.into()))
    }

    /// Reads back a path that was written with [`RelPath::to_wire`].
    pub fn from_wire(wire: &str) -> Result<Self, PathError> {
        if wire == "." {
            return Ok(Self::root());
        }
        let bytes = crate::spelling::unescape(wire)?;
        Self::from_components(bytes.split(|byte| *byte == b'/'))
    }

    /// Whether this is the root itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes the operating system sees; empty for the root.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The components, first to last.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/').filter(|component| !component.is_empty())
    }

    /// How many components there are.
    pub fn depth(&self) -> usize {
        self.components().count()
    }

    /// The path one name further down.
    pub fn join(&self, name: &Name) -> Result<Self, PathError> {
        if self.depth() >= DEPTH_MAX {
            return Err(PathError::TooDeep);
        }
        if self.0.len() + 1 + name.0.len() > PATH_BYTES_MAX {
            return Err(PathError::PathTooLong);
        }
        let mut bytes = self.0.to_vec();
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(&name.0);
        Ok(Self(bytes.into()))
    }

    /// The directory and the last name; nothing for the root.
    pub fn split(&self) -> Option<(Self, Name)> {
        let name = self.components().next_back()?;
        let end = self.0.len() - name.len();
        let parent = &self.0[..end.saturating_sub(1)];
        Some((Self(parent.into()), Name(name.into())))
    }

    /// The directory that holds this path; nothing for the root.
    pub fn parent(&self) -> Option<Self> {
        self.split().map(|(parent, _)| parent)
    }

    /// Every directory above this path, the root first, the path itself not included.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        let cuts: Vec<usize> =
            self.0.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at).collect();
        let root = (!self.is_root()).then(Self::root);
        root.into_iter().chain(cuts.into_iter().map(|at| Self(self.0[..at].into())))
    }

    /// Whether this path is `other` or lies beneath it.
    pub fn is_within(&self, other: &Self) -> bool {
        other.is_root()
            || self.0.strip_prefix(&*other.0).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    }

    /// The rest of this path below `other`; nothing when it is not within.
    pub fn below(&self, other: &Self) -> Option<Self> {
        if !self.is_within(other) {
            return None;
        }
        let start = if other.is_root() { 0 } else { (other.0.len() + 1).min(self.0.len()) };
        Some(Self(self.0[start..].into()))
    }

    /// `self` followed by every component of `rest`.
    pub fn append(&self, rest: &Self) -> Result<Self, PathError> {
        Self::from_components(self.components().chain(rest.components()))
    }

    /// The escaped form that callers see; `.` for the root. [`RelPath::from_wire`] reads it back.
    pub fn to_wire(&self) -> Cow<'_, str> {
        if self.is_root() { Cow::Borrowed(".") } else { to_wire(&self.0) }
    }
}

/// Escapes what UTF-8 cannot carry: foreign bytes as `\xHH`, and the backslash itself.
fn to_wire(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\\') => Cow::Borrowed(text),
        Ok(_) | Err(_) => {
            let mut out = String::with_capacity(bytes.len() + 8);
            for chunk in bytes.utf8_chunks() {
                out.push_str(&chunk.valid().replace('\\', "\\\\"));
                for byte in chunk.invalid() {
                    out.push_str(&format!("\\x{byte:02X}"));
                }
            }
            Cow::Owned(out)
        }
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_wire())
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_wire())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_wire())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_wire())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(wire: &str) -> RelPath {
        RelPath::from_wire(wire).unwrap()
    }

    #[test]
    fn splits_joins_and_measures() {
        let deep = path("a/b/c");
        let (parent, name) = deep.split().unwrap();
        assert_eq!((parent.to_wire().as_ref(), name.as_bytes()), ("a/b", b"c".as_slice()));
        assert_eq!(parent.join(&name).unwrap(), deep);
        assert_eq!(RelPath::root().split(), None);
        let above: Vec<String> = deep.ancestors().map(|p| p.to_string()).collect();
        assert_eq!(above, [".", "a", "a/b"]);
        assert_eq!(RelPath::root().ancestors().count(), 0);
    }

    #[test]
    fn within_compares_components_not_text() {
        assert!(path("a/b").is_within(&path("a")));
        assert!(path("a").is_within(&path("a")));
        assert!(!path("ab").is_within(&path("a")));
        assert!(path("a").is_within(&RelPath::root()));
        assert_eq!(path("a/b/c").below(&path("a")), Some(path("b/c")));
        assert_eq!(path("a").below(&path("a")), Some(RelPath::root()));
        assert_eq!(path("ab").below(&path("a")), None);
    }

    #[test]
    fn foreign_bytes_survive_the_wire() {
        let odd = RelPath::from_components([b"caf\xff\\e".as_slice(), b"x"]).unwrap();
        assert_eq!(odd.to_wire(), "caf\\xFF\\\\e/x");
        assert_eq!(path(&odd.to_wire()), odd);
    }

    #[test]
    fn limits_are_bytes() {
        assert_eq!(Name::new(&[b'a'; 256]), Err(PathError::NameTooLong));
        assert!(Name::new(&[b'a'; 255]).is_ok());
        assert_eq!(RelPath::from_components(vec![b"d".as_slice(); 257]), Err(PathError::TooDeep));
    }
}
