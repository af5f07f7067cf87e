//! The file format of the attack corpus, and its parser.

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

/// One group of attack cases, as a corpus file defines it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackTestCaseGroup {
    /// The name of the group of attack cases.
    pub group: String,
    /// A description of what the cases of the group attack.
    pub about: String,
    /// The lists of setup steps that several cases of the group share, by name.
    #[serde(default)]
    pub trees: BTreeMap<String, Vec<Value>>,
    /// The attack cases of the group.
    pub cases: Vec<AttackCase>,
    /// The attack cases of the group that cannot run yet or are tested elsewhere.
    #[serde(default)]
    pub waiting: Vec<SkippedAttackCase>,
}

/// An attack case that is listed in the corpus but not run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkippedAttackCase {
    /// The id of the skipped attack case.
    pub id: String,
    /// The text that says when or where the skipped attack case is tested.
    pub until: String,
    /// The description of what the skipped attack case tests.
    pub about: String,
}

/// An attack case is one request with its setup and its expected result.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackCase {
    /// The unique id of the attack case.
    pub id: String,
    /// The setup steps that run in order before the attack case's request.
    #[serde(default)]
    pub setup: Vec<Value>,
    /// The operation that the attack case requests.
    pub operation: String,
    /// The arguments of the attack case's request.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The raw bytes of the attack case's arguments, for arguments that JSON cannot express.
    #[serde(default)]
    pub raw: Option<AttackCaseArgumentBytes>,
    /// The calls that follow each repetition of the request in an attack case with attacker threads.
    #[serde(default)]
    pub then: Vec<Value>,
    /// The principal that makes the attack case's request, if it is not the default agent.
    #[serde(default, rename = "as")]
    pub principal: Option<String>,
    /// The expected result of the attack case's request.
    pub expect: AttackExpectation,
    /// The checks made after the request, besides the general invariants.
    #[serde(default)]
    pub check: PostAttackChecks,
    /// The time limit of the attack case's request in milliseconds, if it is not the default.
    #[serde(default)]
    pub within_ms: Option<u64>,
    /// The reason for the attack case's expected result when another result would also be defensible.
    #[serde(default)]
    pub decision: Option<String>,
    /// The kind of unsafe control server that must fail the attack case.
    #[serde(default)]
    pub control: UnsafeControlServerKind,
    /// The reason why no unsafe control server can fail the attack case.
    #[serde(default)]
    pub cannot_bite: Option<String>,
    /// `Some` if only one subject, such as the engine, can run the attack case.
    #[serde(default)]
    pub only: Option<AttackCaseOnlySubject>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackCaseArgumentBytes {
    #[serde(default)]
    pub hex: Option<String>,
    #[serde(default)]
    pub text: Option<String>,
}

impl AttackCaseArgumentBytes {
    pub(crate) fn bytes(&self) -> io::Result<Vec<u8>> {
        match (&self.hex, &self.text) {
            (Some(hex), None) => decode_hex(hex),
            (None, Some(text)) => Ok(text.clone().into_bytes()),
            (None, None) | (Some(_), Some(_)) => Err(io::Error::other("raw is hex or text")),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackExpectation {
    pub result: ExpectedAttackResult,
    /// The allowed error kinds of the attack case's request.
    #[serde(default)]
    pub kind: ExpectedErrorKinds,
}

/// The result that an attack case's request must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedAttackResult {
    /// The attack case's request succeeds.
    Ok,
    /// A rule refuses the attack case's request.
    Deny,
    /// The attack case's request fails because of the files in the tree, such as a missing path.
    Error,
    /// The attack case's request may succeed or fail, because attackers change the tree.
    Safe,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(untagged)]
pub enum ExpectedErrorKinds {
    #[default]
    None,
    One(String),
    Any(Vec<String>),
}

impl ExpectedErrorKinds {
    pub fn as_list(&self) -> Vec<&str> {
        match self {
            ExpectedErrorKinds::None => Vec::new(),
            ExpectedErrorKinds::One(kind) => vec![kind],
            ExpectedErrorKinds::Any(kinds) => kinds.iter().map(String::as_str).collect(),
        }
    }
}

/// Checks of the workspace and of the reply after an attack case, with paths relative to the workspace.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PostAttackChecks {
    /// The exact text of each path that must be a regular file.
    pub content: BTreeMap<String, String>,
    /// The paths that must not exist, not even as a symbolic link.
    pub absent: Vec<String>,
    /// The exact target of each path that must be a symbolic link.
    pub link: BTreeMap<String, String>,
    /// The required type of each path: `file`, `directory`, `link`, `fifo`, `socket` or `device`.
    pub kind: BTreeMap<String, String>,
    /// The required permission bits of each path, including set-id bits.
    pub mode: BTreeMap<String, u32>,
    /// The fields that the JSON reply to the attack request must contain, with their exact values.
    pub answer: Map<String, Value>,
    /// The texts that neither the text nor the JSON of the reply may contain.
    pub lacks: Vec<String>,
    /// The texts that the JSON of the reply must contain.
    pub holds: Vec<String>,
    /// The texts that the text of the reply must not contain.
    pub text_lacks: Vec<String>,
    /// Whether the workspace must be unchanged even if the request succeeds.
    pub unchanged: bool,
    pub trash_empty: bool,
}

/// The kind of a control server that is unsafe on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnsafeControlServerKind {
    /// The control server joins the root and the requested path, and follows `..` and links.
    #[default]
    Join,
    /// The control server decodes everything that looks encoded in the requested path before it joins the path.
    Decode,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackCaseOnlySubject {
    pub subject: String,
    pub why: String,
}

/// Parses all groups of the attack corpus.
pub fn load_groups() -> io::Result<Vec<AttackTestCaseGroup>> {
    GROUP_FILES
        .iter()
        .map(|(name, text)| {
            let group: AttackTestCaseGroup = serde_json::from_str(text)
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
