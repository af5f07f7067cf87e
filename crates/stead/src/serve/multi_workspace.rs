//! `stead serve --workspaces`: serves many workspaces. The token of a client selects its workspace, or makes it an
//! administrator, who manages workspaces and opens none.

use std::{path::Path, sync::Arc, time::Duration};

use stead_engine::{Caller, Error, ErrorKind, Principal, Version};
use stead_local::{LandlockMode, ScopedToken, TokenScope, WorkspaceRegistry};
use stead_protocols::{
    dialect::WorkspaceLocation,
    http::{self, AuthError, ClientIdentity, ClientScope, Credential, ServerState, WorkspaceAdmin},
};

use super::{
    BoundListener, CALL_THREADS, ServeFlags,
    authenticator::{RUN_TOKEN_KEY, SOCKET_USER_KEY, generate_run_token},
    banner, caller_in_session, http_config, serve_with,
};
use crate::{
    cli::WorkspaceFlags,
    open_workspace::{self, CallerKind},
    output::{self, CommandError, CommandResult},
    startup, time,
    workspace_admin::{self, LocalWorkspaceAdmin},
};

/// Concurrent calls per workspace: a part of all, so that one workspace cannot block the others.
const CALLS_PER_WORKSPACE_MAX: usize = CALL_THREADS / 8;
/// How often idle clients and workspaces are closed.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(15);

pub(super) fn run(
    flags: &WorkspaceFlags,
    serve_flags: &ServeFlags,
    directory: &Path,
    bound: BoundListener,
) -> CommandResult {
    startup::print_warnings(flags);
    let idle = time::parse_duration(&serve_flags.idle_close)
        .and_then(|idle_ms| u64::try_from(idle_ms).ok())
        .map(Duration::from_millis)
        .ok_or_else(|| output::usage_error("--idle-close: invalid duration; use a form such as 90s, 30m, 2h or 7d"))?;
    if let BoundListener::Tls(_, _, identity) = &bound {
        identity.refuse_key_inside(directory)?;
    }
    stead_disk::raise_open_file_limit();
    let mut options = workspace_admin::registry_options(flags, directory);
    (options.landlock, options.idle_timeout) = (LandlockMode::Restrict, idle);
    options.readable_paths = bound.readable_paths();
    options.open_workspaces_max = serve_flags.open_max.max(1);
    options.approval_mode = startup::approval_mode(serve_flags.approval.approve);
    let registry = WorkspaceRegistry::open(options)?;
    let authenticator = Arc::new(RegistryAuthenticator::new(&registry, serve_flags)?);
    let path = registry.path().to_string_lossy().into_owned();
    let settings = http_config(serve_flags, path.clone(), CALLS_PER_WORKSPACE_MAX)?;
    let token = authenticator.run_token.0.clone();
    let print_banner =
        |bound: &BoundListener| banner::print_registry_banner(bound, serve_flags, &path, flags.durability, &token);
    let upkeep_registry = registry.clone();
    let served = serve_with(authenticator, settings, serve_flags, bound, print_banner, |state| {
        run_upkeep(state, upkeep_registry, idle)
    });
    registry.close_all();
    served
}

/// Periodically evicts idle clients, closes idle workspaces, and expires and reconciles the registry.
async fn run_upkeep(state: Arc<ServerState>, registry: Arc<WorkspaceRegistry>, idle: Duration) {
    loop {
        tokio::time::sleep(UPKEEP_INTERVAL.min(idle)).await;
        state.evict_idle_clients(idle, usize::MAX);
        let registry = registry.clone();
        let outcome = tokio::task::spawn_blocking(move || {
            registry.close_idle_workspaces();
            registry.expire_and_reconcile()
        });
        if let Ok(Err(error)) = outcome.await {
            output::print_note(&format!("maintenance of the workspaces failed: {}", error.message));
        }
    }
}

struct RegistryAuthenticator {
    registry: Arc<WorkspaceRegistry>,
    workspace_admin: Arc<LocalWorkspaceAdmin>,
    /// The administrator for the temporary token and the socket.
    caller: Caller,
    run_token: (String, Version),
}

