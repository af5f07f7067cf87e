//! The file format of the attack corpus: groups of cases, each with a setup, a request and an expected result. This
//! module owns the parser of the corpus files. Never runs anything.

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
    /// The name of the group.
    pub group: String,
    /// A description of what the cases of the group attack.
    pub about: String,
    /// Named lists of setup steps that several cases of the group share.
    #[serde(default)]
    pub trees: BTreeMap<String, Vec<Value>>,
    /// The cases.
    pub cases: Vec<AttackCase>,
    /// Cases of the group that cannot run yet, or that are tested elsewhere.
    #[serde(default)]
    pub waiting: Vec<SkippedAttackCase>,
}

/// An attack case that is listed in the corpus but not run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkippedAttackCase {
    /// The id of the skipped case.
    pub id: String,
    /// What the skipped case needs before it can run, or where it is tested instead.
    pub until: String,
    /// What the skipped case tests.
    pub about: String,
}

/// One case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackCase {
    /// Unique id.
    pub id: String,
    /// The steps that prepare the case, in order.
    #[serde(default)]
    pub setup: Vec<Value>,
    /// The operation.
    pub operation: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The arguments of the request as raw bytes, if JSON cannot express them.
    #[serde(default)]
    pub raw: Option<AttackCaseArgumentBytes>,
    /// Calls to make after each repetition of the request, in cases with attacker threads.
    #[serde(default)]
    pub then: Vec<Value>,
    /// The principal that makes the request, if it is not the default agent.
    #[serde(default, rename = "as")]
    pub principal: Option<String>,
    /// The expected result.
    pub expect: AttackExpectation,
    /// Checks of this case after the request, besides the general invariants.
    #[serde(default)]
    pub check: PostAttackChecks,
    /// The time limit of the request in milliseconds, if it is not the default.
    #[serde(default)]
    pub within_ms: Option<u64>,
    /// Why the corpus expects this result, for cases where another result would also be defensible.
    #[serde(default)]
    pub decision: Option<String>,
    /// The unsafe control server that must fail the case.
    #[serde(default)]
    pub control: UnsafeControlServerKind,
    /// The reason why no control server can fail the case.
    #[serde(default)]
    pub cannot_bite: Option<String>,
    /// The only subject that runs the case, if the case is limited to one.
    #[serde(default)]
    pub only: Option<AttackTestSubjectRestriction>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackCaseArgumentBytes {
    /// The raw arguments in hexadecimal.
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

/// The expected result of an attack case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackExpectation {
    /// Whether the request of the case must succeed, be refused or fail.
    pub result: ExpectedAttackResult,
    /// The expected error kinds; for the result `safe`, the error kinds that are allowed.
    #[serde(default)]
    pub kind: ExpectedErrorKinds,
}

/// Whether the request of an attack case must succeed or fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedAttackResult {
    /// The call succeeds.
    Ok,
    /// The request is refused by a rule.
    Deny,
    /// The request fails because of the files in the tree, for example because a path does not exist.
    Error,
    /// The request may succeed or fail, because attackers change the tree; only the invariants are checked.
    Safe,
}

/// The error kinds that an attack case expects: none, one, or any of several.
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
    pub fn as_list(&self) -> Vec<&str> {
        match self {
            ExpectedErrorKinds::None => Vec::new(),
            ExpectedErrorKinds::One(kind) => vec![kind],
            ExpectedErrorKinds::Any(kinds) => kinds.iter().map(String::as_str).collect(),
        }
    }
}

/// Checks of the workspace and the reply after an attack case; paths are relative to the workspace.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PostAttackChecks {
    /// Paths that must be regular files with exactly this text.
    pub content: BTreeMap<String, String>,
    /// Paths that must not exist, not even as a symbolic link.
    pub absent: Vec<String>,
    /// Paths that must be symbolic links with exactly this target.
    pub link: BTreeMap<String, String>,
    /// The required types of paths: `file`, `directory`, `link`, `fifo`, `socket` or `device`.
    pub kind: BTreeMap<String, String>,
    /// The required permission bits of paths, including set-id bits.
    pub mode: BTreeMap<String, u32>,
    /// Fields that the JSON reply must have with exactly these values.
    pub answer: Map<String, Value>,
    /// Texts that neither the text nor the JSON of the reply may contain.
    pub lacks: Vec<String>,
    /// Texts that the JSON of the reply must contain.
    pub holds: Vec<String>,
    /// Texts that the text of the reply must not contain.
    pub text_lacks: Vec<String>,
    /// Whether the workspace must be unchanged even if the request succeeds; after an expected failure it always must.
    pub unchanged: bool,
    /// Whether the trash must be empty after the case.
    pub trash_empty: bool,
}

/// A control server that is unsafe on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnsafeControlServerKind {
    /// The server joins the root and the requested path, and leaves `..` and links to the operating system.
    #[default]
    Join,
    /// The server first decodes everything in the requested path that looks encoded, and then joins it to the root.
    Decode,
}

/// The limitation of an attack case to one subject.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackTestSubjectRestriction {
    /// `engine` or `mcp`.
    pub subject: String,
    /// The reason why only this subject can run the case.
    pub why: String,
}

/// Parses all groups.
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
