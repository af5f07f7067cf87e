//! The error of a call: a kind for programs, a message for people and a next step for agents. Programs must depend only
//! on the kind of an error, never on its message. Error messages contain no host paths and do not reveal files outside
//! the workspace.

use std::fmt;

use stead_path::PathError;
use stead_text::visible::{escape_deceptive, escape_deceptive_line};

use crate::{
    caller::Principal, engine::BeforeAfterBytes, error_details::ErrorDetails, next_step::NextStep, ops::HistoryArgs,
};

/// The error kinds are generated from `definitions/errors.yaml`, which also has the words of the protocols and
/// dialects.
macro_rules! error_kinds {
    ($($(#[$doc:meta])* $kind:ident = $code:literal, $class:ident;)+) => {
        /// The kind of an error: the reason why a call failed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorKind { $($(#[$doc])* $kind,)+ }

        impl ErrorKind {
            /// Every error kind, in the order of the documentation.
            pub const ALL: &[ErrorKind] = &[$(ErrorKind::$kind,)+];

            /// The stable word for the error kind in results and in the journal.
            pub fn code(self) -> &'static str {
                match self { $(ErrorKind::$kind => $code,)+ }
            }

            /// Whether a rule, the state of the workspace or the system caused the error.
            pub fn class(self) -> ErrorClass {
                match self { $(ErrorKind::$kind => ErrorClass::$class,)+ }
            }
        }
    };
}

/// Whether a rule, the state of the workspace or the system caused an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// A rule refused the call, which caused the error.
    Refused,
    /// The workspace is not in the state that the call requires, which caused the error.
    StateMismatch,
    /// The server or the operating system failed, which caused the error.
    SystemFailure,
}

include!("generated/error_kind.rs");

/// The error of a failed call.
#[derive(Debug, Clone)]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
    pub next_step: Option<Box<NextStep>>,
    /// The further fields of the error, for example the current version, the holder of a lease, or a diff.
    pub details: Box<ErrorDetails>,
    extras: Option<Box<ErrorExtras>>,
    /// The error kind that the journal records for an agent's call in place of `kind`.
    pub(crate) kind_for_agents: Option<ErrorKind>,
}

#[derive(Debug, Clone, Default)]
struct ErrorExtras {
    excerpt: Option<Box<str>>,
    before_after: Option<BeforeAfterBytes>,
}

impl Error {
    /// Creates an error with this kind and message. Control characters in an error message are escaped, because
    /// messages contain text from arguments.
    pub fn new(kind: ErrorKind, message: impl AsRef<str>) -> Self {
        Self {
            kind,
            message: escape_deceptive_line(message.as_ref()).into_owned(),
            next_step: None,
            details: Box::default(),
            extras: None,
            kind_for_agents: None,
        }
    }

    /// Returns the error kind for the journal, which is `PathEscape` if an agent names a path outside the workspace.
    pub(crate) fn recorded_kind(&self, principal: &Principal) -> ErrorKind {
        self.kind_for_agents.filter(|_| principal.is_agent()).unwrap_or(self.kind)
    }

    /// Creates the error for a workspace whose root directory does not exist.
    pub fn workspace_missing() -> Self {
        Self::new(ErrorKind::NotFound, "the workspace directory does not exist: it was moved or removed")
            .with_next_step(NextStep::ask_person("restore the directory and to restart the server"))
    }

    /// The error for a call that ended without the outcome of its operation.
    pub(crate) fn no_outcome() -> Self {
        Self::new(ErrorKind::Io, "the call ended without an outcome")
            .with_next_step(NextStep::call(HistoryArgs::default(), "see whether it changed files"))
    }

    /// Adds what the caller can do after the error.
    pub fn with_next_step(mut self, step: impl Into<NextStep>) -> Self {
        self.next_step = Some(Box::new(step.into()));
        self
    }

    /// Adds lines that are shown below the message in the text form of the error. Control characters in the added lines
    /// are escaped, because the lines contain text from files.
    pub fn with_excerpt(mut self, lines: impl AsRef<str>) -> Self {
        let escaped = escape_deceptive(lines.as_ref());
        self.extras.get_or_insert_default().excerpt = (!escaped.is_empty()).then(|| escaped.into());
        self
    }

    /// The lines that are shown below the message in the text form of the error. In the JSON form of the error, other
    /// fields contain the information of the lines.
    pub fn excerpt(&self) -> Option<&str> {
        self.extras.as_ref()?.excerpt.as_deref()
    }

    pub(crate) fn with_before_after(mut self, before_after: Option<BeforeAfterBytes>) -> Self {
        if before_after.is_some() {
            self.extras.get_or_insert_default().before_after = before_after;
        }
        self
    }

    /// The file content before and after the call that needs approval, if the call options request the content.
    pub fn before_after(&self) -> Option<&BeforeAfterBytes> {
        self.extras.as_ref()?.before_after.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.code(), self.message)
    }
}

impl std::error::Error for Error {}

impl From<PathError> for Error {
    fn from(path_error: PathError) -> Self {
        let relative = "give a path relative to the workspace root, without '..', for example src/main.rs";
        let (kind, advice) = match path_error {
            PathError::Nul => (ErrorKind::InvalidPath, "remove the NUL byte from the path"),
            PathError::Empty
            | PathError::DotDot
            | PathError::ForeignSyntax
            | PathError::Absolute
            | PathError::Backslash => (ErrorKind::InvalidPath, relative),
            PathError::NameTooLong => (ErrorKind::NameTooLong, "shorten the names in the path"),
            PathError::PathTooLong => (ErrorKind::PathTooLong, "use shorter names or fewer directories"),
            PathError::TooDeep => (ErrorKind::DepthLimit, "use fewer directories"),
        };
        let mut error = Error::new(kind, path_error.to_string()).with_next_step(advice);
        if matches!(path_error, PathError::DotDot | PathError::ForeignSyntax) {
            error.kind_for_agents = Some(ErrorKind::PathEscape);
        }
        error
    }
}
