//! What all connections share: the door, the names, the settings, and the clients that are known.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use axum::http::StatusCode;
use tokio::sync::watch;

use super::{
    Credential, NotAdmitted, SharedDoor,
    bell::Bells,
    guard::{Names, Turned},
    guest::Guest,
    limits::CLIENTS_KEPT_MAX,
    log::Log,
    metrics::Metrics,
};
use crate::dialect::{DialectError, Dialects, Place};

/// What the operator chose.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the dialects know about where they are used.
    pub place: Place,
    /// The dialects of `/mcp`.
    pub mcp_dialects: Vec<String>,
    /// The dialects of `/rpc`.
    pub rpc_dialects: Vec<String>,
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
}

/// The state of one server.
pub struct Hall {
    door: SharedDoor,
    pub(super) names: Names,
    pub(super) settings: Settings,
    pub(super) keeping: Keeping,
    pub(super) metrics: Metrics,
    guests: Mutex<HashMap<String, Known>>,
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
            door,
            names,
            settings,
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

    /// Who brings this.
    pub(super) fn admit(&self, credential: Credential<'_>) -> Result<Arc<Guest>, Turned> {
        let admission = self.door.admit(credential).map_err(|reason| match reason {
            NotAdmitted::Unknown => {
                Turned::new(StatusCode::UNAUTHORIZED, "the token is not known here, or no longer")
            }
            NotAdmitted::Unavailable(_) => {
                Turned::new(StatusCode::SERVICE_UNAVAILABLE, "tokens cannot be checked now")
            }
        })?;
        let mut guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = guests.get_mut(&admission.key) {
            known.seen = Instant::now();
            return Ok(known.guest.clone());
        }
        if guests.len() >= CLIENTS_KEPT_MAX {
            forget_one(&mut guests);
        }
        let key = admission.key.clone();
        let guest = Guest::new(admission, &self.settings).map(Arc::new).map_err(|_| {
            Turned::new(StatusCode::INTERNAL_SERVER_ERROR, "the server cannot serve what it was set to")
        })?;
        guests.insert(key, Known { guest: guest.clone(), seen: Instant::now() });
        Ok(guest)
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

/// Whoever was silent longest is forgotten: it comes in again with its next request.
fn forget_one(guests: &mut HashMap<String, Known>) {
    let oldest = guests.iter().min_by_key(|(_, known)| known.seen).map(|(key, _)| key.clone());
    if let Some(key) = oldest {
        guests.remove(&key);
    }
}
