//! Which way every message goes. Owns what is known about the two peers: what was offered, what was announced, which
//! sessions there are, which answers matter.
//!
//! Promises that whatever it has no business with goes on as it came, byte for byte, and that no file method of the agent
//! ever reaches the editor by itself. Reads and writes nothing.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;
use tokio::sync::watch;

use super::{
    Opened, Options, Who,
    message::{self, Id, Kind, Message, Refused},
    own::{Mine, Own, Said},
    reviewing::{self, OurCall, OurMethod},
    scan,
    session::{Served, Session},
    setup::{self, FileOffer, Offer, Places, Server, Settled, VERSION_WITHOUT_FILES},
    sorry::Sorry,
};
use crate::{
    dialect::acp::{PROMPT, READ, WRITE},
    limits::{REQUESTS_PENDING_MAX, SESSION_CHARS_MAX, SESSIONS_MAX},
};

/// Says that nobody wants the answer to a request any more.
pub(super) const CANCEL_REQUEST: &str = "$/cancel_request";

/// What becomes of a line.
pub(super) enum Decision {
    /// It goes on as it came.
    AsIs,
    /// This goes on in its place.
    Changed(Vec<u8>),
    /// This goes back to whoever sent it.
    Back(Vec<u8>),
    /// It goes on as it came, and begins a turn of the session with this id.
    Prompt(String),
    /// It goes on as it came, and gives this session its name.
    Named(Arc<Session>),
    /// It was for us.
    Kept,
    /// A session is set up: its roots are opened first.
    Setup(Setup),
    /// A file method: it is served here.
    Files(FileCall),
    /// A method of our own: it is served here.
    Ours(OurCall),
}

/// A session that is set up.
#[derive(Debug, PartialEq)]
pub(super) struct Setup {
    pub(super) id: Id,
    takes_up: TakesUp,
    pub(super) places: Places,
}

/// A session that was set up.
pub(super) struct Admitted {
    /// The line for the agent.
    pub(super) line: Vec<u8>,
    /// The session, where it has its name already.
    pub(super) named: Option<Arc<Session>>,
}

/// Which session a setup is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TakesUp {
    /// A new one, whose id the agent chooses.
    New,
    /// One that has its id already.
    Known,
}

/// One call of a file method.
#[derive(Debug, PartialEq)]
pub(super) struct FileCall {
    pub(super) id: Id,
    pub(super) method: Method,
    /// Its params, as they came.
    pub(super) params: Vec<u8>,
}

/// The file methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Read,
    Write,
}

impl Method {
    fn named(name: &str) -> Option<Self> {
        match name {
            READ => Some(Method::Read),
            WRITE => Some(Method::Write),
            _ => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Method::Read => READ,
            Method::Write => WRITE,
        }
    }
}

/// A request of the editor's whose answer matters.
enum Awaited {
    Initialize,
    /// A session is begun; the agent gives it its id.
    New(Box<Session>),
    /// A session that has an id is taken up; what that meant until now.
    Known {
        id: String,
        before: Option<Arc<Session>>,
    },
    /// A session ends.
    Close(String),
}

#[derive(Default)]
struct State {
    editor: FileOffer,
    told: FileOffer,
    /// Whether the editor wants to hear of what was refused.
    listens: Offer,
    settled: Option<Settled>,
    awaited: HashMap<Id, Awaited>,
    sessions: HashMap<String, Arc<Session>>,
    /// File calls under way, by the agent's ids.
    running: HashMap<Id, watch::Sender<bool>>,
}

/// The one that decides.
pub(super) struct Router {
    who: Who,
    options: Options,
    state: Mutex<State>,
    pub(super) own: Own,
}

impl Router {
    pub(super) fn new(who: Who, options: Options) -> Self {
        Self { who, options, state: Mutex::default(), own: Own::new() }
    }

