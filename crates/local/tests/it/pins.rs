//! Compares the database format with golden files: the tables, their columns, and the fixed words stored in them.

use rusqlite::Connection;
use serde_json::json;
use stead_engine::{
    AdministrationCall, CallControl, Caller, CallerAccessMode, ErrorKind, Grants, JournalEntryQuery, Principal,
    Workspace, ops::CreateWorkspaceArgs,
};
use stead_local::{CreateTokenRequest, WorkspaceRegistry, WorkspaceRegistryOptions};
use stead_path::RelPath;
use testkit::pin;

use crate::{
    older::{database, opened},
    support::LocalFixture,
    workspace_registry,
};

fn schema(connection: &Connection) -> String {
    let text = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC, name";
    let mut statement = connection.prepare(text).unwrap();
    let rows = statement.query_map([], |row| {
        let (kind, name, sql): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(format!("{kind} {name}: {}\n", sql.split_whitespace().collect::<Vec<_>>().join(" ")))
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn tables_and_columns_are_those_of_0_1_0() {
    let fixture = LocalFixture::new();
    let fresh = schema(&database(fixture.directory.path()));
    assert_eq!(fresh, schema(&database(opened().directory.path())));
    pin::check(env!("CARGO_MANIFEST_DIR"), "schema.txt", &fresh);
    let directory = tempfile::tempdir().unwrap();
    drop(workspace_registry::open_registry(directory.path()));
    let own = Connection::open(directory.path().join("estate/estate/state/stead.db")).unwrap();
    pin::check(env!("CARGO_MANIFEST_DIR"), "estate-schema.txt", &schema(&own));
}

/// The queries for all columns in which the server stores fixed words.
const WORDS: &[&str] = &[
    "SELECT name FROM meta ORDER BY name",
    "SELECT operation || ' by ' || principal FROM entries ORDER BY number",
    // The families of rows and the keys of their values.
    "SELECT DISTINCT family || ' ' || (SELECT group_concat(key, ' ') FROM json_each(state_rows.value)) FROM state_rows",
    "SELECT (value ->> 'principal') || ' ' || (value ->> 'protocol') FROM state_rows WHERE family = 'session'",
    "SELECT (value ->> 'severity') || ' ' || (value ->> 'sender') FROM state_rows WHERE family = 'alert'",
    "SELECT (value ->> 'owner') || ' ' || (value ->> 'path') || ' ' || (value ->> 'event_kinds') || ' ' || (value ->> 'stage')
     FROM state_rows WHERE family = 'watch'",
    "SELECT (value ->> '$.request.principal') || ' ' || (value ->> '$.request.operation') || ' ' || (value ->> '$.request.reason') || ' ' || (value ->> 'state')
     FROM state_rows WHERE family = 'approval'",
    "SELECT principal || ' ' || reach || ' ' || label FROM tokens",
    "SELECT owner || ' ' || path || ' ' || top || ' ' || state FROM trash WHERE path = 'e'",
    "SELECT (value ->> 'holder') || ' ' || (value ->> 'path') FROM state_rows WHERE family = 'lease'",
    "SELECT (value ->> 'principal') || ' ' || (value ->> 'session') || ' ' || (value ->> 'path') FROM state_rows WHERE family = 'review_mark'",
    "SELECT (value ->> 'owner') || ' ' || (value ->> 'path') || ' ' || (value ->> 'line_endings') FROM state_rows WHERE family = 'buffer'",
    "SELECT family || ' ' || slot FROM row_bodies",
];

fn words(connection: &Connection, queries: &[&str]) -> String {
    let mut out = String::new();
    for query in queries {
        out.push_str(&format!("{query}\n"));
        let mut statement = connection.prepare(query).unwrap();
        let rows = statement.query_map([], |row| Ok(format!("    {}\n", row.get::<_, String>(0)?)));
        out.extend(rows.unwrap().map(Result::unwrap));
    }
    out
}

const POLICY: &str = "[[system.rules]]\nname = \"appends\"\noperations = [\"append\"]\ntier = \"approval_required\"\n";

#[test]
fn stored_words_are_those_of_0_1_0() {
    let fixture = LocalFixture::new();
    let (owner, control) = (Caller::new(Principal::User("ann".into()), "cli-1", "cli"), CallControl::default());
    let call = |operation| AdministrationCall { caller: &owner, control: &control, operation };
    fixture.workspace.set_approver_secret("a secret for tests", &call("approver.set")).unwrap();
    fixture.workspace.check_approver_secret("a secret for tests").unwrap();
    let grants = Grants {
        access: CallerAccessMode::ReadOnly,
        readable: vec![RelPath::from_wire("d").unwrap()],
        writable: vec![RelPath::root()],
        ..Grants::default()
    };
    let ask =
        CreateTokenRequest { principal: Principal::Agent("ci".into()), grants, expires_ms: None, label: "ci".into() };
    let (token, _) = fixture.workspace.create_token(&ask, &call("token.create")).unwrap();
    fixture.workspace.revoke_token(&token.id, &call("token.revoke")).unwrap();
    fixture.call_ok("write", json!({ "path": "d/f", "content": "one\r\n" }));
    fixture.call_ok("turn", json!({}));
    let ann = Caller::new(Principal::User("ann".into()), "cli-1", "cli");
    fixture.call_as(&ann, "keep", json!({ "path": "d/f" })).unwrap();
    fixture.call_ok("copy", json!({ "from": "d", "to": "e" }));
    fixture.call_ok("remove", json!({ "path": "e", "recursive": true }));
    fixture.call_ok("lock", json!({ "path": "d" }));
    fixture
        .call_ok("watch", json!({ "path": "d", "recursive": true, "types": ["create", "modify", "delete", "rename"] }));
    fixture.call_ok("alert", json!({ "message": "look", "severity": "critical" }));
    fixture.call_as(&ann, "buffer.open", json!({ "path": "d/g", "text": "open" })).unwrap();
    let begun = Caller::new(Principal::Agent("tester".into()), "s9", "library");
    fixture.call_as(&begun, "session", json!({ "action": "begin" })).unwrap();
    fixture.workspace.write_policy(POLICY).unwrap();
    fixture.call_err("append", json!({ "path": "d/f", "content": "x" }), ErrorKind::ApprovalPending);
    fixture.workspace.rotate_key(&call("log.rotate_key")).unwrap();
    fixture.call_ok("write", json!({ "path": "gone", "content": "x" }));
    let gone = fixture.call_ok("remove", json!({ "path": "gone" }));
    fixture.workspace.delete_trash_items(&[gone["trash"].as_str().unwrap().to_owned()], None).unwrap();
    fixture.workspace.flush().unwrap();
    pin::check(env!("CARGO_MANIFEST_DIR"), "stored.txt", &words(&database(fixture.directory.path()), WORDS));
}

#[test]
fn registry_stores_and_accepts_the_words_of_0_1_0() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = WorkspaceRegistryOptions::new(directory.path().join("estate"));
    options.trash_retention_ms = 0;
    let registry = WorkspaceRegistry::open(options).unwrap();
    let steward = workspace_registry::admin_caller();
    registry.create(&steward, &workspace_registry::name("one"), &CreateWorkspaceArgs::default()).unwrap();
    registry
        .create(&steward, &workspace_registry::name("two"), &workspace_registry::ephemeral_workspace_request())
        .unwrap();
    registry.destroy(&steward, &workspace_registry::name("one")).unwrap();
    let own = Connection::open(directory.path().join("estate/estate/state/stead.db")).unwrap();
    let queries = [
        "SELECT operation || ' by ' || principal FROM entries ORDER BY number",
        "SELECT name || ' ' || stage || ' ' || lasting || ' ' || maker FROM workspaces ORDER BY name",
    ];
    let mut out = words(&own, &queries);
    registry.expire_and_reconcile().unwrap();
    let query = JournalEntryQuery { limit: 100, ..JournalEntryQuery::default() };
    for stored in registry.registry_workspace().entries(&query).unwrap() {
        let caller = &stored.entry.caller;
        if caller.principal == Principal::System.to_string() {
            out.push_str(&format!("{} in session {} of {}\n", stored.entry.operation, caller.session, caller.protocol));
        }
    }
    for probe in [json!({ "name": "x", "nothing": 1 }), json!({ "name": "x", "lasting": "nothing" })] {
        let refusal = serde_json::from_value::<CreateWorkspaceArgs>(probe).unwrap_err();
        out.push_str(&format!("{refusal}\n"));
    }
    pin::check(env!("CARGO_MANIFEST_DIR"), "estate-stored.txt", &out);
}

#[test]
fn json_keys_are_those_of_0_1_0() {
    pin::check(env!("CARGO_MANIFEST_DIR"), "json_keys.txt", &pin::json_keys(env!("CARGO_MANIFEST_DIR")));
}
