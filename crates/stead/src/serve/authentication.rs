//! Authenticates HTTP clients by a stored token, by the server's temporary token, or by a same-user Unix socket. On a
//! server for hosted workspaces, the token determines the workspace. Administrators manage hosted workspaces, but
//! cannot open hosted workspaces.

use std::sync::Arc;

use stead_engine::{Caller, Engine, Error, ErrorKind, Principal, Version};
use stead_local::{LocalWorkspace, TOKEN_PREFIX, TokenRecordWithScope, TokenScope, WorkspaceRegistry};
use stead_protocols::{
    dialect::DialectWorkspaceRootPath,
    http::{self, AuthError, AuthenticatedClientIdentity, AuthorizationServers, Credential, UrlScheme},
};

use super::ServeFlags;
use crate::{
    open_workspace::{self, CallerProtocol, CommandLineWorkspace},
    output::{self, CommandError},
};

const RUN_TOKEN_KEY: &str = "run";
const SOCKET_USER_KEY: &str = "socket";
const RUN_TOKEN_BYTES: usize = 32;
const SINGLE_WORKSPACE_NAME: &str = "one";
const REGISTRY_ID: &str = "";

pub(super) struct WorkspaceAuthenticator {
    local: Arc<LocalWorkspace>,
    engine: Engine,
    location: DialectWorkspaceRootPath,
    caller: Caller,
    run_token: RunToken,
}

impl WorkspaceAuthenticator {
    pub(super) fn new(
        opened: &CommandLineWorkspace,
        location: DialectWorkspaceRootPath,
        caller: Caller,
    ) -> Result<Self, CommandError> {
        let run_token = RunToken::generate()?;
        Ok(Self { local: opened.local.clone(), engine: opened.engine.clone(), location, caller, run_token })
    }

    pub(super) fn run_token(&self) -> &str {
        &self.run_token.secret
    }

    fn identity_for(&self, key: &str, caller: Caller) -> AuthenticatedClientIdentity {
        let (location, opener) = (self.location.clone(), http::opener_for(self.engine.clone()));
        let (client_key, workspace_id) = (key.to_owned(), SINGLE_WORKSPACE_NAME.to_owned());
        AuthenticatedClientIdentity { client_key, caller, workspace_id, location, opener }
    }
}

impl http::Authenticator for WorkspaceAuthenticator {
    fn authenticate(&self, credential: Credential<'_>) -> Result<AuthenticatedClientIdentity, AuthError> {
        let presented = match credential {
            Credential::SameUser => {
                return Ok(self.identity_for(SOCKET_USER_KEY, caller_in_session(&self.caller, SOCKET_USER_KEY)));
            }
            Credential::Token(token) => token,
        };
        if self.run_token.matches(presented) {
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
        let now_ms = self.engine.workspace().now_ms();
        [RUN_TOKEN_KEY, SOCKET_USER_KEY].contains(&key)
            || self.local.load_token(key).is_ok_and(|token| token.is_some_and(|token| !token.is_expired(now_ms)))
    }
}

pub(super) struct WorkspaceRegistryAuthenticator {
    registry: Arc<WorkspaceRegistry>,
    engine: Engine,
    caller: Caller,
    run_token: RunToken,
}

impl WorkspaceRegistryAuthenticator {
    pub(super) fn new(registry: &Arc<WorkspaceRegistry>, flags: &ServeFlags) -> Result<Self, CommandError> {
        let mut caller = open_workspace::caller_from_flags(&flags.caller, CallerProtocol::Person)?;
        if !matches!(caller.principal, Principal::User(_)) {
            return Err(output::usage_error("an administrator must be a user: --principal user:NAME"));
        }
        caller.protocol = "http";
        let (registry, engine) = (registry.clone(), registry.administration_engine());
        Ok(Self { registry, engine, caller, run_token: RunToken::generate()? })
    }

    pub(super) fn run_token(&self) -> &str {
        &self.run_token.secret
    }

    /// The caller of the command that started the server administers without a stored token.
    fn owner_identity(&self, key: &str) -> AuthenticatedClientIdentity {
        self.admin_identity(key, caller_in_session(&self.caller, key))
    }

    fn admin_identity(&self, key: &str, caller: Caller) -> AuthenticatedClientIdentity {
        let location = DialectWorkspaceRootPath { root: self.registry.path().to_string_lossy().into_owned() };
        let (workspace_id, opener) = (REGISTRY_ID.to_owned(), http::opener_for(self.engine.clone()));
        AuthenticatedClientIdentity { client_key: key.to_owned(), caller, workspace_id, location, opener }
    }

