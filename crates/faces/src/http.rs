//! The engine over HTTP: MCP, JSON-RPC, plain files and operations, and a stream of events, for any number of clients that
//! each bring a token.
//!
//! Owns what HTTP adds: who may knock ([`guard`](self)), how long and how large a request may be, and which status a failure
//! has. Promises: a request is judged in one order (framing, Host, Origin, Sec-Fetch-Site, method and type, token, limits)
//! before anything of it is done; a token is taken from the Authorization header and nowhere else; what one client does
//! holds up its own calls and nobody else's; a stopping server finishes what runs and tells its streams. Never decides
//! whether something may be done with a file, and never knows what a token is: a [`Door`] does.

use std::{sync::Arc, time::Duration};

use engine::{Caller, Engine};

use crate::dialect::Place;

mod allowance;
mod archive;
mod bell;
mod bodies;
mod enter;
mod estate;
mod events;
mod files;
mod guard;
mod guest;
mod hall;
mod listen;
mod log;
mod mcp;
mod metadata;
mod metrics;
mod operations;
mod patient;
mod problem;
mod routes;
mod rpc;
mod strangers;
mod tls;

pub use allowance::Rate;
pub use estate::{Errand, Leaving, Steward};
pub use guard::Names;
pub(crate) use guest::KEY_HEADER;
pub use hall::{Hall, Keeping, Settings};
pub use listen::{Listener, serve};
pub use log::{Answered, Called, Calls, Log};
pub use metadata::{Authorization, Way};
pub use strangers::PerAddress;
pub use tls::{Tls, TlsError};

/// What a request brings to say who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential<'a> {
    /// A token, as the Authorization header has it.
    Token(&'a str),
    /// Nothing but a connection that the kernel says comes from this server's own user.
    SameUser,
}

/// Who asks, where, and how the door calls it.
#[derive(Clone)]
pub struct Admission {
    /// The same for the same token and for no other.
    pub key: String,
    /// Who every call is made for.
    pub caller: Caller,
    /// What it is admitted to.
    pub to: Admitted,
}

/// What somebody is admitted to.
#[derive(Clone)]
pub enum Admitted {
    /// One workspace.
    Workspace {
        /// The same for the same workspace and for no other.
        id: String,
        /// Where it is, for dialects that tell.
        place: Place,
        /// Opens it, which may take a while. Asked once for every client.
        opening: Opening,
    },
    /// The making and ending of workspaces, and no file.
    Estate,
}

/// How a workspace is opened.
pub type Opening = Arc<dyn Fn() -> Result<Engine, NotAdmitted> + Send + Sync>;

/// A workspace that is open already.
pub fn opened(engine: Engine) -> Opening {
    Arc::new(move || Ok(engine.clone()))
}

/// Why somebody is not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAdmitted {
    /// There is no such token, or no longer. Nobody is told which.
    Unknown,
    /// It cannot be found out now.
    Unavailable(String),
    /// As many workspaces are open as may be: whoever is idle should be forgotten.
    Crowded,
}

/// Whoever knows the tokens.
pub trait Door: Send + Sync + 'static {
    /// Who this is. Called for every request, so it must be quick.
    fn admit(&self, credential: Credential<'_>) -> Result<Admission, NotAdmitted>;

    /// Whether somebody who was admitted still would be. Asked while a stream is open.
    fn still_admits(&self, key: &str) -> bool;

    /// Whoever makes and ends workspaces, where there are many.
    fn steward(&self) -> Option<Arc<dyn Steward>> {
        None
    }
}

/// Where a connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Anybody.
    Network,
    /// A process of the same user, as the kernel says.
    SameUser,
    /// A process of another user.
    OtherUser,
}

/// Everything that bounds a client.
pub mod limits {
    use super::Duration;

    /// Connections at a time; more are not accepted until one ends.
    pub const CONNECTIONS_MAX: usize = 16_384;
    /// Connections of one address over which nobody has shown a token yet; more are closed at once.
    pub const STRANGERS_PER_ADDRESS_MAX: usize = 256;
    /// Bytes of a request's head.
    pub const HEAD_BYTES_MAX: usize = 32 << 10;
    /// Headers of a request.
    pub const HEADERS_MAX: usize = 64;
    /// How long a head may take to come.
    pub const HEAD_WAIT: Duration = Duration::from_secs(10);
    /// How long two sides may take to make a connection private.
    pub const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);
    /// How long a body may take to come.
    pub const BODY_WAIT: Duration = Duration::from_secs(60);
    /// Bytes of a body.
    pub const BODY_BYTES_MAX: usize = crate::limits::MESSAGE_BYTES_MAX;
    /// How long a client may take nothing of what is sent to it.
    pub const SEND_WAIT: Duration = Duration::from_secs(60);
    /// Bytes of bodies and answers that are held for one principal.
    pub const BYTES_HELD_PER_CLIENT_MAX: usize = 256 << 20;
    /// The same for all of them together.
    pub const BYTES_HELD_MAX: usize = 1 << 30;
    /// Bytes of files that calls of one principal bring into memory at the same time; more wait their turn.
    pub const BULK_BYTES_PER_CLIENT_MAX: usize = 64 << 20;
    /// The same for all of them together.
    pub const BULK_BYTES_MAX: usize = 256 << 20;
    /// Calls that wait for something to happen, of all principals together.
    pub const CALLS_WAITING_TOTAL_MAX: usize = 256;
    /// Requests of one principal at a time; more are told to come back.
    pub const REQUESTS_PER_CLIENT_MAX: usize = 256;
    /// Streams of one principal at a time.
    pub const STREAMS_PER_CLIENT_MAX: usize = 16_384;
    /// Errands about workspaces at a time, over all clients; more wait their turn.
    pub const ERRANDS_MAX: usize = 8;
    /// Archives that come or go at a time, over all clients; more are told to come back.
    pub const ARCHIVES_MAX: usize = 4;
    /// Bytes of an archive that comes in.
    pub const ARCHIVE_BYTES_MAX: u64 = 16 << 30;
    /// Pieces of an archive that wait for a client, or for the disk.
    pub const ARCHIVE_PIECES_MAX: usize = 4;
    /// Bytes of one of them.
    pub const ARCHIVE_PIECE_BYTES: usize = 256 << 10;
    /// Clients that are forgotten at once when too many workspaces are open.
    pub const FORGOTTEN_AT_ONCE: usize = 64;
    /// What a client that is told to come back shall wait, in seconds.
    pub const RETRY_SECONDS: u64 = 1;
    /// Clients that are remembered; the one that was silent longest is forgotten first.
    pub const CLIENTS_KEPT_MAX: usize = 10_000;
    /// How often a silent stream says that it is still there.
    pub const STREAM_ALIVE: Duration = Duration::from_secs(15);
    /// How long a WebSocket may be silent, pings that it does not answer included: its client is gone then.
    pub const SOCKET_SILENCE_MAX: Duration = Duration::from_secs(60);
    /// How long a stopping server waits for what runs.
    pub const STOP_WAIT: Duration = Duration::from_secs(10);
}

/// A door that can be shared.
pub(crate) type SharedDoor = Arc<dyn Door>;
