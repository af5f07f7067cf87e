//! Who asks: the principal, the session and face it came through, and what it has been granted.

use std::fmt;

use path::RelPath;

use crate::{
    failure::{Failure, Kind},
    glob::Globs,
    presence::Presence,
    workspace::Workspace,
};

/// Longest principal name.
const PRINCIPAL_BYTES_MAX: usize = 128;

/// Who acts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Principal {
    /// A person.
    User(String),
    /// A program acting for somebody.
    Agent(String),
    /// The server itself: expiry, pruning, key rotation.
    System,
    /// Whoever changes files without asking here. Only ever told about: nobody can ask as it.
    Outside,
}

impl Principal {
    /// Reads `user:NAME` or `agent:NAME`. Nobody can ask as the system or as the outside.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let malformed = || Failure::new(Kind::BadRequest, "a principal is written user:NAME or agent:NAME");
        let (kind, name) = text.split_once(':').ok_or_else(malformed)?;
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '+' | '/');
        if name.is_empty() || name.len() > PRINCIPAL_BYTES_MAX || !name.chars().all(plain) {
            return Err(malformed());
        }
        match kind {
            "user" => Ok(Principal::User(name.to_owned())),
            "agent" => Ok(Principal::Agent(name.to_owned())),
            _ => Err(malformed()),
        }
    }

    /// How long what this principal removes stays recoverable.
    pub fn trash_ms(&self) -> i64 {
        match self {
            Principal::User(_) | Principal::System | Principal::Outside => crate::limits::TRASH_USER_MS,
            Principal::Agent(_) => crate::limits::TRASH_AGENT_MS,
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Principal::User(name) => write!(f, "user:{name}"),
            Principal::Agent(name) => write!(f, "agent:{name}"),
            Principal::System => f.write_str("system:stead"),
            Principal::Outside => f.write_str("outside"),
        }
    }
}

/// Whether a caller may change anything at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads and changes.
    ReadWrite,
    /// Reads only.
    ReadOnly,
}

/// Whether a caller may answer what others asked a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Approver {
    /// No. Whoever comes through a face.
    #[default]
    No,
    /// Yes: a person who has shown the approver's secret.
    Shown,
}

/// What a caller may reach.
#[derive(Debug, Clone)]
pub struct Grants {
    /// Whether anything may be changed.
    pub access: Access,
    /// Subtrees that may be read.
    pub readable: Vec<RelPath>,
    /// Subtrees that may be changed.
    pub writable: Vec<RelPath>,
    /// Places that are not there for this caller, whatever else is granted.
    pub hidden: Globs,
    /// Places that this caller may see but not change, whatever else is granted.
    pub fixed: Globs,
    /// Whether it may answer what others asked a person. No face ever sets it.
    pub approver: Approver,
}

impl Default for Grants {
    fn default() -> Self {
        Self {
            access: Access::ReadWrite,
            readable: vec![RelPath::root()],
            writable: vec![RelPath::root()],
            hidden: Globs::default(),
            fixed: Globs::default(),
            approver: Approver::No,
        }
    }
}

/// Who asks, on whose behalf, from where, with which grants.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Who acts.
    pub principal: Principal,
    /// The person an agent acts for, when known.
    pub on_behalf_of: Option<Principal>,
    /// The session the call came through.
    pub session: String,
    /// The face the call came through: `mcp`, `cli`, `library`.
    pub face: &'static str,
    /// What it may reach.
    pub grants: Grants,
    /// How long it is there.
    pub presence: Presence,
    /// When the conversation began, in unix milliseconds; zero when nobody says.
    pub since_ms: i64,
    /// The first entry that can be of the conversation; zero when nobody says.
    pub since_entry: u64,
}

impl Caller {
    /// The same caller whose conversation begins now.
    #[must_use]
    pub fn beginning(mut self, workspace: &dyn Workspace) -> Self {
        self.since_ms = workspace.now_ms();
        // Where the journal cannot be read, everything is looked through.
        self.since_entry = workspace.head().map_or(0, |head| head.number + 1);
        self
    }

    /// A caller with full grants.
    pub fn new(principal: Principal, session: impl Into<String>, face: &'static str) -> Self {
        Self {
            principal,
            on_behalf_of: None,
            session: session.into(),
            face,
            grants: Grants::default(),
            presence: Presence::default(),
            since_ms: 0,
            since_entry: 0,
        }
    }
}
