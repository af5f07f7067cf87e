//! A workspace registry as administrators use it: workspaces are created, used, destroyed and restored; a token opens
//! only its own workspace.

mod archives;
mod faults;
mod race;

use std::{path::Path, sync::Arc, time::Duration};

use serde_json::{Map, Value, json};
use stead_engine::{
    Caller, Engine, Error, ErrorKind, Grants, Principal,
    ops::{CreateTokenArgs, CreateWorkspaceArgs, DestroyedWorkspaceTrashPolicy, ListWorkspacesArgs},
};
use stead_local::{CreateTokenRequest, TokenScope, WorkspaceName, WorkspaceRegistry, WorkspaceRegistryOptions};
use tempfile::TempDir;
use testkit::native::{EngineJsonCalls, JsonCall};

use crate::support::tester;

pub(crate) fn admin_caller() -> Caller {
    Caller::new(Principal::User("platform".into()), "s1", "library")
}

pub(crate) fn name(text: &str) -> WorkspaceName {
    WorkspaceName::parse(text).unwrap()
}

pub(crate) fn ephemeral_workspace_request() -> CreateWorkspaceArgs {
    CreateWorkspaceArgs { lasting: DestroyedWorkspaceTrashPolicy::DeleteAtOnce, ..CreateWorkspaceArgs::default() }
}

pub(crate) fn open_registry(directory: &Path) -> Arc<WorkspaceRegistry> {
    WorkspaceRegistry::open(WorkspaceRegistryOptions::new(directory.join("estate"))).unwrap()
}

pub(crate) fn call_operation(engine: &Engine, operation: &str, arguments: Value) -> Result<Map<String, Value>, Error> {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    engine.call(&JsonCall::new(&tester(), operation, arguments)).map(|answer| answer.json)
}

pub(crate) fn write_file(engine: &Engine, path: &str, content: &str) {
    call_operation(engine, "write", json!({ "path": path, "content": content, "base": "" })).unwrap();
}

pub(crate) fn read_file(engine: &Engine, path: &str) -> Option<String> {
    match call_operation(engine, "read", json!({ "path": path })) {
        Ok(answer) => Some(answer["content"].as_str().unwrap().to_owned()),
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::NotFound, "{error:?}");
            None
        }
    }
}

/// The lists of workspaces that can be opened and of workspaces in the trash.
pub(crate) const ACTIVE: bool = false;
pub(crate) const TRASHED: bool = true;

pub(crate) fn list_names(registry: &WorkspaceRegistry, trash: bool) -> Vec<String> {
    let (found, next) = registry.list(&ListWorkspacesArgs { trash, ..ListWorkspacesArgs::default() }).unwrap();
    assert_eq!(next, None);
    found.into_iter().map(|one| one.name).collect()
}

fn token_request() -> CreateTokenRequest {
    CreateTokenRequest {
        principal: Principal::Agent("tester".into()),
        grants: Grants::default(),
        expires_ms: None,
        label: String::new(),
    }
}

