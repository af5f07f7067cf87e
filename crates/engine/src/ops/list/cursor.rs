//! Where a listing goes on: after the entry of this path, in the order of a listing. The entry need not exist any
//! more.

use path::{Name, RelPath};

use super::super::answer::excerpt;
use crate::failure::{Failure, Kind};

/// The place after which a listing goes on, relative to its top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct After(Vec<Vec<u8>>);

/// How a name in a directory stands to the place after which the listing goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// It was shown, with all it holds.
    Done,
    /// It was shown; what it holds is still to come, after this.
    Inside(Option<After>),
    /// It is still to come.
    Ahead,
}

impl After {
    /// Reads the cursor of an earlier answer about the same directory.
    pub(super) fn parse(cursor: &str, top: &RelPath) -> Result<Self, Failure> {
        let place =
            RelPath::from_wire(cursor).ok().and_then(|path| path.below(top)).filter(|rest| !rest.is_root());
        match place {
            Some(rest) => Ok(Self(rest.components().map(<[u8]>::to_vec).collect())),
            None => Err(Failure::new(
                Kind::BadRequest,
                format!("'{}' is no cursor of this listing", excerpt(cursor)),
            )
            .hint("pass the cursor of next as it was given, with the same path")),
        }
    }

    /// How a name in the directory that this place is relative to stands to it.
    pub(super) fn standing(&self, name: &Name) -> Standing {
        let Some((first, rest)) = self.0.split_first() else { return Standing::Ahead };
        match name.as_bytes().cmp(first.as_slice()) {
            std::cmp::Ordering::Less => Standing::Done,
            std::cmp::Ordering::Equal if rest.is_empty() => Standing::Inside(None),
            std::cmp::Ordering::Equal => Standing::Inside(Some(Self(rest.to_vec()))),
            std::cmp::Ordering::Greater => Standing::Ahead,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_before_inside_or_ahead() {
        let top = RelPath::from_wire("src").unwrap();
        let after = After::parse("src/m/x", &top).unwrap();
        let standing = |after: &After, name: &str| after.standing(&Name::new(name.as_bytes()).unwrap());
        assert_eq!(standing(&after, "a"), Standing::Done);
        assert_eq!(standing(&after, "n"), Standing::Ahead);
        let Standing::Inside(Some(inner)) = standing(&after, "m") else { panic!("inside") };
        assert_eq!(standing(&inner, "x"), Standing::Inside(None));
        assert_eq!(standing(&inner, "y"), Standing::Ahead);
    }

    #[test]
    fn a_foreign_cursor_is_refused() {
        let top = RelPath::from_wire("src").unwrap();
        for cursor in ["", "src", "docs/x", "../x", "src/../x", "a\\b"] {
            assert_eq!(After::parse(cursor, &top).unwrap_err().kind, Kind::BadRequest, "{cursor}");
        }
    }
}
