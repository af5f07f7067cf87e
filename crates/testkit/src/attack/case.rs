//! The attack corpus as written: groups of cases, each with a setup, a request and its expected result. Owns the file
//! format and its parser. Never runs anything.

use std::{collections::BTreeMap, io};

use serde::Deserialize;
use serde_json::{Map, Value};

const GROUP_FILES: &[(&str, &str)] = &[
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
pub struct AttackGroup {
    /// Name of the group.
    pub group: String,
    /// What the group attacks.
    pub about: String,
    /// Named setups that several cases share.
    #[serde(default)]
    pub trees: BTreeMap<String, Vec<Value>>,
    /// The cases.
    pub cases: Vec<AttackCase>,
    /// Cases that cannot run yet, or that are tested elsewhere.
    #[serde(default)]
    pub waiting: Vec<SkippedAttackCase>,
}

/// A case that is not run here.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkippedAttackCase {
    /// Id of the case.
    pub id: String,
    /// What it needs, or where it is tested instead.
    pub until: String,
    /// What it will test.
    pub about: String,
}

/// One case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackCase {
    /// Unique id.
    pub id: String,
    /// Setup steps, in order.
    #[serde(default)]
    pub setup: Vec<Value>,
    /// The operation.
    pub operation: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The arguments as raw text, where JSON cannot express them.
    #[serde(default)]
    pub raw: Option<AttackCaseArgumentBytes>,
    /// Calls after each round, while attackers change the tree.
    #[serde(default)]
    pub then: Vec<Value>,
    /// The caller, if not the default agent.
    #[serde(default, rename = "as")]
    pub principal: Option<String>,
    /// The expected result.
    pub expect: AttackExpectation,
    /// Checks besides the general invariants.
    #[serde(default)]
    pub check: PostAttackChecks,
    /// Time limit, if not the default.
    #[serde(default)]
    pub within_ms: Option<u64>,
    /// The reason for the expected result, where several results were possible.
    #[serde(default)]
    pub decision: Option<String>,
    /// The control server that must fail the case.
    #[serde(default)]
    pub control: UnsafeControlServerKind,
    /// Why no control can fail the case.
    #[serde(default)]
    pub cannot_bite: Option<String>,
    /// The only subject of the case, if it is limited to one.
    #[serde(default)]
    pub only: Option<SubjectRestriction>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackCaseArgumentBytes {
    /// The bytes in hexadecimal.
    #[serde(default)]
    pub hex: Option<String>,
    /// The text.
    #[serde(default)]
    pub text: Option<String>,
}

impl AttackCaseArgumentBytes {
    /// The bytes.
    pub(crate) fn bytes(&self) -> io::Result<Vec<u8>> {
        match (&self.hex, &self.text) {
            (Some(hex), None) => decode_hex(hex),
            (None, Some(text)) => Ok(text.clone().into_bytes()),
            (None, None) | (Some(_), Some(_)) => Err(io::Error::other("raw is hex or text")),
        }
    }
}

/// The expected result of a case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackExpectation {
    /// How the case ends.
    pub result: ExpectedAttackResult,
    /// The expected error kinds; with `safe`, the allowed ones.
    #[serde(default)]
    pub kind: ExpectedErrorKinds,
}

/// How a case ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedAttackResult {
    /// The call succeeds.
    Ok,
    /// A rule refuses the call.
    Deny,
    /// The call does not fit the state of the tree.
    Error,
    /// The call may succeed or fail, because attackers change the tree. Only the invariants are checked.
    Safe,
}

/// One kind or several.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(untagged)]
pub enum ExpectedErrorKinds {
    /// None.
    #[default]
    None,
    /// Exactly this one.
    One(String),
    /// Any of these.
    Any(Vec<String>),
}

impl ExpectedErrorKinds {
    /// The kinds as a list.
    pub fn as_list(&self) -> Vec<&str> {
        match self {
            ExpectedErrorKinds::None => Vec::new(),
            ExpectedErrorKinds::One(kind) => vec![kind],
            ExpectedErrorKinds::Any(kinds) => kinds.iter().map(String::as_str).collect(),
        }
    }
}

/// Checks after a case. Paths are relative to the workspace.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PostAttackChecks {
    /// Regular files with exactly this text.
    pub content: BTreeMap<String, String>,
    /// Paths that must not exist, not even as a link.
    pub absent: Vec<String>,
    /// Links with exactly this target.
    pub link: BTreeMap<String, String>,
    /// Types of paths: `file`, `directory`, `link`, `fifo`, `socket`, `device`.
    pub kind: BTreeMap<String, String>,
    /// Exact permission bits, including set-id bits.
    pub mode: BTreeMap<String, u32>,
    /// Fields of the reply, compared exactly.
    pub answer: Map<String, Value>,
    /// Text that neither the reply's text nor its JSON may contain.
    pub lacks: Vec<String>,
    /// Text that the reply's JSON must contain.
    pub holds: Vec<String>,
    /// Text that the reply's text must not contain.
    pub text_lacks: Vec<String>,
    /// Whether the workspace is unchanged although the call succeeded.
    pub unchanged: bool,
    /// Whether the trash is empty.
    pub trash_empty: bool,
}

/// A server that is unsafe on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnsafeControlServerKind {
    /// Joins the root and the given path, and lets the operating system resolve it.
    #[default]
    Join,
    /// The same, after decoding everything that looks encoded.
    Decode,
}

/// A subject that a case is limited to.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubjectRestriction {
    /// `engine` or `mcp`.
    pub subject: String,
    /// Reason for the limit.
    pub why: String,
}

/// Parses all groups.
pub fn load_groups() -> io::Result<Vec<AttackGroup>> {
    GROUP_FILES
        .iter()
        .map(|(name, text)| {
            let group: AttackGroup = serde_json::from_str(text)
                .map_err(|error| io::Error::other(format!("cases/attacks/{name}.json: {error}")))?;
            if group.group == *name {
                Ok(group)
            } else {
                Err(io::Error::other(format!("cases/attacks/{name}.json is group {}", group.group)))
            }
        })
        .collect()
}

pub(crate) fn decode_hex(digits: &str) -> io::Result<Vec<u8>> {
    let malformed = || io::Error::other(format!("not hexadecimal: {digits}"));
    let pair = |at: usize| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    if !digits.len().is_multiple_of(2) {
        return Err(malformed());
    }
    (0..digits.len()).step_by(2).map(|at| pair(at).ok_or_else(malformed)).collect()
}
