//! `stead serve --workspaces`: every client comes with a token, which says which workspace it is in, or that it administers
//! them all and opens none.

use std::{path::Path, sync::Arc, time::Duration};

use engine::{Caller, Failure, Kind, Principal, Version};
use faces::{
    dialect::Place,
    http::{self, Admission, Admitted, Credential, Hall, NotAdmitted, Steward},
};
use local::{Estate, EstateToken, Scope, Wall};

use super::{
    CALL_THREADS, ServeFlags, Taken, banner,
    door::{THIS_RUN, THIS_USER, run_token},
    serve_behind, session_of, settings,
};
use crate::{
    cli::WorkspaceFlags,
    estate::{self, Stewardship},
    serving,
    show::{self, Outcome, Problem},
    time,
    wire::{self, Asker},
};

/// Calls of one workspace that work at a time: a part of all, so that one cannot hold up the others.
const WORKSPACE_CALLS: usize = CALL_THREADS / 8;
/// How often it is looked for what nobody uses any more.
const UPKEEP: Duration = Duration::from_secs(15);

/// Serves an estate.
pub(super) fn run(
    flags: &WorkspaceFlags,
    serve_flags: &ServeFlags,
    directory: &Path,
    taken: Taken,
) -> Outcome {
    serving::say_risks(flags);
    let idle = time::duration(&serve_flags.idle_close)
        .and_then(|idle_ms| u64::try_from(idle_ms).ok())
        .map(Duration::from_millis)
        .ok_or_else(|| show::usage("a time is written 90s, 30m, 2h or 7d"))?;
    if let Taken::Tls(_, _, identity) = &taken {
        identity.keep_out_of(directory)?;
    }
    disk::allow_many_handles();
    let mut options = estate::options(flags, directory);
    (options.wall, options.idle) = (Wall::Raise, idle);
    options.readable = taken.places();
    options.open_max = serve_flags.open_max.max(1);
    options.asking = serving::asked(serve_flags.asking.approve);
    let estate = Estate::open(options)?;
    let door = Arc::new(Door::new(&estate, serve_flags)?);
    let place = estate.path().to_string_lossy().into_owned();
    let settings = settings(serve_flags, place.clone(), WORKSPACE_CALLS)?;
    let token = door.run.0.clone();
    let say = |taken: &Taken| banner::show_estate(taken, serve_flags, &place, flags.durability, &token);
    let kept = estate.clone();
    let served = serve_behind(door, settings, serve_flags, taken, say, |hall| upkeep(hall, kept, idle));
    estate.close();
    served
}

/// Now and then forgets clients that are silent, closes workspaces that nobody uses, and tidies up.
async fn upkeep(hall: Arc<Hall>, estate: Arc<Estate>, idle: Duration) {
    loop {
        tokio::time::sleep(UPKEEP.min(idle)).await;
        hall.forget_idle(idle, usize::MAX);
        let estate = estate.clone();
        let tidied = tokio::task::spawn_blocking(move || {
            estate.close_idle();
            estate.tidy()
        });
        if let Ok(Err(failure)) = tidied.await {
            show::remark(&format!("the estate could not be tidied: {}", failure.detail));
        }
    }
}

/// The door of an estate.
struct Door {
    estate: Arc<Estate>,
    steward: Arc<Stewardship>,
    /// Who administers with the token of this run, or through a socket.
    caller: Caller,
    run: (String, Version),
}

impl Door {
    fn new(estate: &Arc<Estate>, flags: &ServeFlags) -> Result<Self, Problem> {
        let mut caller = wire::caller(&flags.caller, Asker::Person)?;
        match caller.principal {
            Principal::User(_) => {}
            Principal::Agent(_) | Principal::System | Principal::Outside => {
                return Err(show::usage("whoever administers an estate is a user: --principal user:NAME"));
            }
        }
        caller.face = "http";
        let run = run_token()?;
        let steward = Arc::new(Stewardship(estate.clone()));
        Ok(Self { estate: estate.clone(), steward, caller, run: (run.clone(), Version::of(run.as_bytes())) })
    }

    fn overseer(&self, key: &str, principal: Principal) -> Admission {
        let caller = Caller { principal, ..session_of(&self.caller, key) };
        Admission { key: key.to_owned(), caller, to: Admitted::Estate }
    }

    /// Where a token leads. Nothing is opened before the client is known.
    fn admission(&self, found: EstateToken) -> Result<Admission, Failure> {
        let EstateToken { token, scope } = found;
        let principal = Principal::parse(&token.principal)?;
        let id = match scope {
            Scope::Estate => return Ok(self.overseer(&token.id, principal)),
            Scope::Workspace(id) => id,
        };
        let mut caller = Caller::new(principal, format!("http-{}", token.id), "http");
        caller.grants = token.grants()?;
        let place = Place { workspace: self.estate.files_of(&id) };
        let (estate, which) = (self.estate.clone(), id.clone());
        let opening: http::Opening = Arc::new(move || {
            estate.enter(&which).map_err(|failure| match failure {
                Failure { kind: Kind::Busy, .. } => NotAdmitted::Crowded,
                // It was ended while its client was on the way in.
                Failure { kind: Kind::NotFound, .. } => NotAdmitted::Unknown,
                failure => NotAdmitted::Unavailable(failure.detail),
            })
        });
        Ok(Admission { key: token.id, caller, to: Admitted::Workspace { id, place, opening } })
    }
}

impl http::Door for Door {
    fn admit(&self, credential: Credential<'_>) -> Result<Admission, NotAdmitted> {
        let shown = match credential {
            Credential::SameUser => return Ok(self.overseer(THIS_USER, self.caller.principal.clone())),
            Credential::Token(shown) => shown,
        };
        let unavailable = |failure: Failure| NotAdmitted::Unavailable(failure.detail);
        // Both are always looked at: how long it takes tells nothing about either.
        let is_run = Version::of(shown.as_bytes()) == self.run.1;
        let found = self.estate.admit(shown).map_err(unavailable)?;
        match (is_run, found) {
            (true, _) => Ok(self.overseer(THIS_RUN, self.caller.principal.clone())),
            (false, Some(found)) => self.admission(found).map_err(unavailable),
            (false, None) => Err(NotAdmitted::Unknown),
        }
    }

    fn still_admits(&self, key: &str) -> bool {
        match key {
            THIS_RUN | THIS_USER => true,
            id => {
                let now_ms = self.estate.now_ms();
                self.estate
                    .token(id)
                    .is_ok_and(|found| found.is_some_and(|found| !found.token.is_over(now_ms)))
            }
        }
    }

    fn steward(&self) -> Option<Arc<dyn Steward>> {
        Some(self.steward.clone())
    }
}