    fn identity_of_token(&self, found: TokenRecordWithScope) -> Result<AuthenticatedClientIdentity, Error> {
        let grants = found.grants()?;
        let TokenRecordWithScope { token, scope } = found;
        let mut caller = Caller::new(Principal::parse(&token.principal)?, format!("http-{}", token.id), "http");
        caller.grants = grants;
        let id = match scope {
            TokenScope::Administration => return Ok(self.admin_identity(&token.id, caller)),
            TokenScope::Workspace(id) => id,
        };
        let location = DialectWorkspaceRootPath { root: self.registry.files_directory_of(&id) };
        let (registry, workspace_id) = (self.registry.clone(), id.clone());
        let opener: http::OpenWorkspaceFn = Arc::new(move || {
            registry.open_engine(&workspace_id).map_err(|error| match error {
                Error { kind: ErrorKind::Busy, .. } => AuthError::TooManyOpenWorkspaces,
                // The workspace was deleted while the client connected.
                Error { kind: ErrorKind::NotFound, .. } => AuthError::UnknownToken,
                error => AuthError::Unavailable(error.message),
            })
        });
        Ok(AuthenticatedClientIdentity { client_key: token.id, caller, workspace_id: id, location, opener })
    }
}

impl http::Authenticator for WorkspaceRegistryAuthenticator {
    fn authenticate(&self, credential: Credential<'_>) -> Result<AuthenticatedClientIdentity, AuthError> {
        let presented = match credential {
            Credential::SameUser => return Ok(self.owner_identity(SOCKET_USER_KEY)),
            Credential::Token(token) => token,
        };
        let unavailable = |error: Error| AuthError::Unavailable(error.message);
        // The temporary token and the stored tokens are both checked in every case, so that timing reveals nothing
        // about them.
        let is_run = self.run_token.matches(presented);
        let found = self.registry.authenticate(presented).map_err(unavailable)?;
        match (is_run, found) {
            (true, _) => Ok(self.owner_identity(RUN_TOKEN_KEY)),
            (false, Some(found)) => self.identity_of_token(found).map_err(unavailable),
            (false, None) => Err(AuthError::UnknownToken),
        }
    }

    fn is_still_valid(&self, key: &str) -> bool {
        let now_ms = self.registry.now_ms();
        let is_current =
            |found: Option<TokenRecordWithScope>| found.is_some_and(|found| !found.token.is_expired(now_ms));
        [RUN_TOKEN_KEY, SOCKET_USER_KEY].contains(&key) || self.registry.load_token(key).is_ok_and(is_current)
    }

    fn hosts_workspaces(&self) -> bool {
        true
    }
}

struct RunToken {
    secret: String,
    hash: Version,
}

impl RunToken {
    fn generate() -> Result<Self, CommandError> {
        let random: [u8; RUN_TOKEN_BYTES] = stead_disk::random_bytes()
            .map_err(|error| Error::new(ErrorKind::Io, format!("cannot read random bytes: {error}")))?;
        let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let secret = format!("{TOKEN_PREFIX}{RUN_TOKEN_KEY}_{digits}");
        Ok(Self { hash: Version::hash_bytes(secret.as_bytes()), secret })
    }

    /// Comparing hashes leaks nothing about the token through timing.
    fn matches(&self, presented: &str) -> bool {
        Version::hash_bytes(presented.as_bytes()) == self.hash
    }
}

fn caller_in_session(caller: &Caller, id: &str) -> Caller {
    Caller { session: format!("http-{id}"), ..caller.clone() }
}

pub(super) fn authorization_servers(flags: &ServeFlags) -> Result<Option<AuthorizationServers>, CommandError> {
    let servers = &flags.authorization_server;
    if let Some(bad) = servers.iter().find(|server| !is_allowed_url(server)) {
        return Err(CommandError::Usage(format!(
            "--authorization-server {bad}: the URL must start with https:// (or http://localhost) and have no spaces or quotes"
        )));
    }
    let is_private = flags.tls_cert.is_some() || flags.behind_proxy;
    let scheme = if is_private { UrlScheme::Https } else { UrlScheme::Http };
    Ok((!servers.is_empty()).then(|| AuthorizationServers { servers: servers.clone(), scheme }))
}

fn is_allowed_url(address: &str) -> bool {
    let near = ["http://localhost", "http://127.0.0.1", "http://[::1]"];
    let is_near = near
        .iter()
        .any(|near| address.strip_prefix(near).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/'])));
    let rest = address.strip_prefix("https://").unwrap_or_default();
    let is_private = !rest.is_empty() && !rest.starts_with('/');
    let is_plain = address.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\<>".contains(&byte));
    (is_near || is_private) && is_plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorization_url_must_be_https_or_loopback() {
        for (address, fits) in [
            ("https://login.example", true),
            ("https://login.example:8443/realms/one", true),
            ("http://localhost:9000", true),
            ("http://127.0.0.1/", true),
            ("http://localhost.evil.example", false),
            ("http://login.example", false),
            ("https://", false),
            ("https:///path", false),
            ("https://login.example/\" other=\"x", false),
            ("login.example", false),
            ("", false),
        ] {
            assert_eq!(is_allowed_url(address), fits, "{address}");
        }
    }
}
