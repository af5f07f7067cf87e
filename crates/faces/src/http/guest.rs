//! One client as the server knows it: who it is, what it may ask in, and how much of it runs.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use axum::{
    body::Body,
    extract::FromRequestParts,
    http::{HeaderMap, Response, StatusCode, request::Parts},
};
use engine::{Answer, Caller, Engine, Failure, Presence};
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    allowance::Allowance,
    guard::Turned,
    hall::{Hall, Settings},
    limits::REQUESTS_PER_CLIENT_MAX,
    mcp::{self, Served},
    problem,
};
use crate::{
    dialect::{self, DialectError, Dialects, Place},
    limits::SESSION_CHARS_MAX,
    rpc::Rpc,
    run::{Asked, Broken, Company, Runner, Share},
};

/// The header that names the session of a call.
const SESSION_HEADER: &str = "stead-session";
/// The header that carries the idempotency key.
pub(crate) const KEY_HEADER: &str = "idempotency-key";

/// One client.
pub(super) struct Guest {
    /// How the door calls it.
    pub(super) key: String,
    /// Where it is.
    pub(super) workspace: String,
    /// Who its calls are made for.
    pub(super) caller: Caller,
    pub(super) runner: Arc<Runner>,
    /// Made when it is first asked for, like its MCP servers: a client mostly speaks one of them.
    rpc: OnceLock<Arc<Rpc>>,
    native: Arc<Dialects>,
    mcp: Mutex<HashMap<String, Served>>,
    place: Place,
    pub(super) allowance: Arc<Allowance>,
}

/// A client on its way in.
pub(super) struct Entrance {
    pub(super) key: String,
    pub(super) workspace: String,
    pub(super) place: Place,
    pub(super) engine: Engine,
    pub(super) caller: Caller,
    pub(super) share: Share,
    pub(super) allowance: Arc<Allowance>,
}

/// A client with a place for the request that it makes, until this is dropped.
pub(super) struct Placed {
    pub(super) guest: Arc<Guest>,
    pub(super) place: OwnedSemaphorePermit,
}

impl<S: Sync> FromRequestParts<S> for Placed {
    type Rejection = Response<Body>;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        let nobody = Turned::new(StatusCode::UNAUTHORIZED, "nobody was admitted");
        let guest = parts.extensions.get::<Arc<Guest>>().cloned().ok_or_else(|| problem::turned(nobody))?;
        let place = guest.request().map_err(problem::turned)?;
        Ok(Self { guest, place })
    }
}

/// Whether a call's answer brings the bytes themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Raw {
    Bytes,
    No,
}

/// What the headers of a request say about its call.
#[derive(Debug, Default)]
pub(super) struct Said {
    session: Option<String>,
    key: Option<String>,
}

impl Said {
    /// Reads the headers. A key that cannot be read is passed on as an empty one, which the engine refuses: ignoring it
    /// could make a change twice.
    pub(super) fn read(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default().to_owned());
        let session = text(SESSION_HEADER).map(|session| session.chars().take(SESSION_CHARS_MAX).collect());
        Self { session: session.filter(|session: &String| !session.is_empty()), key: text(KEY_HEADER) }
    }

    /// The session that was named, and the key.
    pub(super) fn parts(self) -> (Option<String>, Option<String>) {
        (self.session, self.key)
    }

    /// Who asks, in the session that was named.
    pub(super) fn caller(&self, caller: &Caller) -> Caller {
        let mut caller = caller.clone();
        if let Some(session) = &self.session {
            caller.session.clone_from(session);
        }
        caller
    }
}

fn choose(names: &[String], place: &Place) -> Result<Dialects, DialectError> {
    Dialects::choose(names, &[], place)
}

impl Guest {
    pub(super) fn new(entrance: Entrance, native: Arc<Dialects>) -> Self {
        let Entrance { key, workspace, place, engine, mut caller, share, allowance } = entrance;
        caller = caller.beginning(engine.workspace());
        // Requests come one by one; who stays says so.
        caller.presence = Presence::Call;
        let runner = Arc::new(Runner::sharing(engine, allowance.slots.clone()).within(share));
        Self {
            key,
            workspace,
            caller,
            runner,
            rpc: OnceLock::new(),
            native,
            mcp: Mutex::default(),
            place,
            allowance,
        }
    }

    /// The client's JSON-RPC.
    pub(super) fn rpc(&self, settings: &Settings) -> Result<Arc<Rpc>, Turned> {
        if let Some(rpc) = self.rpc.get() {
            return Ok(rpc.clone());
        }
        let dialects = choose(&settings.rpc_dialects, &self.place).map_err(|_| {
            Turned::new(StatusCode::INTERNAL_SERVER_ERROR, "the server cannot serve what it was set to")
        })?;
        let made = Rpc::of(self.runner.clone(), self.caller.clone(), dialects);
        Ok(self.rpc.get_or_init(|| made).clone())
    }

    /// Whether nothing of it runs, nor of its principal by other tokens.
    pub(super) fn is_idle(&self) -> bool {
        self.allowance.is_idle()
    }

    /// A place for one more request.
    fn request(&self) -> Result<OwnedSemaphorePermit, Turned> {
        let busy = Turned::new(StatusCode::TOO_MANY_REQUESTS, "too many requests of this client run");
        self.allowance.requests.clone().try_acquire_owned().map_err(|_| busy)
    }

    /// A place for one more stream.
    pub(super) fn stream(&self) -> Result<OwnedSemaphorePermit, Turned> {
        let busy = Turned::new(StatusCode::TOO_MANY_REQUESTS, "too many streams of this client are open");
        self.allowance.streams.clone().try_acquire_owned().map_err(|_| busy)
    }

    /// The client's MCP server of these dialects, made when it is first asked for.
    pub(super) fn mcp(&self, dialects: &[String], hall: &Hall) -> Result<Served, DialectError> {
        let name = dialects.join(",");
        let mut served = self.mcp.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = served.get(&name) {
            return Ok(known.clone());
        }
        let chosen = choose(dialects, &self.place)?;
        let made = mcp::serve(&self.runner, &self.caller, chosen, hall);
        served.insert(name, made.clone());
        Ok(made)
    }

    /// Makes one native call to its end; it is cancelled when nobody waits for it any more.
    pub(super) async fn call(
        &self,
        operation: &str,
        arguments: Map<String, Value>,
        said: &Said,
        raw: Raw,
    ) -> Result<Result<Answer, Failure>, Broken> {
        let mut request = match self.native.named(operation) {
            Some((dialect, tool)) => dialect.ask(tool, &arguments),
            None => dialect::unknown(operation, "operation", "GET /v1/openapi.json tells which there are"),
        };
        match raw {
            Raw::Bytes => request.terms.evidence = engine::Evidence::Bytes,
            Raw::No => {}
        }
        let asked = Asked {
            caller: said.caller(&self.caller),
            operation: request.operation,
            arguments: request.arguments,
            terms: request.terms,
            key: said.key.clone(),
            hold_ms: 0,
        };
        let pace = self.runner.pace(&asked);
        // The place that this request itself takes is one.
        let alone = self.allowance.requests.available_permits() + 1 >= REQUESTS_PER_CLIENT_MAX;
        let company = if alone { Company::Alone } else { Company::Others };
        self.runner.run(asked, pace, company, None, std::future::pending()).await
    }
}
