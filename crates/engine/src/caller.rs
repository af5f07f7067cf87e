//! The caller of an operation: principal, session, protocol, grants and lifetime. A workspace can attach resources to a
//! caller's connection, such as the lock that keeps the caller's buffers open. The end of a connection releases its
//! resources but does not revert its file changes.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use stead_path::RelPath;

use crate::{
    errors::{Error, ErrorKind},
    glob::GlobPatternSet,
    limits,
    limits::PRINCIPAL_BYTES_MAX,
    next_step::NextStep,
    workspace::Workspace,
};

/// The principal: the identity under which a call is authorized and recorded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Principal {
    User(String),
    Agent(String),
    /// The principal is the server itself, which expires data, prunes the journal and rotates keys.
    System,
    /// The principal is an unknown program that changes files without using stead. The external principal appears only
    /// in journal entries and is never the principal of a caller.
    External,
}

impl Principal {
    /// Parses a principal of the form `user:NAME` or `agent:NAME`. The system and external principals cannot be parsed.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let malformed = || {
            let start: String = text.chars().take(PRINCIPAL_BYTES_MAX).collect();
            Error::new(ErrorKind::BadRequest, format!("'{start}' is not a principal"))
                .with_next_step("write user:NAME or agent:NAME, for example user:ann")
        };
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

    pub(crate) fn is_agent(&self) -> bool {
        match self {
            Principal::Agent(_) => true,
            Principal::User(_) | Principal::System | Principal::External => false,
        }
    }

    /// The principal itself if it may see only its own items, such as alerts and approvals; `None` if it may see all.
    pub(crate) fn only_visible_owner(&self) -> Option<&Self> {
        self.is_agent().then_some(self)
    }

    pub(crate) fn may_see_items_of(&self, owner: &str) -> bool {
        !self.is_agent() || owner == self.to_string()
    }

    /// The default time in milliseconds for which the trash keeps files that this principal removed.
    pub fn trash_retention_ms(&self) -> i64 {
        if self.is_agent() { limits::AGENT_TRASH_RETENTION_MS } else { limits::USER_TRASH_RETENTION_MS }
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
pub enum CallerAccessMode {
    ReadWrite,
    ReadOnly,
}

/// Whether a caller may answer approval requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallerApproverStatus {
    /// The caller may not answer approval requests; every caller of a protocol has this status.
    #[default]
    None,
    /// The caller is a person who presented the approver secret.
    SecretVerified,
}

/// Whether a caller may use files and administer, and how the caller got the right to administer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallerAuthority {
    /// The caller may use files; every caller of a protocol without an administration token has this authority.
    #[default]
    UseFiles,
    /// The caller runs the command line as the owner of the state directory, and may use files and administer.
    OwnerCommandLine,
    /// The caller has a token that administers and opens no file.
    AdministrationToken,
    /// The caller has a token that administers, opens no file and may export workspaces.
    AdministrationAndExportToken,
}

/// The paths that a caller may read and change, and the caller's other rights.
#[derive(Debug, Clone)]
pub struct Grants {
    pub access: CallerAccessMode,
    pub readable: Vec<RelPath>,
    pub writable: Vec<RelPath>,
    /// The paths that the caller can neither see nor change, even inside a granted subtree.
    pub hidden: GlobPatternSet,
    /// The paths that the caller may read but not change, even inside a granted subtree.
    pub read_only: GlobPatternSet,
    /// Protocols never grant this right.
    pub approver: CallerApproverStatus,
    pub authority: CallerAuthority,
}

impl Default for Grants {
    fn default() -> Self {
        Self {
            access: CallerAccessMode::ReadWrite,
            readable: vec![RelPath::root()],
            writable: vec![RelPath::root()],
            hidden: GlobPatternSet::default(),
            read_only: GlobPatternSet::default(),
            approver: CallerApproverStatus::None,
            authority: CallerAuthority::UseFiles,
        }
    }
}

/// The caller of an operation, with its grants.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The identity under which the call is authorized and recorded.
    pub principal: Principal,
    pub on_behalf_of: Option<Principal>,
    pub session: String,
    /// For example `mcp`, `cli` or `library`.
    pub protocol: &'static str,
    pub grants: Grants,
    pub lifetime: CallerResourceLifetime,
    /// The start of the caller's session, in Unix milliseconds; zero if the start is unknown.
    pub session_started_ms: i64,
    /// The lowest possible number of a journal entry of the caller's session; zero if unknown.
    pub session_first_entry: u64,
}