    /// A line that the editor sent.
    pub(super) fn of_editor(&self, line: &[u8]) -> Decision {
        let message = match Message::read(line) {
            Ok(message) => message,
            Err(refused) => return back(&refused),
        };
        match &message.kind {
            Kind::Answer { id } => match self.own.settle(id, || said(line, &message)) {
                Mine::Yes => Decision::Kept,
                Mine::No => Decision::AsIs,
            },
            Kind::Request { id, method } => match method.as_str() {
                "initialize" => self.initialize(id, line),
                "session/new" | "session/load" | "session/resume" | "session/fork" => {
                    let takes_up = match method.as_str() {
                        "session/load" | "session/resume" => TakesUp::Known,
                        _ => TakesUp::New,
                    };
                    match setup::places(message.params(line)) {
                        Ok(places) => Decision::Setup(Setup { id: id.clone(), takes_up, places }),
                        Err(sorry) => Decision::Back(message::refusal(Some(id), &sorry)),
                    }
                }
                "session/close" | "session/delete" => {
                    let mut state = self.state();
                    if let Some(session) = session_in(message.params(line))
                        && state.awaited.len() < REQUESTS_PENDING_MAX
                    {
                        state.awaited.insert(id.clone(), Awaited::Close(session));
                    }
                    Decision::AsIs
                }
                PROMPT => session_in(message.params(line)).map_or(Decision::AsIs, Decision::Prompt),
                other => OurMethod::named(other).map_or(Decision::AsIs, |method| {
                    let params = message.params(line).to_vec();
                    Decision::Ours(OurCall { id: id.clone(), method, params })
                }),
            },
            Kind::Notification { method } => {
                if method == "session/cancel"
                    && let Some(session) = session_in(message.params(line)).and_then(|id| self.session(&id))
                {
                    session.cancel();
                }
                Decision::AsIs
            }
        }
    }

    /// A line that the agent sent.
    pub(super) fn of_agent(&self, line: &[u8]) -> Decision {
        let message = match Message::read(line) {
            Ok(message) => message,
            Err(refused) => return back(&refused),
        };
        match &message.kind {
            Kind::Answer { id } => self.follow(id, line, &message),
            Kind::Request { id, method } => match Method::named(method) {
                None => Decision::AsIs,
                Some(method) if self.serves(method) == Offer::No => {
                    Decision::Back(message::refusal(Some(id), &Sorry::method(method.name())))
                }
                Some(method) => {
                    let params = message.params(line).to_vec();
                    Decision::Files(FileCall { id: id.clone(), method, params })
                }
            },
            // Without an id nobody would hear what became of it.
            Kind::Notification { method } if Method::named(method).is_some() => Decision::Kept,
            Kind::Notification { method } if method == CANCEL_REQUEST => {
                let place = scan::find(message.params(line), "requestId");
                let id = place.and_then(|place| serde_json::from_slice(&message.params(line)[place]).ok());
                match id.is_some_and(|id: Value| self.cancel(&Id::of(&id)) == Mine::Yes) {
                    true => Decision::Kept,
                    false => Decision::AsIs,
                }
            }
            Kind::Notification { .. } => Decision::AsIs,
        }
    }

    /// Whether an answer is to a request of ours; then whoever waits for it has it.
    pub(super) fn answered(&self, line: &[u8]) -> Mine {
        match self.of_editor(line) {
            Decision::Kept => Mine::Yes,
            Decision::AsIs
            | Decision::Changed(_)
            | Decision::Back(_)
            | Decision::Prompt(_)
            | Decision::Named(_)
            | Decision::Setup(_)
            | Decision::Ours(_)
            | Decision::Files(_) => Mine::No,
        }
    }

    /// Admits a session whose roots are open: the line for the agent.
    pub(super) fn admit(
        &self,
        setup: &Setup,
        opened: Vec<Opened>,
        server: Option<&Server>,
        line: &[u8],
    ) -> Result<Admitted, Sorry> {
        let mut state = self.state();
        let settled = state.settled.unwrap_or(Settled { version: 1, programs: Offer::Yes });
        let (line, given) = match server.filter(|_| settled.programs == Offer::Yes) {
            Some(server) => setup::with_server(line, server, settled)
                .map_err(|scan::Misshapen| Sorry::params("the parameters cannot be read"))?,
            None => (line.to_vec(), Offer::No),
        };
        let ticket = server.filter(|_| given == Offer::Yes).and_then(|server| server.ticket.clone());
        let served = ticket.zip(setup.places.roots.first().cloned());
        let session = Session::new(&self.who, opened)
            .served(served.map(|(ticket, directory)| Served { directory, ticket }));
        if state.awaited.len() >= REQUESTS_PENDING_MAX || state.sessions.len() >= SESSIONS_MAX {
            return Err(Sorry::failed("too_many: there are too many sessions; close one first"));
        }
        let mut named = None;
        let awaited = match &setup.places.session {
            // What is forked has the id of another.
            Some(id) if setup.takes_up == TakesUp::Known => {
                // An agent may ask for files while it takes up a session that it knows.
                let session = Arc::new(session.named(id.clone(), shown(id)));
                named = Some(session.clone());
                Awaited::Known { id: id.clone(), before: state.sessions.insert(id.clone(), session) }
            }
            Some(_) | None => Awaited::New(Box::new(session)),
        };
        state.awaited.insert(setup.id.clone(), awaited);
        Ok(Admitted { line, named })
    }

