//! Authentication for one workspace: by a token of the workspace, by the server's temporary token, or by connecting to the
//! Unix socket as the same user.

use std::sync::Arc;

use stead_engine::{Caller, Engine, Error, ErrorKind, Principal, Version};
use stead_local::{LocalWorkspace, TOKEN_PREFIX};
use stead_protocols::{
    dialect::WorkspaceLocation,
    http::{self, AuthError, ClientIdentity, ClientScope, Credential},
};

use super::caller_in_session;
use crate::{open_workspace::CommandWorkspace, output::CommandError};

/// Client key of the temporary token, which is valid until the process ends.
pub(super) const RUN_TOKEN_KEY: &str = "run";
/// Client key of a same-user socket connection without a token.
pub(super) const SOCKET_USER_KEY: &str = "socket";
const RUN_TOKEN_BYTES: usize = 32;
/// Name of the workspace in the log and in client scopes.
const SINGLE_WORKSPACE_NAME: &str = "one";

pub(crate) struct WorkspaceAuthenticator {
    local: Arc<LocalWorkspace>,
    engine: Engine,
    location: WorkspaceLocation,
    /// The caller for the temporary token and the socket.
    caller: Caller,
    /// The temporary token and its hash.
    run_token: (String, Version),
}

impl WorkspaceAuthenticator {
    pub(crate) fn new(
        opened: &CommandWorkspace,
        location: WorkspaceLocation,
        caller: Caller,
    ) -> Result<Self, CommandError> {
        let run = generate_run_token()?;
        Ok(Self {
            local: opened.local.clone(),
            engine: opened.engine.clone(),
            location,
            caller,
            run_token: (run.clone(), Version::hash_bytes(run.as_bytes())),
        })
    }

    pub(crate) fn run_token(&self) -> &str {
        &self.run_token.0
    }

    fn identity_for(&self, key: &str, caller: Caller) -> ClientIdentity {
        let (location, opener) = (self.location.clone(), http::opener_for(self.engine.clone()));
        let scope = ClientScope::Workspace { id: SINGLE_WORKSPACE_NAME.to_owned(), location, opener };
        ClientIdentity { client_key: key.to_owned(), caller, scope }
    }
}

/// Generates the temporary token.
pub(super) fn generate_run_token() -> Result<String, CommandError> {
    let random: [u8; RUN_TOKEN_BYTES] = stead_disk::random_bytes()
        .map_err(|error| Error::new(ErrorKind::Io, format!("cannot read random bytes: {error}")))?;
    let secret: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{TOKEN_PREFIX}{RUN_TOKEN_KEY}_{secret}"))
}

impl http::Authenticator for WorkspaceAuthenticator {
    fn authenticate(&self, credential: Credential<'_>) -> Result<ClientIdentity, AuthError> {
        let presented = match credential {
            Credential::SameUser => {
                return Ok(self.identity_for(SOCKET_USER_KEY, caller_in_session(&self.caller, SOCKET_USER_KEY)));
            }
            Credential::Token(token) => token,
        };
        // Comparing hashes leaks nothing about the token through timing.
        if Version::hash_bytes(presented.as_bytes()) == self.run_token.1 {
            return Ok(self.identity_for(RUN_TOKEN_KEY, caller_in_session(&self.caller, RUN_TOKEN_KEY)));
        }
        let unavailable = |error: Error| AuthError::Unavailable(error.message);
        let token = self.local.authenticate_token(presented).map_err(unavailable)?.ok_or(AuthError::UnknownToken)?;
        let principal = Principal::parse(&token.principal).map_err(unavailable)?;
        let mut caller = caller_in_session(&self.caller, &token.id);
        caller.principal = principal;
        caller.grants = token.grants().map_err(unavailable)?;
        Ok(self.identity_for(&token.id, caller))
    }

    fn is_still_valid(&self, key: &str) -> bool {
        match key {
            RUN_TOKEN_KEY | SOCKET_USER_KEY => true,
            id => {
                let now_ms = self.engine.workspace().now_ms();
                self.local.load_token(id).is_ok_and(|token| token.is_some_and(|token| !token.is_expired(now_ms)))
            }
        }
    }
}
