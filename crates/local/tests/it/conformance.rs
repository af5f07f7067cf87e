//! Runs the conformance suite on the local workspace and on the workspace in memory.

#![expect(clippy::disallowed_methods, reason = "another program writes a file")]

use std::sync::{Arc, Mutex};

use stead_engine::{AdministrationCall, AdministrationStore, CallControl, Caller, Error, Principal, Workspace};
use stead_local::{
    AccessTokenRecord, CreateTokenRequest, Durability, LocalWorkspace, LocalWorkspaceOptions, SessionTicketRecord,
};
use tempfile::TempDir;
use testkit::{
    MemoryWorkspace,
    conformance::{
        self, ConformanceTokenStore, ConformanceWorkspaceFactory, OptionalWorkspaceBehavior, TestClockChange,
    },
};

use crate::support::{SettableClock, test_options};

struct LocalConformanceTestWorkspaceFactory {
    adjust_options: fn(&mut LocalWorkspaceOptions),
    created: Mutex<Option<CreatedLocalWorkspace>>,
}

struct CreatedLocalWorkspace {
    directory: TempDir,
    clock: SettableClock,
    openings: Vec<Arc<LocalWorkspace>>,
}

impl LocalConformanceTestWorkspaceFactory {
    fn new(adjust_options: fn(&mut LocalWorkspaceOptions)) -> Self {
        Self { adjust_options, created: Mutex::default() }
    }

    fn with_created<T>(&self, use_created: impl FnOnce(&mut CreatedLocalWorkspace) -> T) -> T {
        use_created(self.created.lock().unwrap().as_mut().unwrap())
    }
}

impl ConformanceWorkspaceFactory for LocalConformanceTestWorkspaceFactory {
    fn optional_behaviors(&self) -> &[OptionalWorkspaceBehavior] {
        &[
            OptionalWorkspaceBehavior::SecondOpening,
            OptionalWorkspaceBehavior::PathLocks,
            OptionalWorkspaceBehavior::SteadyClock,
            OptionalWorkspaceBehavior::ExternalChangeRecording,
            OptionalWorkspaceBehavior::AccessTokens,
            OptionalWorkspaceBehavior::Administration,
        ]
    }

    fn create(&self) -> Arc<dyn Workspace> {
        let (directory, clock, openings) = (tempfile::tempdir().unwrap(), SettableClock::new(), Vec::new());
        *self.created.lock().unwrap() = Some(CreatedLocalWorkspace { directory, clock, openings });
        self.open_again()
    }

    fn open_again(&self) -> Arc<dyn Workspace> {
        self.with_created(|created| {
            let mut options = test_options(&created.directory);
            options.clock = Arc::new(created.clock.clone());
            (self.adjust_options)(&mut options);
            let workspace = LocalWorkspace::open(options).unwrap();
            created.openings.push(Arc::clone(&workspace));
            workspace
        })
    }

    fn close(&self, workspace: Arc<dyn Workspace>) {
        self.with_created(|created| {
            let is_closed = |open: &Arc<LocalWorkspace>| std::ptr::addr_eq(Arc::as_ptr(open), Arc::as_ptr(&workspace));
            let index = created.openings.iter().position(is_closed).unwrap();
            created.openings.remove(index).close();
        });
    }

    fn change_clock(&self, change: TestClockChange) {
        self.with_created(|created| match change {
            TestClockChange::Advance(ms) => created.clock.advance_ms(ms),
            TestClockChange::WallClockJump(ms) => created.clock.set(|now| now.wall_ms += ms),
            TestClockChange::Reboot => created.clock.set(|now| {
                now.boot_id.push('+');
                now.uptime_ms = 0;
            }),
        });
    }

    fn write_externally(&self, path: &str, bytes: &[u8]) {
        self.with_created(|created| std::fs::write(created.directory.path().join("ws").join(path), bytes).unwrap());
    }

    fn access_tokens(&self) -> Arc<dyn ConformanceTokenStore> {
        Arc::new(LocalTokenStore(self.with_created(|created| Arc::clone(&created.openings[0]))))
    }

    fn administration(&self) -> Arc<dyn AdministrationStore> {
        self.with_created(|created| Arc::clone(&created.openings[0])) as Arc<dyn AdministrationStore>
    }
}

struct LocalTokenStore(Arc<LocalWorkspace>);