    /// The session of this id.
    pub(super) fn session(&self, id: &str) -> Option<Arc<Session>> {
        self.state().sessions.get(id).cloned()
    }

    /// What the editor itself offers.
    pub(super) fn editor(&self) -> FileOffer {
        self.state().editor
    }

    /// Whether the editor wants to hear of what was refused.
    pub(super) fn listens(&self) -> Offer {
        self.state().listens
    }

    /// Makes a file call known under its id; it can be cancelled as long as what is returned lives.
    pub(super) fn running(&self, id: &Id) -> watch::Receiver<bool> {
        let (stop, stopped) = watch::channel(false);
        self.state().running.insert(id.clone(), stop);
        stopped
    }

    /// A file call is answered.
    pub(super) fn done(&self, id: &Id) {
        self.state().running.remove(id);
    }

    /// Ends every file call that waits for somebody.
    pub(super) fn close(&self) {
        self.own.close();
        for stop in self.state().running.values() {
            stop.send_replace(true);
        }
    }

    fn cancel(&self, id: &Id) -> Mine {
        match self.state().running.get(id) {
            Some(stop) => {
                stop.send_replace(true);
                Mine::Yes
            }
            None => Mine::No,
        }
    }

    fn initialize(&self, id: &Id, line: &[u8]) -> Decision {
        let Ok(opening) = setup::initialize(line, self.options.offer) else {
            return Decision::Back(message::refusal(
                Some(id),
                &Sorry::params("the parameters are no object"),
            ));
        };
        let mut state = self.state();
        (state.editor, state.told, state.listens) = (opening.editor, opening.told, opening.listens);
        state.awaited.insert(id.clone(), Awaited::Initialize);
        Decision::Changed(opening.line)
    }

    /// Whether a file method is served: it was announced, and the version that is spoken has it.
    fn serves(&self, method: Method) -> Offer {
        let state = self.state();
        let has_files = state.settled.is_none_or(|settled| settled.version < VERSION_WITHOUT_FILES);
        let offer = match method {
            Method::Read => state.told.reads,
            Method::Write => state.told.writes,
        };
        if has_files { offer } else { Offer::No }
    }

    /// Follows an answer of the agent's that matters.
    fn follow(&self, id: &Id, line: &[u8], message: &Message) -> Decision {
        let mut state = self.state();
        let Some(awaited) = state.awaited.remove(id) else { return Decision::AsIs };
        let result = message.result.clone().map(|place| &line[place]);
        match (awaited, result) {
            (Awaited::Initialize, Some(result)) => {
                state.settled = Some(setup::settled(result));
                return reviewing::announced(line).map_or(Decision::AsIs, Decision::Changed);
            }
            (Awaited::New(session), Some(result)) => {
                if let Some(id) = session_in(result) {
                    let named = Arc::new(session.named(id.clone(), shown(&id)));
                    state.sessions.insert(id, named.clone());
                    return Decision::Named(named);
                }
            }
            // It did not come about, so what was before is still so.
            (Awaited::Known { id, before }, None) => match before {
                Some(before) => drop(state.sessions.insert(id, before)),
                None => drop(state.sessions.remove(&id)),
            },
            (Awaited::Close(id), Some(_)) => drop(state.sessions.remove(&id)),
            (Awaited::Known { .. }, Some(_)) => {}
            (Awaited::Initialize | Awaited::New(_) | Awaited::Close(_), None) => {}
        }
        Decision::AsIs
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The session's id as the journal shows it.
fn shown(id: &str) -> String {
    id.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(SESSION_CHARS_MAX).collect()
}

fn session_in(params: &[u8]) -> Option<String> {
    let place = scan::find(params, "sessionId")?;
    serde_json::from_slice(&params[place]).ok()
}

fn back(refused: &Refused) -> Decision {
    Decision::Back(message::refusal(refused.id.as_ref(), &refused.sorry))
}

/// What an answer says.
fn said(line: &[u8], message: &Message) -> Said {
    let value =
        |place: std::ops::Range<usize>| serde_json::from_slice::<Value>(&line[place]).unwrap_or_default();
    match (&message.result, &message.error) {
        (_, Some(error)) => Err(value(error.clone())),
        (result, None) => Ok(result.clone().map(value).unwrap_or_default()),
    }
}
