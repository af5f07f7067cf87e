//! The caller of an operation: principal, session, protocol and grants.

use std::fmt;

use stead_path::RelPath;

use crate::{
    connection::CallerLifetime,
    errors::{Error, ErrorKind},
    glob::Globs,
    workspace::Workspace,
};

/// Longest principal name.
const PRINCIPAL_BYTES_MAX: usize = 128;

/// The identity that acts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Principal {
    /// A person.
    User(String),
    /// A program acting for a person.
    Agent(String),
    /// The server itself: expiry, pruning, key rotation.
    System,
    /// Programs that change files outside stead. Appears only in recorded entries; no caller can use it.
    External,
}

impl Principal {
    /// Parses `user:NAME` or `agent:NAME`. System and external principals cannot be parsed.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let malformed = || Error::new(ErrorKind::BadRequest, "a principal is written user:NAME or agent:NAME");
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

    /// The default trash retention of this principal.
    pub fn trash_retention_ms(&self) -> i64 {
        match self {
            Principal::User(_) | Principal::System | Principal::External => crate::limits::USER_TRASH_RETENTION_MS,
            Principal::Agent(_) => crate::limits::AGENT_TRASH_RETENTION_MS,
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Principal::User(name) => write!(f, "user:{name}"),
            Principal::Agent(name) => write!(f, "agent:{name}"),
            Principal::System => f.write_str("system:stead"),
            Principal::External => f.write_str("outside"),
        }
    }
}

/// Whether a caller may change files at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessMode {
    /// May read and change files.
    ReadWrite,
    /// May only read files.
    ReadOnly,
}

/// Whether a caller may answer approval requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApproverProof {
    /// No; every caller of a protocol.
    #[default]
    None,
    /// Yes: a person who presented the approver secret.
    SecretVerified,
}

/// The paths and rights of a caller.
#[derive(Debug, Clone)]
pub struct Grants {
    /// Whether the caller may change files.
    pub access: AccessMode,
    /// Subtrees that the caller may read.
    pub readable: Vec<RelPath>,
    /// Subtrees that the caller may change.
    pub writable: Vec<RelPath>,
    /// Paths invisible to this caller, whatever else is granted.
    pub hidden: Globs,
    /// Paths that this caller may read but not change, whatever else is granted.
    pub read_only: Globs,
    /// Whether the caller may answer approval requests. No protocol ever sets it.
    pub approver: ApproverProof,
}

impl Default for Grants {
    fn default() -> Self {
        Self {
            access: AccessMode::ReadWrite,
            readable: vec![RelPath::root()],
            writable: vec![RelPath::root()],
            hidden: Globs::default(),
            read_only: Globs::default(),
            approver: ApproverProof::None,
        }
    }
}

/// The caller of an operation, with its grants.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The identity that acts.
    pub principal: Principal,
    /// The person an agent acts for, when known.
    pub on_behalf_of: Option<Principal>,
    /// The id of the session.
    pub session: String,
    /// The protocol of the call: `mcp`, `cli`, `library`.
    pub protocol: &'static str,
    /// The paths and rights of the caller.
    pub grants: Grants,
    /// How long the caller exists.
    pub lifetime: CallerLifetime,
    /// Start of the session, in unix milliseconds; zero if unknown.
    pub session_started_ms: i64,
    /// The first journal entry that can belong to the session; zero if unknown.
    pub session_first_entry: u64,
}

impl Caller {
    /// Starts the caller's session now.
    #[must_use]
    pub fn starting_session_now(mut self, workspace: &dyn Workspace) -> Self {
        self.session_started_ms = workspace.now_ms();
        // Without a readable journal, all entries are scanned.
        self.session_first_entry = workspace.head().map_or(0, |head| head.number + 1);
        self
    }

    /// A caller with full grants.
    pub fn new(principal: Principal, session: impl Into<String>, protocol: &'static str) -> Self {
        Self {
            principal,
            on_behalf_of: None,
            session: session.into(),
            protocol,
            grants: Grants::default(),
            lifetime: CallerLifetime::default(),
            session_started_ms: 0,
            session_first_entry: 0,
        }
    }
}
