//! The words of flags that choose a value of another crate, in the order of the help.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use stead_disk::PathResolutionMethod;
use stead_engine::{ApprovalMode, FileNamePolicy};
use stead_local::{Durability, IndexBuildAndUseMode};
use stead_protocols::{
    acp::{WriteEncodingPolicy, WriteLineEndingPolicy},
    dialect::DialectFilesystemReach,
};

/// The words of a flag, each with its help, which may be empty, and its value.
type FlagChoices<T> = &'static [(&'static str, &'static str, T)];

pub(crate) const DURABILITIES: FlagChoices<Durability> =
    &[("full", "", Durability::Full), ("fast", "", Durability::Fast)];
pub(crate) const FILE_NAME_POLICIES: FlagChoices<FileNamePolicy> =
    &[("portable", "", FileNamePolicy::Portable), ("posix", "", FileNamePolicy::Posix)];
pub(crate) const FILESYSTEM_REACHES: FlagChoices<DialectFilesystemReach> =
    &[("workspace", "", DialectFilesystemReach::Workspace), ("machine", "", DialectFilesystemReach::WholeMachine)];
pub(crate) const INDEX_MODES: FlagChoices<IndexBuildAndUseMode> = &[
    ("on", "", IndexBuildAndUseMode::Maintain),
    ("use", "", IndexBuildAndUseMode::UseExisting),
    ("off", "", IndexBuildAndUseMode::Off),
];
pub(crate) const RESOLVERS: FlagChoices<PathResolutionMethod> = &[
    ("auto", "", PathResolutionMethod::Auto),
    ("kernel", "", PathResolutionMethod::Kernel),
    ("walker", "", PathResolutionMethod::Walker),
];
pub(crate) const APPROVAL_MODES: FlagChoices<ApprovalMode> = &[
    ("ask", "Wait for a decision by `stead approvals`", ApprovalMode::AskPerson),
    ("deny", "Refuse the call without asking", ApprovalMode::DenyAll),
    ("allow", "Run the call as if approved, and record that in the journal", ApprovalMode::AllowAll),
    ("client", "Accept the client's answer as a person's decision", ApprovalMode::TrustClient),
];
pub(crate) const LINE_ENDING_POLICIES: FlagChoices<WriteLineEndingPolicy> = &[
    ("kept", "Keep the line endings of the file", WriteLineEndingPolicy::Keep),
    ("given", "Use the line endings that the agent sent", WriteLineEndingPolicy::AsGiven),
];
pub(crate) const ENCODING_POLICIES: FlagChoices<WriteEncodingPolicy> = &[
    ("kept", "Keep the encoding of the file, including a byte order mark", WriteEncodingPolicy::Keep),
    ("utf-8", "Write UTF-8", WriteEncodingPolicy::Utf8),
];

/// Parses the words of a flag.
pub(crate) fn choice<T: Clone + Send + Sync>(choices: FlagChoices<T>) -> impl TypedValueParser<Value = T> {
    let described = choices.iter().map(|(word, help, _)| match *help {
        "" => PossibleValue::new(*word),
        help => PossibleValue::new(*word).help(help),
    });
    PossibleValuesParser::new(described).try_map(move |given| {
        let chosen = choices.iter().find(|(word, ..)| *word == given);
        chosen.map(|(.., value)| value.clone()).ok_or("unknown value")
    })
}

/// Returns the word of a flag for a value.
pub(crate) fn word_for<T: PartialEq>(choices: FlagChoices<T>, value: &T) -> &'static str {
    choices.iter().find(|(.., known)| known == value).map_or("", |(word, ..)| word)
}