fn administer<T>(operation: &'static str, run: impl FnOnce(&AdministrationCall<'_>) -> T) -> T {
    let (caller, control) = (Caller::new(Principal::System, "s", "server"), CallControl::default());
    run(&AdministrationCall { caller: &caller, control: &control, operation })
}

impl ConformanceTokenStore for LocalTokenStore {
    fn create_token(&self, request: &CreateTokenRequest) -> Result<(AccessTokenRecord, String), Error> {
        administer("token.create", |call| self.0.create_token(request, call))
    }

    fn rotate_token(&self, id: &str, overlap_ms: i64) -> Result<(AccessTokenRecord, String), Error> {
        administer("token.rotate", |call| self.0.rotate_token(id, overlap_ms, call))
    }

    fn revoke_token(&self, id: &str) -> Result<AccessTokenRecord, Error> {
        administer("token.revoke", |call| self.0.revoke_token(id, call))
    }

    fn list_tokens(&self) -> Result<Vec<AccessTokenRecord>, Error> {
        self.0.list_tokens()
    }

    fn load_token(&self, id: &str) -> Result<Option<AccessTokenRecord>, Error> {
        self.0.load_token(id)
    }

    fn authenticate_token(&self, text: &str) -> Result<Option<AccessTokenRecord>, Error> {
        self.0.authenticate_token(text)
    }

    fn create_session_ticket(&self, principal: &Principal) -> Result<String, Error> {
        self.0.create_session_ticket(principal)
    }

    fn bind_session_ticket(&self, ticket: &str, session: &str) -> Result<(), Error> {
        self.0.bind_session_ticket(ticket, session)
    }

    fn load_session_ticket(&self, ticket: &str) -> Result<Option<SessionTicketRecord>, Error> {
        self.0.load_session_ticket(ticket)
    }
}

#[derive(Default)]
struct MemoryWorkspaceFactory(Mutex<Arc<MemoryWorkspace>>);

impl MemoryWorkspaceFactory {
    fn created(&self) -> Arc<MemoryWorkspace> {
        Arc::clone(&self.0.lock().unwrap())
    }
}

impl ConformanceWorkspaceFactory for MemoryWorkspaceFactory {
    fn optional_behaviors(&self) -> &[OptionalWorkspaceBehavior] {
        &[]
    }

    fn create(&self) -> Arc<dyn Workspace> {
        *self.0.lock().unwrap() = Arc::default();
        self.created()
    }

    fn open_again(&self) -> Arc<dyn Workspace> {
        self.created()
    }

    fn close(&self, _workspace: Arc<dyn Workspace>) {
        self.created().end_process();
    }

    fn change_clock(&self, change: TestClockChange) {
        match change {
            TestClockChange::Advance(ms) => self.created().advance_ms(ms),
            TestClockChange::WallClockJump(_) | TestClockChange::Reboot => panic!("memory has one clock"),
        }
    }

    fn write_externally(&self, path: &str, bytes: &[u8]) {
        self.created().put_file(path, bytes);
    }

    fn access_tokens(&self) -> Arc<dyn ConformanceTokenStore> {
        panic!("memory stores no tokens")
    }

    fn administration(&self) -> Arc<dyn AdministrationStore> {
        panic!("memory has no administration")
    }
}

fn fast_and_walking(options: &mut LocalWorkspaceOptions) {
    options.durability = Durability::Fast;
    options.resolver = stead_disk::PathResolutionMethod::Walker;
}

#[test]
fn local_workspace_conforms() {
    let factory = LocalConformanceTestWorkspaceFactory::new(|_| {});
    assert_eq!(conformance::cases_not_run(&factory), Vec::<&str>::new());
    conformance::run_cases(&factory, conformance::all_cases(), |line| println!("{line}"));
}

#[test]
fn local_workspace_conforms_with_fast_durability_and_walking_resolver() {
    let factory = LocalConformanceTestWorkspaceFactory::new(fast_and_walking);
    conformance::run_cases(&factory, conformance::all_cases(), |line| println!("{line}"));
}

#[test]
fn local_workspace_conforms_to_limits() {
    let factory = LocalConformanceTestWorkspaceFactory::new(fast_and_walking);
    conformance::run_cases(&factory, conformance::limit_cases(), |line| println!("{line}"));
}

#[test]
fn memory_workspace_conforms() {
    let factory = MemoryWorkspaceFactory::default();
    conformance::run_cases(&factory, conformance::all_cases(), |line| println!("{line}"));
    conformance::run_cases(&factory, conformance::limit_cases(), |line| println!("{line}"));
}
