//! The fields of an error beside its kind and message, for programs. Each field has one type and one published name,
//! whichever operation sets it.

use serde::Serialize;

use crate::{
    errors::{Error, ErrorKind},
    ops::UnrevertedFileRow,
};

macro_rules! error_details {
    ($($(#[$attribute:meta])* $field:ident $setter:ident: $value:ty,)+) => {
        /// The fields of an error beside its kind and message; the operation that fails sets those that it knows.
        #[derive(Debug, Clone, Default, Serialize)]
        pub struct ErrorDetails {
            $($(#[$attribute])* #[serde(skip_serializing_if = "Option::is_none")]
            pub $field: Option<$value>,)+
        }

        impl Error {
            $(/// Sets the detail of this name.
            pub fn $setter(mut self, value: impl Into<$value>) -> Self {
                self.details.$field = Some(value.into());
                self
            })+
        }
    };
}

error_details! {
    path with_path: String,
    version with_version: String,
    rev with_rev: String,
    #[serde(rename = "type")]
    file_type with_file_type: String,
    reason with_reason: String,
    limit_bytes with_limit_bytes: u64,
    line with_line: usize,
    lines with_lines: Vec<[usize;2]>,
    oldest with_oldest: String,
    holder with_holder: String,
    expires_ms with_expires_ms: i64,
    ends_ms with_ends_ms: i64,
    expected with_expected: ExpectedCountOrText,
    encoding with_encoding: String,
    edit with_edit: usize,
    at with_at: usize,
    approval with_approval: String,
    command with_command: String,
    rule with_rule: String,
    outdated with_outdated: String,
    total with_total: u64,
    retry_after_ms with_retry_after_ms: i64,
    places with_places: Vec<TextMatchPlace>,
    places_total with_places_total: usize,
    owner with_owner: String,
    moved_to with_moved_to: String,
    changed_by with_changed_by: String,
    section with_section: usize,
    operation with_operation: String,
    chunk with_chunk: usize,
    other_chunk with_other_chunk: usize,
    quoted with_quoted: String,
    made_by with_made_by: usize,
    new_is_at with_new_is_at: Vec<usize>,
    search_limit with_search_limit: String,
    nearest with_nearest: String,
    nearest_from with_nearest_from: usize,
    nearest_to with_nearest_to: usize,
    differs with_differs: Vec<QuotedCharacterDifference>,
    older with_older: OlderRevisionDetails,
    base_lines with_base_lines: [usize;2],
    base_version with_base_version: String,
    diff with_diff: String,
    edits with_edits: [usize;2],
    conflicts with_conflicts: Vec<ConflictingTexts>,
    conflicts_total with_conflicts_total: usize,
    also_refused with_also_refused: Vec<FurtherEditRefusal>,
    already_applied with_already_applied: Vec<usize>,
    closest with_closest: String,
    fault with_fault: String,
    got with_got: String,
    quota with_quota: String,
    limit with_limit: u64,
    used with_used: u64,
    asked with_asked: u64,
    left with_left: RemainingQuotaOrFiles,
    of with_of: u64,
    kept with_kept: Vec<UnrevertedFileRow>,
    by with_by: Vec<String>,
    size with_size: u64,
    from_size with_from_size: usize,
    to_size with_to_size: usize,
    head with_head: u64,
    column with_column: usize,
    entry with_entry: u64,
    file with_file: String,
    parent with_parent: String,
    buffer with_buffer: String,
    revision with_revision: u64,
    saved with_saved: String,
    text with_text: String,
    watches_max with_watches_max: usize,
    field with_field: String,
}

/// What was expected in place of something else: a number of matches, or a text.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum ExpectedCountOrText {
    Count(usize),
    /// The version of a file, or the text that a line of a patch should have.
    Text(String),
}

impl From<usize> for ExpectedCountOrText {
    fn from(count: usize) -> Self {
        ExpectedCountOrText::Count(count)
    }
}

impl From<&str> for ExpectedCountOrText {
    fn from(text: &str) -> Self {
        ExpectedCountOrText::Text(text.to_owned())
    }
}

/// What is left: the rest of a quota, or the files that a rejection leaves as they are.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum RemainingQuotaOrFiles {
    Quota(u64),
    Files(Vec<UnrevertedFileRow>),
}

/// A place of the file where a quoted text matches.
#[derive(Debug, Clone, Serialize)]
pub struct TextMatchPlace {
    /// The first line of the match.
    pub line: usize,
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub enclosing_definition: Option<String>,
    /// The text around the match that occurs at no other match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique_with: Option<DistinguishingText>,
    /// The last line of the match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_line: Option<usize>,
    /// The start and the end of the match in UTF-16 code units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units: Option<[usize; 2]>,
}

/// The text that distinguishes one match from the others.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DistinguishingText {
    WholeLine(String),
    Before(String),
    After(String),
}

/// The first character of a line in which a quoted text differs from the file.
#[derive(Debug, Clone, Serialize)]
pub struct QuotedCharacterDifference {
    pub line: usize,
    pub column: usize,
    /// `None` at the end of the quoted line.
    pub quoted: Option<String>,
    /// `None` at the end of the line.
    pub actual: Option<String>,
}

/// The older revision of a file that contains a quoted text.
#[derive(Debug, Clone, Serialize)]
pub struct OlderRevisionDetails {
    pub rev: String,
    pub diff: String,
    /// The principal that changed the older revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<String>,
    /// The revision that followed the older revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_in: Option<String>,
}

/// The three texts of a place where an edit and the changes of others conflict.
#[derive(Debug, Clone, Serialize)]
pub struct ConflictingTexts {
    /// The first line of the place in the current file.
    pub line: usize,
    /// The text that the caller read.
    pub base: String,
    /// The text with the caller's edits.
    pub yours: String,
    /// The current text of the file.
    pub theirs: String,
}

/// The refusal of a further edit of the same call.
#[derive(Debug, Clone, Serialize)]
pub struct FurtherEditRefusal {
    /// The index of the refused edit.
    pub edit: usize,
    pub kind: ErrorKind,
    pub detail: String,
    #[serde(flatten)]
    pub details: Box<ErrorDetails>,
}

impl Serialize for ErrorKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}
