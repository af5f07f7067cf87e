//! Files that a search did not look into as a whole: how many, the first of them by name, and why. Every one is counted.

use path::RelPath;
use serde_json::Value;
use text::visible::visible_line;

use super::seek;
use crate::{limits, ops::answer::Facts};

/// Why a file was not looked into as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// It is too large.
    Size,
    /// There was no time for it.
    Time,
    /// One of its lines is too long.
    Line,
}

impl Why {
    /// The word in the answer's object.
    fn word(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Time => "time",
            Self::Line => "line",
        }
    }

    /// The same for people.
    fn reason(self) -> &'static str {
        match self {
            Self::Size => "too large",
            Self::Time => "no time for it",
            Self::Line => "a line too long",
        }
    }
}

/// The files that were left.
#[derive(Debug, Default)]
pub(super) struct Left {
    count: u64,
    /// The first of them in the order of places.
    named: Vec<(RelPath, Why)>,
}

impl Left {
    pub(super) fn add(&mut self, path: &RelPath, why: Why) {
        self.count += 1;
        self.name(path.clone(), why);
    }

    /// What another thread left, too.
    pub(super) fn join(&mut self, other: Self) {
        self.count += other.count;
        for (path, why) in other.named {
            self.name(path, why);
        }
    }

    fn name(&mut self, path: RelPath, why: Why) {
        let at = self.named.partition_point(|(named, _)| seek::by_place(named, &path).is_lt());
        if at < limits::SEARCH_LEFT_MAX {
            self.named.insert(at, (path, why));
            self.named.truncate(limits::SEARCH_LEFT_MAX);
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The first of them, for the answer's object; nothing when there are none.
    pub(super) fn named(&self) -> Option<Vec<Value>> {
        let one = |(path, why): &(RelPath, Why)| {
            Value::Object(Facts::new().with("path", path.to_string()).with("why", why.word()).object())
        };
        (!self.named.is_empty()).then(|| self.named.iter().map(one).collect())
    }

    /// The same for people; nothing when there are none.
    pub(super) fn note(&self) -> Option<String> {
        let one =
            |(path, why): &(RelPath, Why)| format!("{} ({})", visible_line(&path.to_wire()), why.reason());
        let named: Vec<String> = self.named.iter().map(one).collect();
        let more = self.count - self.named.len() as u64;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (self.count > 0).then(|| format!("not wholly searched: {}{more}", named.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_named_and_all_are_counted() {
        let mut left = Left::default();
        assert_eq!((left.count(), left.named(), left.note()), (0, None, None));
        for number in (0..7).rev() {
            let mut one = Left::default();
            one.add(&RelPath::from_wire(&format!("f{number}")).unwrap(), Why::Line);
            left.join(one);
        }
        assert_eq!((left.count(), left.named().unwrap().len()), (7, 5));
        let note = left.note().unwrap();
        assert!(note.starts_with("not wholly searched: f0 (a line too long), f1"), "{note}");
        assert!(note.ends_with("f4 (a line too long) and 2 more"), "{note}");
    }
}