#[test]
fn workspaces_are_created_destroyed_and_restored() {
    let directory = TempDir::new().unwrap();
    let registry = open_registry(directory.path());
    let made = registry.create(&admin_caller(), &name("one"), &CreateWorkspaceArgs::default()).unwrap();
    assert_eq!(
        registry.create(&admin_caller(), &name("one"), &ephemeral_workspace_request()).unwrap_err().kind,
        ErrorKind::Exists
    );
    write_file(&registry.open_engine(&made.id).unwrap(), "a.txt", "one\n");
    let told = registry.describe(&name("one")).unwrap();
    let size = told.size.unwrap();
    assert_eq!((size.files, size.bytes, told.state, size.head.number), (1, 4, "open", 1));
    assert_eq!(registry.destroy(&admin_caller(), &name("one")).unwrap().state, "trash");
    assert_eq!(registry.open_engine(&made.id).err().unwrap().kind, ErrorKind::NotFound);
    assert_eq!(list_names(&registry, ACTIVE), [""; 0]);
    assert_eq!(list_names(&registry, TRASHED), ["one"]);
    // The name is free again, and the old workspace comes back under another.
    registry.create(&admin_caller(), &name("one"), &ephemeral_workspace_request()).unwrap();
    assert_eq!(registry.restore(&admin_caller(), "one", None).unwrap_err().kind, ErrorKind::Exists);
    registry.restore(&admin_caller(), "one", Some(&name("two"))).unwrap();
    assert_eq!(read_file(&registry.open_engine(&made.id).unwrap(), "a.txt").as_deref(), Some("one\n"));
    assert_eq!(registry.destroy(&admin_caller(), &name("one")).unwrap().state, "gone");
    assert_eq!(list_names(&registry, ACTIVE), ["two"]);
    assert_eq!(list_names(&registry, TRASHED), [""; 0]);
    drop(registry);
    let registry = open_registry(directory.path());
    assert_eq!(list_names(&registry, ACTIVE), ["two"]);
    let report = registry.registry_workspace().verify_journal(None, &[]).unwrap();
    assert!(report.integrity_error.is_none() && report.entries >= 5, "{report:?}");
}

