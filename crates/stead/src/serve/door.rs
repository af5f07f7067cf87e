//! Who is let in: whoever brings a token of the workspace, or the token of this run, or comes through a socket of this
//! user.

use std::sync::Arc;

use engine::{Caller, Engine, Failure, Kind, Principal, Version};
use faces::{
    dialect::Place,
    http::{self, Admission, Admitted, Credential, NotAdmitted},
};
use local::{LocalWorkspace, TOKEN_PREFIX};

use super::session_of;
use crate::{show::Problem, wire::Opened};

/// The name of the token that is made at the start and ends with the process.
pub(super) const THIS_RUN: &str = "run";
/// The name of who comes through a socket without a token.
pub(super) const THIS_USER: &str = "socket";
/// Bytes of the token of this run.
const RUN_BYTES: usize = 32;
/// The one workspace.
const ONLY: &str = "one";

/// The door of one workspace.
pub(crate) struct Door {
    local: Arc<LocalWorkspace>,
    engine: Engine,
    place: Place,
    /// Who comes with nothing but the token of this run, or through a socket.
    caller: Caller,
    /// The token of this run, and its hash.
    run: (String, Version),
}

impl Door {
    pub(crate) fn new(opened: &Opened, place: Place, caller: Caller) -> Result<Self, Problem> {
        let run = run_token()?;
        Ok(Self {
            local: opened.local.clone(),
            engine: opened.engine.clone(),
            place,
            caller,
            run: (run.clone(), Version::of(run.as_bytes())),
        })
    }

    /// The token of this run.
    pub(crate) fn token(&self) -> &str {
        &self.run.0
    }

    fn admission(&self, key: &str, caller: Caller) -> Admission {
        let (place, opening) = (self.place.clone(), http::opened(self.engine.clone()));
        let to = Admitted::Workspace { id: ONLY.to_owned(), place, opening };
        Admission { key: key.to_owned(), caller, to }
    }
}

/// A token that ends with the process.
pub(super) fn run_token() -> Result<String, Problem> {
    let random: [u8; RUN_BYTES] =
        disk::random_bytes().map_err(|error| Failure::new(Kind::Io, format!("no random bytes: {error}")))?;
    let secret: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{TOKEN_PREFIX}{THIS_RUN}_{secret}"))
}

impl http::Door for Door {
    fn admit(&self, credential: Credential<'_>) -> Result<Admission, NotAdmitted> {
        let shown = match credential {
            Credential::SameUser => {
                return Ok(self.admission(THIS_USER, session_of(&self.caller, THIS_USER)));
            }
            Credential::Token(shown) => shown,
        };
        // Hashes are compared: how long that takes says nothing about the token.
        if Version::of(shown.as_bytes()) == self.run.1 {
            return Ok(self.admission(THIS_RUN, session_of(&self.caller, THIS_RUN)));
        }
        let unavailable = |failure: Failure| NotAdmitted::Unavailable(failure.detail);
        let token = self.local.admit_token(shown).map_err(unavailable)?.ok_or(NotAdmitted::Unknown)?;
        let principal = Principal::parse(&token.principal).map_err(unavailable)?;
        let mut caller = session_of(&self.caller, &token.id);
        caller.principal = principal;
        caller.grants = token.grants().map_err(unavailable)?;
        Ok(self.admission(&token.id, caller))
    }

    fn still_admits(&self, key: &str) -> bool {
        match key {
            THIS_RUN | THIS_USER => true,
            id => {
                let now_ms = self.engine.workspace().now_ms();
                self.local.token(id).is_ok_and(|token| token.is_some_and(|token| !token.is_over(now_ms)))
            }
        }
    }
}
