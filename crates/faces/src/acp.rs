//! The Agent Client Protocol, as a proxy: an editor on one side, an agent on the other, and the files of their sessions
//! served here. Messages go by as raw JSON, so that what this proxy does not know survives in both directions; only
//! `initialize` and the setup of sessions are changed, and there only the members that must be.
//!
//! Promises: `fs/*` of the agent is confined to the roots of its session, goes through the engine like every other call,
//! and never reaches the editor by itself; ids of our own requests never meet those of a peer. Touches no file: roots are
//! opened by whoever runs it.

use std::{io, sync::Arc};

use engine::{Caller, Engine, Failure};
use tokio::sync::Semaphore;

use crate::limits::REQUESTS_PENDING_MAX;

mod chain;
mod editor;
mod files;
mod form;
mod made;
mod message;
mod own;
mod port;
mod prompt;
mod question;
mod reviewing;
mod router;
mod scan;
mod serve;
mod session;
mod setup;
mod slice;
mod sorry;
mod splice;

pub use crate::dialect::acp::Acp;
pub use form::{Encodings, Endings, Keeping};
pub use serve::{Input, Output};
pub use session::{Only, Opened};
pub use setup::{FileOffer, Offer, Server, Ticket};
pub(crate) use slice::slice;
pub(crate) use sorry::Sorry;

use chain::Wrap;
use port::Port;
use router::Router;

/// Opens what sessions name. Implemented by whoever may touch files.
pub trait Ground: Send + Sync {
    /// Opens a root by its absolute path: a directory, or one file. Never more than what is named.
    fn open(&self, root: &str) -> Result<Opened, Failure>;

    /// How an agent starts a server of more tools for this working directory; nothing where it gets none.
    fn server(&self, directory: &str) -> Option<Server>;

    /// The session in this working directory that a server was for has a name now: what the server does is part of it.
    fn belongs(&self, directory: &str, ticket: &Ticket, session: &str) -> Result<(), Failure>;

    /// Makes a rule of a question that a person wants always answered with yes.
    fn always(&self, engine: &Engine, approval: &str) -> Result<(), Failure>;
}

/// How the proxy is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Which of the file methods agents are told of.
    pub offer: FileOffer,
    /// What of a file's form is kept, where a call does not say.
    pub keeping: Keeping,
}

/// Which side ended the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The editor closed its side.
    Editor,
    /// The agent closed its side.
    Agent,
}

/// Who asks in the sessions of one conversation.
#[derive(Debug, Clone)]
pub struct Who {
    /// The agent, for its file methods. Its session is replaced by the ids that it gives.
    pub agent: Caller,
    /// The person at the editor, for what the editor asks about the agent's work.
    pub person: Caller,
}

/// Both conversations.
struct Proxy {
    router: Router,
    options: Options,
    ground: Arc<dyn Ground>,
    editor: Port,
    agent: Port,
    /// One for each file call that may be under way.
    slots: Arc<Semaphore>,
}

impl Proxy {
    fn new(who: Who, options: Options, ground: Arc<dyn Ground>, editor: Port, agent: Port) -> Arc<Self> {
        let router = Router::new(who, options);
        let slots = Arc::new(Semaphore::new(REQUESTS_PENDING_MAX));
        Arc::new(Self { router, options, ground, editor, agent, slots })
    }
}

/// One side: what it says, and where it listens.
pub struct Peer {
    /// What it says.
    pub input: Input,
    /// Where it listens.
    pub output: Output,
}

/// Stands between an editor and an agent until one of them ends. The agent then sees the end of its input; whoever
/// started it waits for it.
///
/// Must run inside a tokio runtime; calls occupy its blocking threads.
pub async fn between(
    editor: Peer,
    agent: Peer,
    who: Who,
    options: Options,
    ground: Arc<dyn Ground>,
) -> io::Result<Ended> {
    let (to_editor, to_agent) = (Port::new(editor.output), Port::new(agent.output));
    let proxy = Proxy::new(who, options, ground, to_editor, to_agent);
    proxy.between(editor.input, agent.input).await
}

/// Stands in a chain that a conductor runs, until the conductor ends.
///
/// Must run inside a tokio runtime; calls occupy its blocking threads.
pub async fn in_chain(
    conductor: Peer,
    who: Who,
    options: Options,
    ground: Arc<dyn Ground>,
) -> io::Result<Ended> {
    let wrap = Arc::new(Wrap::default());
    let editor = Port::new(conductor.output);
    let agent = editor.behind(wrap.clone());
    let proxy = Proxy::new(who, options, ground, editor, agent);
    proxy.in_chain(conductor.input, wrap).await
}