impl Caller {
    /// Starts the caller's session: sets the start time and the lowest possible number of its journal entries.
    #[must_use]
    pub fn starting_session_now(mut self, workspace: &dyn Workspace) -> Self {
        self.session_started_ms = workspace.now_ms();
        // If the journal cannot be read, queries about the session start at the first entry of the journal.
        self.session_first_entry = workspace.head().map_or(0, |head| head.number + 1);
        self
    }

    /// Creates a caller that may read and change everything.
    pub fn new(principal: Principal, session: impl Into<String>, protocol: &'static str) -> Self {
        Self {
            principal,
            on_behalf_of: None,
            session: session.into(),
            protocol,
            grants: Grants::default(),
            lifetime: CallerResourceLifetime::default(),
            session_started_ms: 0,
            session_first_entry: 0,
        }
    }
}

/// How long the resources of a caller, such as buffer locks, are kept.
#[derive(Debug, Clone, Default)]
pub enum CallerResourceLifetime {
    /// The caller's resources are kept until the process ends, because the process has only one caller.
    #[default]
    Process,
    /// The caller's resources are kept until the connection ends.
    Connection(Arc<ConnectionScopedResources>),
    /// The caller's resources are kept until the call returns, because the server cannot detect the end of a
    /// connection.
    SingleCall,
}

impl CallerResourceLifetime {
    /// Creates a lifetime that ends together with a new connection.
    pub fn connected() -> Self {
        Self::Connection(Arc::default())
    }

    /// Ends the connection and releases its resources, even if other references to the connection exist.
    pub fn end(&self) {
        match self {
            CallerResourceLifetime::Connection(connection) => connection.end(),
            CallerResourceLifetime::Process | CallerResourceLifetime::SingleCall => {}
        }
    }
}

type ConnectionResource = Box<dyn Send>;

/// The resources of one connection, in a process that serves several connections.
pub struct ConnectionScopedResources {
    number: u64,
    /// The resources of the connection by name; `None` after the connection has ended.
    resources: Mutex<Option<HashMap<String, ConnectionResource>>>,
}

impl Default for ConnectionScopedResources {
    fn default() -> Self {
        static NEXT_CONNECTION_NUMBER: AtomicU64 = AtomicU64::new(1);
        Self {
            number: NEXT_CONNECTION_NUMBER.fetch_add(1, Ordering::Relaxed),
            resources: Mutex::new(Some(HashMap::new())),
        }
    }
}

impl ConnectionScopedResources {
    /// The number of this connection, which is unique within the process.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Creates a named resource with `make`, unless it exists, and keeps it until the connection ends. Attaching a
    /// resource fails if the connection has ended.
    pub fn attach_resource(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<ConnectionResource, Error>,
    ) -> Result<(), Error> {
        let mut resources = self.resources.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(resources) = resources.as_mut() else {
            return Err(Error::new(
                ErrorKind::Cancelled,
                "the connection to the client has ended, so the call was cancelled",
            )
            .with_next_step(NextStep::from("connect again").then(NextStep::repeat())));
        };
        if !resources.contains_key(name) {
            resources.insert(name.to_owned(), make()?);
        }
        Ok(())
    }

    /// Whether the connection has ended.
    pub fn has_ended(&self) -> bool {
        self.resources.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn end(&self) {
        let resources = self.resources.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Dropping the resources may take time, so they are dropped after the mutex is released.
        drop(resources);
    }
}

impl fmt::Debug for ConnectionScopedResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionScopedResources").field("number", &self.number).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_created_once_and_dropped_with_connection() {
        let lifetime = CallerResourceLifetime::connected();
        let CallerResourceLifetime::Connection(connection) = lifetime.clone() else { panic!("{lifetime:?}") };
        let resource = Arc::new(());
        for name in ["a", "a", "b"] {
            connection.attach_resource(name, || Ok(Box::new(Arc::clone(&resource)))).unwrap();
        }
        assert_eq!((Arc::strong_count(&resource), connection.has_ended()), (3, false));
        lifetime.end();
        assert_eq!((Arc::strong_count(&resource), connection.has_ended()), (1, true));
        let late = connection.attach_resource("c", || Ok(Box::new(Arc::clone(&resource))));
        assert_eq!(late.unwrap_err().kind, ErrorKind::Cancelled);
    }
}