impl RegistryAuthenticator {
    fn new(registry: &Arc<WorkspaceRegistry>, flags: &ServeFlags) -> Result<Self, CommandError> {
        let mut caller = open_workspace::caller_from_flags(&flags.caller, CallerKind::Person)?;
        match caller.principal {
            Principal::User(_) => {}
            Principal::Agent(_) | Principal::System | Principal::External => {
                return Err(output::usage_error("an administrator must be a user: --principal user:NAME"));
            }
        }
        caller.protocol = "http";
        let run = generate_run_token()?;
        let workspace_admin = Arc::new(LocalWorkspaceAdmin(registry.clone()));
        Ok(Self {
            registry: registry.clone(),
            workspace_admin,
            caller,
            run_token: (run.clone(), Version::hash_bytes(run.as_bytes())),
        })
    }

    fn admin_identity(&self, key: &str, principal: Principal) -> ClientIdentity {
        let caller = Caller { principal, ..caller_in_session(&self.caller, key) };
        ClientIdentity { client_key: key.to_owned(), caller, scope: ClientScope::Administration }
    }

    /// The identity of a token. The workspace is opened later, by the returned opener.
    fn identity_of_token(&self, found: ScopedToken) -> Result<ClientIdentity, Error> {
        let ScopedToken { token, scope } = found;
        let principal = Principal::parse(&token.principal)?;
        let id = match scope {
            TokenScope::Administration => return Ok(self.admin_identity(&token.id, principal)),
            TokenScope::Workspace(id) => id,
        };
        let mut caller = Caller::new(principal, format!("http-{}", token.id), "http");
        caller.grants = token.grants()?;
        let location = WorkspaceLocation { root: self.registry.files_directory_of(&id) };
        let (registry, workspace_id) = (self.registry.clone(), id.clone());
        let opener: http::WorkspaceOpener = Arc::new(move || {
            registry.open_engine(&workspace_id).map_err(|error| match error {
                Error { kind: ErrorKind::Busy, .. } => AuthError::TooManyOpenWorkspaces,
                // The workspace was deleted while the client connected.
                Error { kind: ErrorKind::NotFound, .. } => AuthError::UnknownToken,
                error => AuthError::Unavailable(error.message),
            })
        });
        Ok(ClientIdentity { client_key: token.id, caller, scope: ClientScope::Workspace { id, location, opener } })
    }
}

impl http::Authenticator for RegistryAuthenticator {
    fn authenticate(&self, credential: Credential<'_>) -> Result<ClientIdentity, AuthError> {
        let presented = match credential {
            Credential::SameUser => {
                return Ok(self.admin_identity(SOCKET_USER_KEY, self.caller.principal.clone()));
            }
            Credential::Token(token) => token,
        };
        let unavailable = |error: Error| AuthError::Unavailable(error.message);
        // Both are always checked, so that timing reveals nothing about either.
        let is_run = Version::hash_bytes(presented.as_bytes()) == self.run_token.1;
        let found = self.registry.authenticate(presented).map_err(unavailable)?;
        match (is_run, found) {
            (true, _) => Ok(self.admin_identity(RUN_TOKEN_KEY, self.caller.principal.clone())),
            (false, Some(found)) => self.identity_of_token(found).map_err(unavailable),
            (false, None) => Err(AuthError::UnknownToken),
        }
    }

    fn is_still_valid(&self, key: &str) -> bool {
        match key {
            RUN_TOKEN_KEY | SOCKET_USER_KEY => true,
            id => {
                let now_ms = self.registry.now_ms();
                self.registry
                    .load_token(id)
                    .is_ok_and(|found| found.is_some_and(|found| !found.token.is_expired(now_ms)))
            }
        }
    }

    fn workspace_admin(&self) -> Option<Arc<dyn WorkspaceAdmin>> {
        Some(self.workspace_admin.clone())
    }
}
