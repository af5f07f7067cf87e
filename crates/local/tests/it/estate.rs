//! An estate as its stewards use it: workspaces are made, used, ended and taken back; tokens lead to one of them alone.

mod archives;
mod faults;
mod race;

use std::{path::Path, sync::Arc, time::Duration};

use engine::{Call, Caller, Engine, Failure, Grants, Kind, Principal};
use local::{
    Estate, EstateOptions, Page, Paged, Scope, TokenAsk, WorkspaceAsk, WorkspaceLasting, WorkspaceName,
};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

pub(crate) fn steward() -> Caller {
    Caller::new(Principal::User("platform".into()), "s1", "library")
}

pub(crate) fn agent() -> Caller {
    Caller::new(Principal::Agent("tester".into()), "s1", "library")
}

pub(crate) fn name(text: &str) -> WorkspaceName {
    WorkspaceName::parse(text).unwrap()
}

pub(crate) fn ephemeral() -> WorkspaceAsk {
    WorkspaceAsk { lasting: WorkspaceLasting::Ephemeral, ..WorkspaceAsk::default() }
}

pub(crate) fn open_at(place: &Path) -> Arc<Estate> {
    Estate::open(EstateOptions::new(place.join("estate"))).unwrap()
}

pub(crate) fn call(
    engine: &Engine,
    operation: &str,
    arguments: Value,
) -> Result<Map<String, Value>, Failure> {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    engine.call(&Call::new(&agent(), operation, arguments)).map(|answer| answer.json)
}

pub(crate) fn write(engine: &Engine, path: &str, content: &str) {
    call(engine, "write", json!({ "path": path, "content": content, "base": "" })).unwrap();
}

pub(crate) fn read(engine: &Engine, path: &str) -> Option<String> {
    match call(engine, "read", json!({ "path": path })) {
        Ok(answer) => Some(answer["content"].as_str().unwrap().to_owned()),
        Err(failure) => {
            assert_eq!(failure.kind, Kind::NotFound, "{failure:?}");
            None
        }
    }
}

pub(crate) fn names(estate: &Estate, of: Paged) -> Vec<String> {
    let (found, next) = estate.list(&Page { of, ..Page::default() }).unwrap();
    assert_eq!(next, None);
    found.into_iter().map(|one| one.name).collect()
}

fn ask() -> TokenAsk {
    TokenAsk {
        principal: Principal::Agent("tester".into()),
        grants: Grants::default(),
        ends_ms: None,
        label: String::new(),
    }
}

#[test]
fn a_workspace_is_made_used_destroyed_and_taken_back() {
    let place = TempDir::new().unwrap();
    let estate = open_at(place.path());
    let made = estate.create(&steward(), &name("one"), &WorkspaceAsk::default()).unwrap();
    assert_eq!(estate.create(&steward(), &name("one"), &ephemeral()).unwrap_err().kind, Kind::Exists);
    write(&estate.enter(&made.id).unwrap(), "a.txt", "one\n");
    let told = estate.describe(&name("one")).unwrap();
    assert_eq!((&told["files"], &told["bytes"], &told["state"]), (&json!(1), &json!(4), &json!("open")));
    assert_eq!(told["head"]["number"], 1);
    assert_eq!(estate.destroy(&steward(), &name("one")).unwrap().state, "trash");
    assert_eq!(estate.enter(&made.id).err().unwrap().kind, Kind::NotFound);
    assert_eq!(names(&estate, Paged::Ready), [""; 0]);
    assert_eq!(names(&estate, Paged::Trash), ["one"]);
    // The name is free again, and the old one comes back under another.
    estate.create(&steward(), &name("one"), &ephemeral()).unwrap();
    assert_eq!(estate.restore(&steward(), "one", None).unwrap_err().kind, Kind::Exists);
    estate.restore(&steward(), "one", Some(&name("two"))).unwrap();
    assert_eq!(read(&estate.enter(&made.id).unwrap(), "a.txt").as_deref(), Some("one\n"));
    assert_eq!(estate.destroy(&steward(), &name("one")).unwrap().state, "gone");
    assert_eq!(names(&estate, Paged::Ready), ["two"]);
    assert_eq!(names(&estate, Paged::Trash), [""; 0]);
    drop(estate);
    let estate = open_at(place.path());
    assert_eq!(names(&estate, Paged::Ready), ["two"]);
    let report = estate.journal().verify_log(None, &[]).unwrap();
    assert!(report.tamper.is_none() && report.entries >= 5, "{report:?}");
}

#[test]
fn the_trash_of_the_estate_is_emptied_in_time() {
    let place = TempDir::new().unwrap();
    let mut options = EstateOptions::new(place.path().join("estate"));
    options.trash_ms = 0;
    let estate = Estate::open(options).unwrap();
    let made = estate.create(&steward(), &name("one"), &WorkspaceAsk::default()).unwrap();
    let gone = estate.destroy(&steward(), &name("one")).unwrap();
    assert!(estate.place_of(&gone).ends_with(format!("trash/{}", made.id)));
    estate.tidy().unwrap();
    assert_eq!(names(&estate, Paged::Trash), [""; 0]);
    assert_eq!(estate.restore(&steward(), "one", None).unwrap_err().kind, Kind::NotFound);
}

