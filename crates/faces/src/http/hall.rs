//! What all connections share: the door, the names, the settings, and the clients that are known.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use axum::http::StatusCode;
use tokio::sync::watch;

use super::{
    Admission, Admitted, Credential, NotAdmitted, Opening, SharedDoor, Steward,
    allowance::{Allowance, Allowances, Rate},
    bell::Bells,
    estate::{Errands, Overseer},
    guard::{Names, Turned},
    guest::{Entrance, Guest},
    limits::{CLIENTS_KEPT_MAX, FORGOTTEN_AT_ONCE},
    log::Log,
    metadata::Authorization,
    metrics::Metrics,
    strangers::{PerAddress, Strangers},
};
use crate::{
    dialect::{DialectError, Dialects, Place},
    mcp::Annexed,
    run::Share,
};

/// Where those are who administer: in no workspace.
const NO_WORKSPACE: &str = "";

/// What the operator chose.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the dialects know about where they are used.
    pub place: Place,
    /// The dialects of `/mcp`.
    pub mcp_dialects: Vec<String>,
    /// The dialects of `/rpc`.
    pub rpc_dialects: Vec<String>,
    /// Calls of one workspace that work at a time, over all its clients, and as many that wait.
    pub workspace_calls_max: usize,
}

/// One who was admitted.
pub(super) enum Client {
    /// To a workspace.
    Guest(Arc<Guest>),
    /// To the estate.
    Overseer(Arc<Overseer>),
}

impl Client {
    /// What its principal may take.
    pub(super) fn allowance(&self) -> Arc<Allowance> {
        match self {
            Client::Guest(guest) => guest.allowance.clone(),
            Client::Overseer(overseer) => overseer.allowance.clone(),
        }
    }
}

impl Settings {
    /// Whether the dialects that were chosen can be served.
    pub fn check(&self) -> Result<(), DialectError> {
        for names in [&self.mcp_dialects, &self.rpc_dialects] {
            Dialects::choose(names, &[], &self.place)?;
        }
        Ok(())
    }
}

/// How a server is kept, beyond what it serves.
#[derive(Clone, Default)]
pub struct Keeping {
    /// Who is told of every request.
    pub log: Option<Arc<dyn Log>>,
    /// What MCP clients are offered besides operations.
    pub annex: Option<Arc<Annexed>>,
    /// Who hands out tokens, where clients shall be told.
    pub authorization: Option<Authorization>,
    /// How often each principal may ask, if that is bounded.
    pub rate: Option<Rate>,
    /// Connections at a time; the usual number without one.
    pub connections: Option<usize>,
    /// How many of one address may have shown no token yet.
    pub per_address: PerAddress,
}

/// The state of one server.
pub struct Hall {
    door: SharedDoor,
    pub(super) names: Names,
    pub(super) settings: Settings,
    pub(super) keeping: Keeping,
    pub(super) metrics: Metrics,
    pub(super) strangers: Arc<Strangers>,
    guests: Mutex<HashMap<String, Known>>,
    /// What each workspace may take of the server.
    shares: Mutex<HashMap<String, Share>>,
    /// What each principal may.
    allowances: Allowances,
    steward: Option<Arc<dyn Steward>>,
    native: OnceLock<Arc<Dialects>>,
    pub(super) errands: Errands,
    pub(super) bells: Bells,
    /// Set when the server stops.
    pub(super) stopping: watch::Sender<bool>,
}

/// Tells when the server stops.
pub(super) struct Stopping(watch::Receiver<bool>);

impl Stopping {
    /// Resolves when it does.
    pub(super) async fn begun(&mut self) {
        // Nobody can set it any more: that is the end as well.
        drop(self.0.wait_for(|stopping| *stopping).await);
    }
}

struct Known {
    guest: Arc<Guest>,
    seen: Instant,
}

impl Hall {
    /// A server behind this door, reached by these names.
    pub fn new(door: SharedDoor, names: Names, settings: Settings) -> Arc<Self> {
        Self::kept(door, names, settings, Keeping::default())
    }

    /// The same, kept in this way.
    pub fn kept(door: SharedDoor, names: Names, settings: Settings, keeping: Keeping) -> Arc<Self> {
        let (stopping, _) = watch::channel(false);
        Arc::new(Self {
            steward: door.steward(),
            native: OnceLock::new(),
            shares: Mutex::default(),
            errands: Errands::default(),
            door,
            names,
            settings,
            allowances: Allowances::new(keeping.rate),
            strangers: Strangers::new(keeping.per_address),
            keeping,
            metrics: Metrics::default(),
            guests: Mutex::default(),
            bells: Bells::default(),
            stopping,
        })
    }

    /// Ends it: nothing new is taken in, what runs is finished, and streams are told.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// For whoever has to know when it ends.
    pub(super) fn stopping(&self) -> Stopping {
        Stopping(self.stopping.subscribe())
    }

