//! The protocol's own suite against the HTTP face with everything in it that the suite wants to see: its fixtures come in by
//! the same door as any other content besides operations.

mod catalogue;
mod fixtures;
mod rounds;
mod tools;

use std::sync::Arc;

use engine::{Caller, Engine, Principal};
use faces::{
    dialect::Place,
    http::{
        Admission, Admitted, Credential, Door, Hall, Keeping, Listener, Names, NotAdmitted, Settings, opened,
        serve,
    },
    mcp::Annexed,
};
use testkit::{MemoryWorkspace, instruments, relay};
use tokio::net::UnixListener;

/// How scenarios of the tasks extension begin.
const NOT_DECLARED: &str = "tasks-";

/// Lets this user in, and nobody else.
struct Own(Engine);

impl Door for Own {
    fn admit(&self, credential: Credential<'_>) -> Result<Admission, NotAdmitted> {
        match credential {
            Credential::Token(_) => Err(NotAdmitted::Unknown),
            Credential::SameUser => Ok(Admission {
                key: "own".to_owned(),
                caller: Caller::new(Principal::Agent("suite".to_owned()), "suite".to_owned(), "http"),
                to: Admitted::Workspace {
                    id: "one".to_owned(),
                    place: place(),
                    opening: opened(self.0.clone()),
                },
            }),
        }
    }

    fn still_admits(&self, _key: &str) -> bool {
        true
    }
}

fn place() -> Place {
    Place { workspace: MemoryWorkspace::ROOT.to_owned() }
}

/// What the suite says about one revision.
async fn judged(revision: &'static str) -> instruments::Said {
    let scratch = tempfile::tempdir().unwrap();
    let socket = scratch.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let user = relay::user().unwrap();
    let settings = Settings {
        place: place(),
        mcp_dialects: vec!["stead".to_owned()],
        rpc_dialects: vec!["stead".to_owned()],
        workspace_calls_max: 16,
    };
    let door = Arc::new(Own(Engine::new(Arc::new(MemoryWorkspace::new()))));
    let annex = Annexed::new(Arc::new(fixtures::Fixtures)).unwrap();
    let keeping = Keeping { annex: Some(Arc::new(annex)), ..Keeping::default() };
    let hall = Hall::kept(door, Names::socket(), settings, keeping);
    let serving = tokio::spawn(serve(hall.clone(), Listener::Unix(listener, user)));
    let port = relay::open(&socket).unwrap();
    let said = tokio::task::spawn_blocking(move || {
        let mut suite = instruments::node_program("conformance").unwrap();
        suite.args(["server", "--url", &format!("http://127.0.0.1:{port}/mcp"), "--requirements", revision]);
        instruments::run(suite).unwrap()
    })
    .await
    .unwrap();
    hall.stop();
    serving.await.unwrap();
    said
}

/// Every required scenario passes, and so does every other one but those of an extension that this server does not declare.
fn hold(said: &instruments::Said) {
    assert_eq!(said.code, Some(0), "{}", said.whole());
    let failed = said.output.lines().filter_map(|line| line.trim().strip_prefix("✗ "));
    let others: Vec<&str> = failed.filter(|scenario| !scenario.starts_with(NOT_DECLARED)).collect();
    assert!(others.is_empty(), "{others:?}: {}", said.whole());
    assert!(said.output.contains("✓ tools-call-with-progress: 2 passed"), "{}", said.whole());
}

#[tokio::test]
async fn every_required_check_of_2025_11_25_passes() {
    hold(&judged("2025-11-25").await);
}

#[tokio::test]
async fn every_required_check_of_2026_07_28_passes() {
    hold(&judged("2026-07-28").await);
}
