//! The attack corpus as it is written down: groups of cases, each with what is built first, what is asked, and what must
//! come of it. Owns the file form and its loading. Never runs anything.

use std::{collections::BTreeMap, io};

use serde::Deserialize;
use serde_json::{Map, Value};

/// The files of the corpus, by name.
const FILES: &[(&str, &str)] = &[
    ("traversal", include_str!("../../cases/attacks/traversal.json")),
    ("absolute", include_str!("../../cases/attacks/absolute.json")),
    ("encoding", include_str!("../../cases/attacks/encoding.json")),
    ("nul-length", include_str!("../../cases/attacks/nul-length.json")),
    ("symlink", include_str!("../../cases/attacks/symlink.json")),
    ("dangling", include_str!("../../cases/attacks/dangling.json")),
    ("trailing", include_str!("../../cases/attacks/trailing.json")),
    ("magic", include_str!("../../cases/attacks/magic.json")),
    ("special", include_str!("../../cases/attacks/special.json")),
    ("hardlink", include_str!("../../cases/attacks/hardlink.json")),
    ("mount", include_str!("../../cases/attacks/mount.json")),
    ("names", include_str!("../../cases/attacks/names.json")),
    ("protected", include_str!("../../cases/attacks/protected.json")),
    ("moves", include_str!("../../cases/attacks/moves.json")),
    ("race", include_str!("../../cases/attacks/race.json")),
    ("output", include_str!("../../cases/attacks/output.json")),
    ("locks", include_str!("../../cases/attacks/locks.json")),
    ("quota", include_str!("../../cases/attacks/quota.json")),
    ("audit", include_str!("../../cases/attacks/audit.json")),
    ("undo", include_str!("../../cases/attacks/undo.json")),
];

/// One group of cases.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name.
    pub group: String,
    /// What is attacked here.
    pub about: String,
    /// Setups that several cases share, by name.
    #[serde(default)]
    pub trees: BTreeMap<String, Vec<Value>>,
    /// The cases.
    pub cases: Vec<Case>,
    /// Cases that cannot be asked yet, or that are shown elsewhere.
    #[serde(default)]
    pub waiting: Vec<Waiting>,
}

/// A case that is not run here.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiting {
    /// Its id.
    pub id: String,
    /// What it waits for, or where it is shown instead.
    pub until: String,
    /// What it will ask.
    pub about: String,
}

/// One case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its id, never used twice.
    pub id: String,
    /// What is built first, in order.
    #[serde(default)]
    pub setup: Vec<Value>,
    /// The operation asked.
    pub operation: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The arguments as raw text instead, for what a JSON value cannot say.
    #[serde(default)]
    pub raw: Option<Raw>,
    /// Calls made after each round, while somebody changes the tree.
    #[serde(default)]
    pub then: Vec<Value>,
    /// Who asks, when it is not the usual agent.
    #[serde(default, rename = "as")]
    pub principal: Option<String>,
    /// What must come of it.
    pub expect: Expected,
    /// What must hold afterwards, besides what must always hold.
    #[serde(default)]
    pub check: Checks,
    /// The longest time it may take, when it is not the usual one.
    #[serde(default)]
    pub within_ms: Option<u64>,
    /// How we decided, where there was a choice.
    #[serde(default)]
    pub decision: Option<String>,
    /// Which control the case must catch.
    #[serde(default)]
    pub control: Control,
    /// Why no control can fail it.
    #[serde(default)]
    pub cannot_bite: Option<String>,
    /// The only subject it can be asked of, when there is one.
    #[serde(default)]
    pub only: Option<Only>,
}

/// Arguments as text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raw {
    /// The bytes in hexadecimal.
    #[serde(default)]
    pub hex: Option<String>,
    /// The text.
    #[serde(default)]
    pub text: Option<String>,
}

impl Raw {
    /// The bytes meant.
    pub(crate) fn bytes(&self) -> io::Result<Vec<u8>> {
        match (&self.hex, &self.text) {
            (Some(hex), None) => from_hex(hex),
            (None, Some(text)) => Ok(text.clone().into_bytes()),
            (None, None) | (Some(_), Some(_)) => Err(io::Error::other("raw is hex or text")),
        }
    }
}

/// What must come of a case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// How it ends.
    pub result: Ending,
    /// The kinds of refusal that are right; with `safe`, those that are allowed.
    #[serde(default)]
    pub kind: Kinds,
}

/// How a case ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It is done.
    Ok,
    /// A rule refuses it.
    Deny,
    /// The world does not fit it.
    Error,
    /// Either, while somebody changes the tree: what counts is what must always hold.
    Safe,
}

/// One kind or several.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(untagged)]
pub enum Kinds {
    /// None at all.
    #[default]
    None,
    /// Exactly this one.
    One(String),
    /// Any of these.
    Any(Vec<String>),
}

impl Kinds {
    /// The kinds as a list.
    pub fn list(&self) -> Vec<&str> {
        match self {
            Kinds::None => Vec::new(),
            Kinds::One(kind) => vec![kind],
            Kinds::Any(kinds) => kinds.iter().map(String::as_str).collect(),
        }
    }
}

/// What must hold afterwards. Paths are relative to the workspace.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Checks {
    /// Regular files with exactly this text.
    pub content: BTreeMap<String, String>,
    /// Places where nothing is, not even a link.
    pub absent: Vec<String>,
    /// Links that say exactly this.
    pub link: BTreeMap<String, String>,
    /// Places that are of this type: `file`, `directory`, `link`, `fifo`, `socket`, `device`.
    pub kind: BTreeMap<String, String>,
    /// Places with exactly these permission bits, set-id bits included.
    pub mode: BTreeMap<String, u32>,
    /// Fields of the answer, compared exactly.
    pub answer: Map<String, Value>,
    /// What the answer, as text and as JSON, must not hold.
    pub lacks: Vec<String>,
    /// What the answer's JSON must hold.
    pub holds: Vec<String>,
    /// What the answer's text must not hold.
    pub text_lacks: Vec<String>,
    /// Whether the workspace is as it was, although the call was answered.
    pub unchanged: bool,
    /// Whether nothing is left in the trash.
    pub trash_empty: bool,
}

/// A server that is known to be weak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Joins the root and the spelling, and lets the operating system resolve it.
    #[default]
    Join,
    /// The same, after decoding everything that looks encoded.
    Decode,
}

/// A subject that a case is limited to.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Only {
    /// `engine` or `mcp`.
    pub subject: String,
    /// Why.
    pub why: String,
}

/// Reads every group.
pub fn groups() -> io::Result<Vec<Group>> {
    FILES
        .iter()
        .map(|(name, text)| {
            let group: Group = serde_json::from_str(text)
                .map_err(|error| io::Error::other(format!("cases/attacks/{name}.json: {error}")))?;
            if group.group == *name {
                Ok(group)
            } else {
                Err(io::Error::other(format!("cases/attacks/{name}.json is group {}", group.group)))
            }
        })
        .collect()
}

/// Bytes from hexadecimal digits.
pub(crate) fn from_hex(digits: &str) -> io::Result<Vec<u8>> {
    let malformed = || io::Error::other(format!("not hexadecimal: {digits}"));
    let pair = |at: usize| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    if !digits.len().is_multiple_of(2) {
        return Err(malformed());
    }
    (0..digits.len()).step_by(2).map(|at| pair(at).ok_or_else(malformed)).collect()
}