    /// Whoever makes and ends workspaces, where there are many.
    pub(super) fn steward(&self) -> Option<&Arc<dyn Steward>> {
        self.steward.as_ref()
    }

    /// Who brings this. A client of a workspace that is not open waits until it is.
    pub(super) async fn admit(&self, credential: Credential<'_>) -> Result<Client, Turned> {
        let Admission { key, caller, to } = self.door.admit(credential).map_err(not_admitted)?;
        let principal = caller.principal.to_string();
        let (id, place, opening) = match to {
            Admitted::Workspace { id, place, opening } => (id, place, opening),
            Admitted::Estate => {
                let allowance = self.allowances.of(NO_WORKSPACE, &principal);
                return Ok(Client::Overseer(Arc::new(Overseer { caller, allowance })));
            }
        };
        if let Some(guest) = self.known(&key) {
            return Ok(Client::Guest(guest));
        }
        let engine = match open(opening.clone()).await {
            Err(NotAdmitted::Crowded) => {
                self.forget_idle(Duration::ZERO, FORGOTTEN_AT_ONCE);
                open(opening).await.map_err(not_admitted)?
            }
            other => other.map_err(not_admitted)?,
        };
        let (share, allowance) = (self.share(&id), self.allowances.of(&id, &principal));
        let entrance = Entrance { key: key.clone(), workspace: id, place, engine, caller, share, allowance };
        let guest = Arc::new(Guest::new(entrance, self.native()?));
        let mut guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        if guests.len() >= CLIENTS_KEPT_MAX {
            forget_one(&mut guests);
        }
        // Another request of the same client may have been quicker.
        let known = guests.entry(key).or_insert(Known { guest, seen: Instant::now() });
        Ok(Client::Guest(known.guest.clone()))
    }

    /// What the addresses of operations speak; the same for everybody.
    fn native(&self) -> Result<Arc<Dialects>, Turned> {
        if let Some(native) = self.native.get() {
            return Ok(native.clone());
        }
        let made = Dialects::native().map_err(|_| {
            Turned::new(StatusCode::INTERNAL_SERVER_ERROR, "the server cannot serve what it was set to")
        })?;
        Ok(self.native.get_or_init(|| Arc::new(made)).clone())
    }

    fn known(&self, key: &str) -> Option<Arc<Guest>> {
        let mut guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        let known = guests.get_mut(key)?;
        known.seen = Instant::now();
        Some(known.guest.clone())
    }

    fn share(&self, workspace: &str) -> Share {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Share::new(self.settings.workspace_calls_max);
        shares.entry(workspace.to_owned()).or_insert_with(fresh).clone()
    }

    /// Forgets clients that have nothing running and were silent for so long, the longest silent first, and lets go of
    /// their workspaces. They come in again with their next request; a session of MCP without a stream has to begin anew.
    pub fn forget_idle(&self, silent: Duration, most: usize) -> usize {
        let mut guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let mut idle: Vec<(Instant, String)> = guests
            .iter()
            .filter(|(_, known)| now - known.seen >= silent && Arc::strong_count(&known.guest) == 1)
            .filter(|(_, known)| known.guest.is_idle())
            .map(|(key, known)| (known.seen, key.clone()))
            .collect();
        idle.sort();
        idle.truncate(most);
        let forgotten: Vec<Known> = idle.iter().filter_map(|(_, key)| guests.remove(key)).collect();
        drop(guests);
        let count = forgotten.len();
        drop(forgotten);
        self.shares.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, share| share.is_used());
        count
    }

    /// Whether a client would still be admitted.
    pub(super) fn still_admits(&self, guest: &Guest) -> bool {
        self.door.still_admits(&guest.key)
    }

    /// Clients that are known.
    pub(super) fn guests(&self) -> usize {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Opens a workspace on a thread of its own.
async fn open(opening: Opening) -> Result<engine::Engine, NotAdmitted> {
    let off = |_| NotAdmitted::Unavailable("the opening broke off".to_owned());
    tokio::task::spawn_blocking(move || opening()).await.map_err(off)?
}

fn not_admitted(reason: NotAdmitted) -> Turned {
    match reason {
        NotAdmitted::Unknown => {
            Turned::new(StatusCode::UNAUTHORIZED, "the token is not known here, or no longer")
        }
        NotAdmitted::Unavailable(_) => {
            Turned::new(StatusCode::SERVICE_UNAVAILABLE, "tokens cannot be checked now")
        }
        NotAdmitted::Crowded => {
            Turned::new(StatusCode::SERVICE_UNAVAILABLE, "as many workspaces are open as may be")
        }
    }
}

/// Whoever was silent longest is forgotten: it comes in again with its next request.
fn forget_one(guests: &mut HashMap<String, Known>) {
    let oldest = guests.iter().min_by_key(|(_, known)| known.seen).map(|(key, _)| key.clone());
    if let Some(key) = oldest {
        guests.remove(&key);
    }
}
