//! Files that a search did not read completely: their number, the first names, and the reasons.

use serde_json::Value;
use stead_path::RelPath;
use stead_text::visible::escape_deceptive_line;

use super::walk;
use crate::{limits, ops::outcome_builder::OutcomeBuilder};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IncompleteReason {
    FileTooLarge,
    OutOfTime,
    LineTooLong,
}

impl IncompleteReason {
    /// The value in the outcome.
    fn as_str(self) -> &'static str {
        match self {
            Self::FileTooLarge => "size",
            Self::OutOfTime => "time",
            Self::LineTooLong => "line",
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::FileTooLarge => "too large",
            Self::OutOfTime => "out of time",
            Self::LineTooLong => "line too long",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct IncompleteFiles {
    count: u64,
    /// The first files in path order.
    named_files: Vec<(RelPath, IncompleteReason)>,
}

impl IncompleteFiles {
    pub(super) fn add(&mut self, path: &RelPath, why: IncompleteReason) {
        self.count += 1;
        self.add_named(path.clone(), why);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.count += other.count;
        for (path, why) in other.named_files {
            self.add_named(path, why);
        }
    }

    fn add_named(&mut self, path: RelPath, why: IncompleteReason) {
        let at = self.named_files.partition_point(|(named, _)| walk::compare_by_path(named, &path).is_lt());
        if at < limits::SEARCH_INCOMPLETE_NAMED_MAX {
            self.named_files.insert(at, (path, why));
            self.named_files.truncate(limits::SEARCH_INCOMPLETE_NAMED_MAX);
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn named_files_json(&self) -> Option<Vec<Value>> {
        let one = |(path, why): &(RelPath, IncompleteReason)| {
            Value::Object(
                OutcomeBuilder::new().with_field("path", path.to_string()).with_field("why", why.as_str()).into_json(),
            )
        };
        (!self.named_files.is_empty()).then(|| self.named_files.iter().map(one).collect())
    }

    pub(super) fn render_note(&self) -> Option<String> {
        let one = |(path, why): &(RelPath, IncompleteReason)| {
            format!("{} ({})", escape_deceptive_line(&path.to_wire()), why.describe())
        };
        let named: Vec<String> = self.named_files.iter().map(one).collect();
        let more = self.count - self.named_files.len() as u64;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (self.count > 0).then(|| format!("not fully searched: {}{more}", named.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_incomplete_files_named_all_counted() {
        let mut left = IncompleteFiles::default();
        assert_eq!((left.count(), left.named_files_json(), left.render_note()), (0, None, None));
        for number in (0..7).rev() {
            let mut one = IncompleteFiles::default();
            one.add(&RelPath::from_wire(&format!("f{number}")).unwrap(), IncompleteReason::LineTooLong);
            left.merge(one);
        }
        assert_eq!((left.count(), left.named_files_json().unwrap().len()), (7, 5));
        let note = left.render_note().unwrap();
        assert!(note.starts_with("not fully searched: f0 (line too long), f1"), "{note}");
        assert!(note.ends_with("f4 (line too long) and 2 more"), "{note}");
    }
}