#[test]
fn a_token_leads_to_its_workspace_and_ends_with_it() {
    let place = TempDir::new().unwrap();
    let estate = open_at(place.path());
    let one = estate.create(&steward(), &name("one"), &WorkspaceAsk::default()).unwrap();
    estate.create(&steward(), &name("two"), &ephemeral()).unwrap();
    let (token, shown) = estate.create_token(&steward(), &name("one"), &ask()).unwrap();
    let admitted = estate.admit(&shown).unwrap().unwrap();
    assert_eq!(admitted, token);
    assert_eq!(admitted.scope, Scope::Workspace(one.id.clone()));
    for wrong in
        ["", "stead_", "stead__", "stead_x_y", &shown[..shown.len() - 1], &shown.replace("stead_", "")]
    {
        assert_eq!(estate.admit(wrong).unwrap(), None, "{wrong}");
    }
    let (_, shown_two) = estate.rotate_token(&steward(), &token.token.id, 0).unwrap();
    assert_eq!(estate.admit(&shown).unwrap(), None);
    assert!(estate.admit(&shown_two).unwrap().is_some());
    estate.destroy(&steward(), &name("one")).unwrap();
    assert_eq!(estate.admit(&shown_two).unwrap(), None);
    estate.restore(&steward(), "one", None).unwrap();
    assert_eq!(estate.admit(&shown_two).unwrap(), None, "a token of before the end is over for good");
    assert_eq!(estate.create_steward_token(&steward(), &ask()).unwrap_err().kind, Kind::BadRequest);
    let user = TokenAsk { principal: Principal::User("platform".into()), ..ask() };
    let (_, shown) = estate.create_steward_token(&steward(), &user).unwrap();
    assert_eq!(estate.admit(&shown).unwrap().unwrap().scope, Scope::Estate);
}

#[test]
fn every_workspace_has_its_own_quota_and_policy() {
    let place = TempDir::new().unwrap();
    let estate = open_at(place.path());
    let small = WorkspaceAsk { bytes_max: Some(10), ..WorkspaceAsk::default() };
    let small = estate.create(&steward(), &name("small"), &small).unwrap();
    let policy =
        "[system]\ndefault = \"autonomous\"\n[[system.rules]]\nrights = [\"create\"]\ntier = \"blocked\"\n";
    let closed = WorkspaceAsk { policy: Some(policy.into()), ..WorkspaceAsk::default() };
    let closed = estate.create(&steward(), &name("closed"), &closed).unwrap();
    let free = estate.create(&steward(), &name("free"), &WorkspaceAsk::default()).unwrap();
    let long = json!({ "path": "a", "content": "more than ten bytes", "base": "" });
    let kind = |id: &str| {
        call(&estate.enter(id).unwrap(), "write", long.clone()).map_err(|failure| failure.kind).err()
    };
    assert_eq!(kind(&small.id), Some(Kind::Quota));
    assert_eq!(kind(&closed.id), Some(Kind::PolicyDenied));
    assert_eq!(kind(&free.id), None);
    let twice = WorkspaceAsk { bytes_max: Some(1), policy: Some(policy.into()), ..WorkspaceAsk::default() };
    assert_eq!(estate.create(&steward(), &name("x"), &twice).unwrap_err().kind, Kind::BadRequest);
    let bad = WorkspaceAsk { policy: Some("[".into()), ..WorkspaceAsk::default() };
    assert_eq!(estate.create(&steward(), &name("x"), &bad).unwrap_err().kind, Kind::BadRequest);
    assert_eq!(names(&estate, Paged::Ready), ["closed", "free", "small"]);
}

#[test]
fn what_nobody_uses_is_closed_and_opened_again() {
    let place = TempDir::new().unwrap();
    let mut options = EstateOptions::new(place.path().join("estate"));
    (options.idle, options.open_max) = (Duration::ZERO, 2);
    let estate = Estate::open(options).unwrap();
    let ids: Vec<String> = ["a", "b", "c"]
        .iter()
        .map(|one| estate.create(&steward(), &name(one), &ephemeral()).unwrap().id)
        .collect();
    let first = estate.enter(&ids[0]).unwrap();
    write(&first, "a", "a");
    assert_eq!(estate.close_idle(), 0, "somebody has it");
    let second = estate.enter(&ids[1]).unwrap();
    assert_eq!(estate.enter(&ids[2]).err().unwrap().kind, Kind::Busy, "two may be open");
    drop(first);
    estate.enter(&ids[2]).unwrap();
    assert_eq!(estate.open_count(), 2);
    drop(second);
    assert_eq!(estate.close_idle(), 2);
    assert_eq!(estate.open_count(), 0);
    assert_eq!(read(&estate.enter(&ids[0]).unwrap(), "a").as_deref(), Some("a"));
}

#[test]
fn a_list_comes_in_pages() {
    let place = TempDir::new().unwrap();
    let estate = open_at(place.path());
    let expected: Vec<String> = (0..7).map(|number| format!("w{number}")).collect();
    for one in &expected {
        estate.create(&steward(), &name(one), &ephemeral()).unwrap();
    }
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let (page, next) = estate.list(&Page { cursor, limit: Some(3), of: Paged::Ready }).unwrap();
        assert!(page.len() <= 3);
        found.extend(page.into_iter().map(|one| one.name));
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, expected);
}