#[test]
fn trashed_workspaces_expire() {
    let directory = TempDir::new().unwrap();
    let mut options = WorkspaceRegistryOptions::new(directory.path().join("estate"));
    options.trash_retention_ms = 0;
    let registry = WorkspaceRegistry::open(options).unwrap();
    let made = registry.create(&admin_caller(), &name("one"), &CreateWorkspaceArgs::default()).unwrap();
    let gone = registry.destroy(&admin_caller(), &name("one")).unwrap();
    assert!(registry.directory_of(&gone).ends_with(format!("trash/{}", made.id)));
    registry.expire_and_reconcile().unwrap();
    assert_eq!(list_names(&registry, TRASHED), [""; 0]);
    assert_eq!(registry.restore(&admin_caller(), "one", None).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn tokens_are_bound_to_their_workspace() {
    let directory = TempDir::new().unwrap();
    let registry = open_registry(directory.path());
    let one = registry.create(&admin_caller(), &name("one"), &CreateWorkspaceArgs::default()).unwrap();
    registry.create(&admin_caller(), &name("two"), &ephemeral_workspace_request()).unwrap();
    let (token, shown) = registry
        .create_token(&admin_caller(), registry.scope_of_workspace(&name("one")).unwrap(), &token_request(), None)
        .unwrap();
    let admitted = registry.authenticate(&shown).unwrap().unwrap();
    assert_eq!(admitted, token);
    assert_eq!(admitted.scope, TokenScope::Workspace(one.id.clone()));
    for wrong in ["", "stead_", "stead__", "stead_x_y", &shown[..shown.len() - 1], &shown.replace("stead_", "")] {
        assert_eq!(registry.authenticate(wrong).unwrap(), None, "{wrong}");
    }
    let (_, shown_two) = registry.rotate_token(&admin_caller(), &token.token.id, 0).unwrap();
    assert_eq!(registry.authenticate(&shown).unwrap(), None);
    assert!(registry.authenticate(&shown_two).unwrap().is_some());
    registry.destroy(&admin_caller(), &name("one")).unwrap();
    assert_eq!(registry.authenticate(&shown_two).unwrap(), None);
    registry.restore(&admin_caller(), "one", None).unwrap();
    assert_eq!(registry.authenticate(&shown_two).unwrap(), None, "a token of before the end is over for good");
    let agent = CreateTokenArgs { principal: "agent:a".into(), administer: true, ..CreateTokenArgs::default() };
    assert_eq!(agent.principal_and_grants().unwrap_err().kind, ErrorKind::BadRequest);
    let user = CreateTokenRequest { principal: Principal::User("platform".into()), ..token_request() };
    let (_, shown) = registry.create_token(&admin_caller(), TokenScope::Administration, &user, None).unwrap();
    assert_eq!(registry.authenticate(&shown).unwrap().unwrap().scope, TokenScope::Administration);
}

#[test]
fn every_workspace_has_its_own_quota_and_policy() {
    let directory = TempDir::new().unwrap();
    let registry = open_registry(directory.path());
    let small = CreateWorkspaceArgs { bytes_max: Some(10), ..CreateWorkspaceArgs::default() };
    let small = registry.create(&admin_caller(), &name("small"), &small).unwrap();
    let policy = "[system]\ndefault = \"autonomous\"\n[[system.rules]]\nrights = [\"create\"]\ntier = \"blocked\"\n";
    let closed = CreateWorkspaceArgs { policy: Some(policy.into()), ..CreateWorkspaceArgs::default() };
    let closed = registry.create(&admin_caller(), &name("closed"), &closed).unwrap();
    let free = registry.create(&admin_caller(), &name("free"), &CreateWorkspaceArgs::default()).unwrap();
    let long = json!({ "path": "a", "content": "more than ten bytes", "base": "" });
    let kind = |id: &str| {
        call_operation(&registry.open_engine(id).unwrap(), "write", long.clone()).map_err(|error| error.kind).err()
    };
    assert_eq!(kind(&small.id), Some(ErrorKind::QuotaExceeded));
    assert_eq!(kind(&closed.id), Some(ErrorKind::PolicyDenied));
    assert_eq!(kind(&free.id), None);
    let twice =
        CreateWorkspaceArgs { bytes_max: Some(1), policy: Some(policy.into()), ..CreateWorkspaceArgs::default() };
    assert_eq!(registry.create(&admin_caller(), &name("x"), &twice).unwrap_err().kind, ErrorKind::BadRequest);
    let bad = CreateWorkspaceArgs { policy: Some("[".into()), ..CreateWorkspaceArgs::default() };
    assert_eq!(registry.create(&admin_caller(), &name("x"), &bad).unwrap_err().kind, ErrorKind::BadRequest);
    assert_eq!(list_names(&registry, ACTIVE), ["closed", "free", "small"]);
}

#[test]
fn idle_workspaces_are_closed_and_reopened() {
    let directory = TempDir::new().unwrap();
    let mut options = WorkspaceRegistryOptions::new(directory.path().join("estate"));
    (options.idle_timeout, options.open_workspaces_max) = (Duration::ZERO, 2);
    let registry = WorkspaceRegistry::open(options).unwrap();
    let ids: Vec<String> = ["a", "b", "c"]
        .iter()
        .map(|one| registry.create(&admin_caller(), &name(one), &ephemeral_workspace_request()).unwrap().id)
        .collect();
    let first = registry.open_engine(&ids[0]).unwrap();
    write_file(&first, "a", "a");
    assert_eq!(registry.close_idle_workspaces(), 0, "somebody has it");
    let second = registry.open_engine(&ids[1]).unwrap();
    assert_eq!(registry.open_engine(&ids[2]).err().unwrap().kind, ErrorKind::Busy, "two may be open");
    drop(first);
    registry.open_engine(&ids[2]).unwrap();
    assert_eq!(registry.open_count(), 2);
    drop(second);
    assert_eq!(registry.close_idle_workspaces(), 2);
    assert_eq!(registry.open_count(), 0);
    assert_eq!(read_file(&registry.open_engine(&ids[0]).unwrap(), "a").as_deref(), Some("a"));
}

#[test]
fn workspace_list_is_paged() {
    let directory = TempDir::new().unwrap();
    let registry = open_registry(directory.path());
    let expected: Vec<String> = (0..7).map(|number| format!("w{number}")).collect();
    for one in &expected {
        registry.create(&admin_caller(), &name(one), &ephemeral_workspace_request()).unwrap();
    }
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let (page, next) = registry.list(&ListWorkspacesArgs { cursor, limit: Some(3), trash: ACTIVE }).unwrap();
        assert!(page.len() <= 3);
        found.extend(page.into_iter().map(|one| one.name));
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, expected);
}
