//! How a dialect reads, places and checks patches. Values only: the operation is the same for all of them.

pub use text::patch::Grammar;

/// The part of the terms that is about patches. The default is the native dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patching {
    /// How a patch is written.
    pub grammar: Grammar,
    /// How chunks are placed.
    pub placing: Placing,
    /// How the paths of the versions seen are compared with those of the patch.
    pub bases: Bases,
    /// What happens when one file is named by several sections.
    pub repeated: Repeated,
    /// What happens to a file that is not text.
    pub binary: Binary,
    /// What happens to a patch that was applied before.
    pub again: Again,
}

impl Default for Patching {
    fn default() -> Self {
        Self {
            grammar: Grammar::TOLERANT,
            placing: Placing::Tolerant,
            bases: Bases::ByPlace,
            repeated: Repeated::InOrder,
            binary: Binary::Refused,
            again: Again::Answered,
        }
    }
}

impl Patching {
    /// To the letter, for a dialect whose original forgives nothing.
    pub const STRICT: Self = Self {
        grammar: Grammar::STRICT,
        placing: Placing::Strict,
        bases: Bases::ByWord,
        repeated: Repeated::Refused,
        binary: Binary::AsText,
        again: Again::Refused,
    };

    /// The same with one way to write each thing.
    pub const EXACT: Self = Self { grammar: Grammar::EXACT, ..Self::STRICT };
}

/// How chunks are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placing {
    /// Whatever has one meaning is found; chunks are judged together.
    Tolerant,
    /// Lines are as quoted; chunks follow one another.
    Strict,
}

/// How the paths of the versions seen are compared with those of the patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bases {
    /// As places; one that the patch does not touch is refused.
    ByPlace,
    /// Letter by letter; others are passed over.
    ByWord,
}

/// What happens when one file is named by several sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeated {
    /// They follow one another.
    InOrder,
    /// The patch is refused.
    Refused,
}

/// What happens to a file that is not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    /// Its content cannot be patched.
    Refused,
    /// It is patched if its bytes can be read as UTF-8.
    AsText,
}

/// What happens to a patch that was applied before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// It changes nothing, and the answer says so.
    Answered,
    /// It does not fit.
    Refused,
}
