//! The next step after an error, as data. Each protocol renders it for its callers: as a tool call, as a command or as
//! an HTTP request.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use stead_path::RelPath;

use crate::{
    for_each_operation, limits,
    ops::{
        self, HistoryArgs, JournalEntryArgument, ListArgs, ReadArgs, RedoArgs, RequestedSessionAction,
        SessionOperationArgs, UndoArgs, WriteArgs,
    },
};

/// What a caller can do after an error. A purpose completes the words "in order to", and may be empty.
#[derive(Debug, Clone)]
pub enum NextStep {
    /// A sentence that names no call and no command.
    Advice(Cow<'static, str>),
    Call {
        call: SuggestedCall,
        purpose: Cow<'static, str>,
    },
    /// The failed call again, with another value of an argument if one is given.
    Repeat {
        argument: Option<SuggestedArgument>,
        purpose: Cow<'static, str>,
    },
    /// A task for a person, which completes "ask a person to".
    AskPerson(Cow<'static, str>),
    /// A command for a person: the words after `stead`.
    PersonCommand {
        words: Vec<Cow<'static, str>>,
        purpose: Cow<'static, str>,
    },
    Both(Box<[NextStep; 2]>, NextStepOrder),
}

/// How two steps belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStepOrder {
    Then,
    Or,
}

/// An argument of the failed call that needs another value.
#[derive(Debug, Clone)]
pub struct SuggestedArgument {
    pub name: &'static str,
    pub value: SuggestedArgumentValue,
}

/// The value that an argument of a repeated call needs.
#[derive(Debug, Clone)]
pub enum SuggestedArgumentValue {
    True,
    Text(String),
    /// A description of the value, such as "from 1 to 50".
    Described(Cow<'static, str>),
    Omitted,
}

impl NextStep {
    pub fn call(call: impl Into<SuggestedCall>, purpose: impl Into<Cow<'static, str>>) -> Self {
        Self::Call { call: call.into(), purpose: purpose.into() }
    }

    pub const fn repeat() -> Self {
        Self::Repeat { argument: None, purpose: Cow::Borrowed("") }
    }

    /// The failed call with an argument that is true.
    pub fn repeat_with_flag(name: &'static str, purpose: &'static str) -> Self {
        let argument = SuggestedArgument { name, value: SuggestedArgumentValue::True };
        Self::Repeat { argument: Some(argument), purpose: purpose.into() }
    }

    /// The failed call with this text as an argument.
    pub fn repeat_with(name: &'static str, text: impl ToString) -> Self {
        Self::repeat_with_value(name, SuggestedArgumentValue::Text(text.to_string()))
    }

    /// The failed call with an argument that this text describes, such as "from 1 to 50".
    pub fn repeat_with_such(name: &'static str, description: impl Into<Cow<'static, str>>) -> Self {
        Self::repeat_with_value(name, SuggestedArgumentValue::Described(description.into()))
    }

    pub fn repeat_without(name: &'static str) -> Self {
        Self::repeat_with_value(name, SuggestedArgumentValue::Omitted)
    }

    fn repeat_with_value(name: &'static str, value: SuggestedArgumentValue) -> Self {
        Self::Repeat { argument: Some(SuggestedArgument { name, value }), purpose: Cow::Borrowed("") }
    }

    pub fn ask_person(task: impl Into<Cow<'static, str>>) -> Self {
        Self::AskPerson(task.into())
    }

    /// A command for a person, whose words this text separates by spaces.
    pub fn person_command(words: &'static str, purpose: &'static str) -> Self {
        Self::PersonCommand { words: words.split(' ').map(Cow::Borrowed).collect(), purpose: purpose.into() }
    }

    /// The last word of a person's command, for example an id.
    #[must_use]
    pub fn with_word(mut self, word: impl ToString) -> Self {
        if let Self::PersonCommand { words, .. } = &mut self {
            words.push(word.to_string().into());
        }
        self
    }

    #[must_use]
    pub fn then(self, second: impl Into<NextStep>) -> Self {
        Self::Both(Box::new([self, second.into()]), NextStepOrder::Then)
    }

    #[must_use]
    pub fn or(self, second: impl Into<NextStep>) -> Self {
        Self::Both(Box::new([self, second.into()]), NextStepOrder::Or)
    }

    #[must_use]
    pub fn or_ask_person(self, task: &'static str) -> Self {
        self.or(Self::ask_person(task))
    }
}

impl From<&'static str> for NextStep {
    fn from(sentence: &'static str) -> Self {
        Self::Advice(sentence.into())
    }
}

impl From<String> for NextStep {
    fn from(sentence: String) -> Self {
        Self::Advice(sentence.into())
    }
}

impl ReadArgs {
    pub fn new(path: impl ToString) -> Self {
        Self { path: path.to_string(), ..Self::default() }
    }

    pub(crate) fn as_base64(path: impl ToString) -> Self {
        Self { format: Some("base64".to_owned()), ..Self::new(path) }
    }

    /// The start of a file that is too large to be read at once.
    pub fn first_bytes(path: impl ToString) -> Self {
        Self { bytes: Some(format!("0-{}", limits::OUTCOME_PAGE_CHARS - 1)), ..Self::new(path) }
    }
}

impl WriteArgs {
    /// A write whose content the caller must supply.
    pub(crate) fn of_new_content(path: impl ToString) -> Self {
        Self { path: path.to_string(), content: "NEW_CONTENT".to_owned(), ..Self::default() }
    }
}

impl ListArgs {
    pub fn new(path: impl ToString) -> Self {
        Self { path: Some(path.to_string()), ..Self::default() }
    }

    /// The directory of a path.
    pub fn of_parent(path: &RelPath) -> Self {
        Self::new(path.parent().unwrap_or_default())
    }
}

impl HistoryArgs {
    pub(crate) fn of_path(path: impl ToString) -> Self {
        Self { path: Some(path.to_string()), ..Self::default() }
    }
}

impl UndoArgs {
    pub(crate) fn of_entry(number: u64) -> Self {
        Self { entry: Some(JournalEntryArgument::from_number(number)), ..Self::default() }
    }
}

impl RedoArgs {
    pub(crate) fn of_entry(number: u64) -> Self {
        Self { entry: Some(JournalEntryArgument::from_number(number)), ..Self::default() }
    }
}

impl SessionOperationArgs {
    pub fn begin() -> Self {
        Self { action: Some(RequestedSessionAction::Begin), id: None }
    }

    pub fn end(id: &str) -> Self {
        Self { action: Some(RequestedSessionAction::End), id: Some(id.to_owned()) }
    }
}

macro_rules! suggested_calls {
    ($($name:literal $effect:ident $args:ident => $outcome:ident $(as $text:ident)? $([$($content:literal),+])?
        $(by $authority:ident)?;)+) => {
        /// A call that a text suggests. It has the arguments as the operation takes them, so that it can be made as it
        /// is.
        #[derive(Debug, Clone)]
        pub enum SuggestedCall { $($args(Box<ops::$args>),)+ }

        impl SuggestedCall {
            pub fn operation(&self) -> &'static str {
                match self { $(SuggestedCall::$args(_) => $name,)+ }
            }
        }

        /// A suggested call is serialized as its arguments.
        impl Serialize for SuggestedCall {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $(SuggestedCall::$args(arguments) => arguments.serialize(serializer),)+ }
            }
        }

        $(impl From<ops::$args> for SuggestedCall {
            fn from(arguments: ops::$args) -> Self {
                SuggestedCall::$args(Box::new(arguments))
            }
        })+
    };
}

for_each_operation!(suggested_calls);
