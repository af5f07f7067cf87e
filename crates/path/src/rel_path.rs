//! The types for a checked relative path and for a single checked file name. Paths and file names hold bytes, because
//! Linux file names are bytes. Callers see the wire form of a path: escaped UTF-8, which can name every existing file
//! in JSON.

use std::{borrow::Cow, fmt};

use crate::PathError;

/// The maximum length of a single name in a path, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// The maximum length of a whole path, in bytes.
pub const PATH_BYTES_MAX: usize = 4096;
/// The maximum number of components in a path.
pub const DEPTH_MAX: usize = 256;

/// A checked path below the workspace root. A relative path is never absolute, and slashes separate its components. The
/// empty relative path is the workspace root.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "String"))]
pub struct RelPath(Box<[u8]>);

/// A file name is one checked component of a path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName(Box<[u8]>);

impl FileName {
    /// Checks the bytes of a single file name.
    pub fn new(bytes: &[u8]) -> Result<Self, PathError> {
        match bytes {
            b"" => Err(PathError::Empty),
            b"." | b".." => Err(PathError::DotDot),
            _ if bytes.contains(&0) => Err(PathError::Nul),
            _ if bytes.contains(&b'/') => Err(PathError::ForeignSyntax),
            _ if bytes.len() > NAME_BYTES_MAX => Err(PathError::NameTooLong),
            _ => Ok(Self(bytes.into())),
        }
    }

    /// The bytes of the file name as the operating system stores the name.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The file name in escaped UTF-8, as callers see it.
    pub fn to_wire(&self) -> Cow<'_, str> {
        to_wire(&self.0)
    }
}

impl RelPath {
    /// The path of the workspace root, which is empty.
    pub fn root() -> Self {
        Self::default()
    }

    /// Builds a path from raw components. A path cannot be built if a component or the whole path is invalid.
    pub fn from_components<'a>(components: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, PathError> {
        let mut bytes = Vec::new();
        let mut depth = 0;
        for component in components {
            let name = FileName::new(component)?;
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

    /// Parses a path that [`RelPath::to_wire`] wrote.
    pub fn from_wire(wire: &str) -> Result<Self, PathError> {
        if wire == "." {
            return Ok(Self::root());
        }
        let bytes = crate::parse::decode_escapes(wire)?;
        Self::from_components(bytes.split(|byte| *byte == b'/'))
    }

    /// Whether this path is the workspace root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes of the path as the operating system uses it. The path of the workspace root has no bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The components of this path from the first to the last.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/').filter(|component| !component.is_empty())
    }

    /// The number of components in this path.
    pub fn depth(&self) -> usize {
        self.components().count()
    }

    /// Appends `name` to this path as the last component.
    pub fn join(&self, name: &FileName) -> Result<Self, PathError> {
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

    /// Splits the path into the parent path and the last name; the workspace root gives `None`.
    pub fn split(&self) -> Option<(Self, FileName)> {
        let name = self.components().next_back()?;
        let end = self.0.len() - name.len();
        let parent = &self.0[..end.saturating_sub(1)];
        Some((Self(parent.into()), FileName(name.into())))
    }

    /// The path of the parent directory; the workspace root has no parent.
    pub fn parent(&self) -> Option<Self> {
        self.split().map(|(parent, _)| parent)
    }

    /// Every directory above this path, from the workspace root down.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        let cuts: Vec<usize> = self.0.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at).collect();
        let root = (!self.is_root()).then(Self::root);
        root.into_iter().chain(cuts.into_iter().map(|at| Self(self.0[..at].into())))
    }

    /// Whether this path is the path `other` or lies below it.
    pub fn is_within(&self, other: &Self) -> bool {
        other.is_root() || self.0.strip_prefix(&*other.0).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    }

    /// Whether one of the two paths is the other or lies below it.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.is_within(other) || other.is_within(self)
    }

    /// This path relative to `other`, or `None` if this path is not within `other`.
    pub fn strip_prefix(&self, other: &Self) -> Option<Self> {
        if !self.is_within(other) {
            return None;
        }
        let start = if other.is_root() { 0 } else { (other.0.len() + 1).min(self.0.len()) };
        Some(Self(self.0[start..].into()))
    }

    /// Appends the components of the path `rest` to this path.
    pub fn append(&self, rest: &Self) -> Result<Self, PathError> {
        Self::from_components(self.components().chain(rest.components()))
    }

    /// The path in escaped UTF-8, as callers see it. The wire form of the workspace root is `.`, and
    /// [`RelPath::from_wire`] parses a wire form.
    pub fn to_wire(&self) -> Cow<'_, str> {
        if self.is_root() { Cow::Borrowed(".") } else { to_wire(&self.0) }
    }
}

/// Escapes a backslash as `\\`, and a byte that is not valid UTF-8 as `\xHH`.
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

impl serde::Serialize for RelPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_wire())
    }
}

impl<'de> serde::Deserialize<'de> for RelPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        Self::from_wire(&text).map_err(serde::de::Error::custom)
    }
}

impl fmt::Debug for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_wire())
    }
}

impl fmt::Display for FileName {
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
    fn splits_joins_and_counts_components() {
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
    fn is_within_compares_whole_components() {
        assert!(path("a/b").is_within(&path("a")));
        assert!(path("a").is_within(&path("a")));
        assert!(!path("ab").is_within(&path("a")));
        assert!(path("a").is_within(&RelPath::root()));
        assert_eq!(path("a/b/c").strip_prefix(&path("a")), Some(path("b/c")));
        assert_eq!(path("a").strip_prefix(&path("a")), Some(RelPath::root()));
        assert_eq!(path("ab").strip_prefix(&path("a")), None);
    }

    #[test]
    fn non_utf8_bytes_survive_the_wire_form() {
        let odd = RelPath::from_components([b"caf\xff\\e".as_slice(), b"x"]).unwrap();
        assert_eq!(odd.to_wire(), "caf\\xFF\\\\e/x");
        assert_eq!(path(&odd.to_wire()), odd);
    }

    #[test]
    fn limits_count_bytes() {
        assert_eq!(FileName::new(&[b'a'; 256]), Err(PathError::NameTooLong));
        assert!(FileName::new(&[b'a'; 255]).is_ok());
        assert_eq!(RelPath::from_components(vec![b"d".as_slice(); 257]), Err(PathError::TooDeep));
    }
}
