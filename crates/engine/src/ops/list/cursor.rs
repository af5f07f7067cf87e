//! The position at which a listing continues: after this path in listing order. The entry need not exist any more.

use stead_path::{FileName, RelPath};

use super::super::outcome_builder::shorten_for_error;
use crate::errors::{Error, ErrorKind};

/// The path after which a listing continues, relative to its top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListCursor(Vec<Vec<u8>>);

/// Whether a name comes before or after the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ListingStatus {
    /// Already listed, with everything below it.
    Listed,
    /// Already listed; entries below it are still to come, after this cursor.
    PartlyListed(Option<ListCursor>),
    NotListed,
}

impl ListCursor {
    /// Parses a cursor of an earlier outcome for the same directory.
    pub(super) fn parse(cursor: &str, top: &RelPath) -> Result<Self, Error> {
        let path =
            RelPath::from_wire(cursor).ok().and_then(|path| path.strip_prefix(top)).filter(|rest| !rest.is_root());
        match path {
            Some(rest) => Ok(Self(rest.components().map(<[u8]>::to_vec).collect())),
            None => Err(Error::new(
                ErrorKind::BadRequest,
                format!("'{}' is not a cursor of this listing", shorten_for_error(cursor)),
            )
            .with_next_step("pass the cursor from next unchanged, with the same path")),
        }
    }

    /// The status of a name in the directory that the cursor is relative to.
    pub(super) fn listing_status(&self, name: &FileName) -> ListingStatus {
        let Some((first, rest)) = self.0.split_first() else { return ListingStatus::NotListed };
        match name.as_bytes().cmp(first.as_slice()) {
            std::cmp::Ordering::Less => ListingStatus::Listed,
            std::cmp::Ordering::Equal if rest.is_empty() => ListingStatus::PartlyListed(None),
            std::cmp::Ordering::Equal => ListingStatus::PartlyListed(Some(Self(rest.to_vec()))),
            std::cmp::Ordering::Greater => ListingStatus::NotListed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_classified_against_cursor() {
        let top = RelPath::from_wire("src").unwrap();
        let after = ListCursor::parse("src/m/x", &top).unwrap();
        let standing = |after: &ListCursor, name: &str| after.listing_status(&FileName::new(name.as_bytes()).unwrap());
        assert_eq!(standing(&after, "a"), ListingStatus::Listed);
        assert_eq!(standing(&after, "n"), ListingStatus::NotListed);
        let ListingStatus::PartlyListed(Some(inner)) = standing(&after, "m") else { panic!("inside") };
        assert_eq!(standing(&inner, "x"), ListingStatus::PartlyListed(None));
        assert_eq!(standing(&inner, "y"), ListingStatus::NotListed);
    }

    #[test]
    fn cursor_outside_directory_is_rejected() {
        let top = RelPath::from_wire("src").unwrap();
        for cursor in ["", "src", "docs/x", "../x", "src/../x", "a\\b"] {
            assert_eq!(ListCursor::parse(cursor, &top).unwrap_err().kind, ErrorKind::BadRequest, "{cursor}");
        }
    }
}
