//! Approvals: requested, given, used once, and valid for nothing else.

use serde_json::{Value, json};
use stead_engine::{
    ApprovalFilter, ApprovalMode, ApprovalState, ApproverProof, Call, CallControl, Caller, ErrorKind, Principal,
};

use crate::engine_fixture::{EngineFixture, agent};

const APPROVAL_POLICY: &str = "[[system.rules]]\nname = \"removals\"\noperations = [\"remove\", \"write\", \"read\", \"undo\"]\npaths = [\"kept/**\"]\nprincipals = [\"agent:*\"]\ntier = \"approval_required\"\n";

fn fixture_with_approval_policy() -> EngineFixture {
    let world = EngineFixture::with_files(&[("kept/a", "one\n"), ("kept/b", "two\n"), ("free", "x\n")]);
    world.workspace.set_policy(APPROVAL_POLICY);
    world
}

fn approver() -> Caller {
    let mut caller = Caller::new(Principal::User("ann".to_owned()), "cli", "cli");
    caller.grants.approver = ApproverProof::SecretVerified;
    caller
}

fn remove_args() -> Value {
    json!({ "path": "kept/a" })
}

/// Requests approval and returns its id.
fn request_approval(world: &EngineFixture, operation: &str, arguments: Value) -> String {
    let error = world.call_err(operation, arguments, ErrorKind::ApprovalPending);
    error.details["approval"].as_str().unwrap().to_owned()
}

fn approve(world: &EngineFixture, id: &str) {
    world.call_as(&approver(), "approve", json!({ "id": id })).unwrap();
}

fn approval_state(world: &EngineFixture, id: &str) -> ApprovalState {
    world.engine.workspace().approval(id).unwrap().unwrap().state
}

#[test]
fn approved_call_runs_once_then_needs_new_approval() {
    let world = fixture_with_approval_policy();
    let id = request_approval(&world, "remove", remove_args());
    assert_eq!(request_approval(&world, "remove", remove_args()), id, "the same question is asked once");
    let error = world.call_err("remove", remove_args(), ErrorKind::ApprovalPending);
    assert_eq!(error.details["command"], format!("stead approvals approve {id}"));
    approve(&world, &id);
    let entry = world.call_ok("remove", remove_args()).json["entry"].as_u64().unwrap();
    let recorded = world.engine.workspace().entry(entry).unwrap().unwrap().entry;
    assert_eq!(recorded.tier.as_deref(), Some("approval_required"));
    assert_eq!(recorded.approval.as_deref(), Some(id.as_str()));
    assert_eq!(approval_state(&world, &id), ApprovalState::Used);
    world.workspace.put_file("kept/a", "one\n");
    assert_ne!(request_approval(&world, "remove", remove_args()), id, "a used approval is used up");
}

#[test]
fn approval_calls_work_when_everything_needs_approval() {
    let rate = "[system.rate]\ncalls = 1\nper_seconds = 1000\nthen = \"approval_required\"\n";
    let every = "[[organisation.rules]]\noperations = [\"*\"]\ntier = \"approval_required\"\n";
    for policy in ["[system]\ndefault = \"approval_required\"\n", rate, every] {
        let world = fixture_with_approval_policy();
        world.workspace.set_policy(policy);
        world.call("stat", json!({ "path": "free" })).ok();
        let id = request_approval(&world, "remove", remove_args());
        let ann = |operation: &str, arguments: Value| world.call_as(&approver(), operation, arguments);
        assert_eq!(ann("approvals", json!({})).unwrap().json["approvals"][0]["id"], *id, "{policy}");
        ann("approvals", json!({ "id": id })).unwrap();
        ann("policy", json!({ "operation": "remove", "arguments": remove_args() })).unwrap();
        for (operation, arguments) in
            [("events", json!({})), ("session", json!({})), ("alert", json!({ "message": "please" }))]
        {
            world.call(operation, arguments).unwrap();
        }
        approve(&world, &id);
        world.call_ok("remove", remove_args());
    }
}

#[test]
fn approval_is_bound_to_one_call_and_principal() {
    let world = fixture_with_approval_policy();
    let id = request_approval(&world, "remove", remove_args());
    approve(&world, &id);
    let others = world.call_as(&agent("two"), "remove", remove_args()).expect_err("another agent");
    assert_eq!(others.kind, ErrorKind::ApprovalPending);
    world.call_err("remove", json!({ "path": "kept/b" }), ErrorKind::ApprovalPending);
    world.call_err("write", json!({ "path": "kept/a", "content": "", "base": "r1" }), ErrorKind::BadRequest);
    assert_eq!(approval_state(&world, &id), ApprovalState::Approved);
    world.call_ok("remove", remove_args());
}

#[test]
fn approval_becomes_stale_when_files_change() {
    let world = fixture_with_approval_policy();
    let id = request_approval(&world, "remove", remove_args());
    approve(&world, &id);
    world.workspace.put_file("kept/a", "changed\n");
    let error = world.call_err("remove", remove_args(), ErrorKind::ApprovalStale);
    assert_eq!(error.details["outdated"], id.as_str());
    let new = error.details["approval"].as_str().unwrap().to_owned();
    assert_eq!(
        (approval_state(&world, &id), approval_state(&world, &new)),
        (ApprovalState::Stale, ApprovalState::Pending)
    );
    // The old approval stays stale even if the files return to their earlier state.
    world.workspace.put_file("kept/a", "one\n");
    world.call_err("remove", remove_args(), ErrorKind::ApprovalPending);
}

#[test]
fn change_inside_tree_makes_approval_stale() {
    let world = fixture_with_approval_policy();
    let all = json!({ "path": "kept", "recursive": true });
    let id = request_approval(&world, "remove", all.clone());
    approve(&world, &id);
    world.workspace.put_file("kept/deep/c", "new\n");
    world.call_err("remove", all, ErrorKind::ApprovalStale);
}

#[test]
fn approval_becomes_stale_when_policy_changes() {
    let world = fixture_with_approval_policy();
    let id = request_approval(&world, "remove", remove_args());
    approve(&world, &id);
    world.workspace.set_policy(&format!("{APPROVAL_POLICY}# another text\n"));
    let error = world.call_err("remove", remove_args(), ErrorKind::ApprovalStale);
    assert!(error.message.contains("the policy"), "{error}");
}

#[test]
fn denial_holds_until_it_expires() {
    let world = fixture_with_approval_policy();
    let id = request_approval(&world, "remove", remove_args());
    world.call_as(&approver(), "deny", json!({ "id": id, "reason": "not today" })).unwrap();
    let error = world.call_err("remove", remove_args(), ErrorKind::ApprovalDenied);
    assert!(error.message.contains("not today"), "{error}");
    let late = world.call_as(&approver(), "approve", json!({ "id": id })).expect_err("it is answered");
    assert_eq!(late.kind, ErrorKind::Conflict);
    world.workspace.advance_ms(24 * 60 * 60 * 1000);
    assert_ne!(request_approval(&world, "remove", remove_args()), id);
}

#[test]
fn pending_and_approved_requests_expire() {
    let world = fixture_with_approval_policy();
    let (first, second) = (
        request_approval(&world, "remove", remove_args()),
        request_approval(&world, "remove", json!({ "path": "kept/b" })),
    );
    approve(&world, &first);
    world.workspace.advance_ms(24 * 60 * 60 * 1000);
    let late = world.call_as(&approver(), "approve", json!({ "id": second })).expect_err("its time is over");
    assert_eq!(late.kind, ErrorKind::Conflict);
    world.call_err("remove", remove_args(), ErrorKind::ApprovalPending);
}

#[test]
fn only_verified_person_may_approve() {
    let world = fixture_with_approval_policy();
    let id = request_approval(&world, "remove", remove_args());
    let mut shown_agent = agent("one");
    shown_agent.grants.approver = ApproverProof::SecretVerified;
    let mut bare_person = approver();
    bare_person.grants.approver = ApproverProof::None;
    for caller in [&world.caller, &agent("two"), &shown_agent, &bare_person] {
        for outcome in ["approve", "deny"] {
            let error = world.call_as(caller, outcome, json!({ "id": id })).expect_err("no person");
            assert_eq!(error.kind, ErrorKind::PolicyDenied, "{error}");
        }
    }
    assert_eq!(approval_state(&world, &id), ApprovalState::Pending);
    world.call_err("remove", remove_args(), ErrorKind::ApprovalPending);
}

#[test]
fn agent_sees_only_its_own_approvals() {
    let world = fixture_with_approval_policy();
    let id = request_approval(&world, "remove", remove_args());
    let other = agent("two");
    let listed = world.call_as(&other, "approvals", json!({ "state": "all" })).unwrap();
    assert_eq!(listed.json["approvals"], json!([]));
    let error = world.call_as(&other, "approvals", json!({ "id": id })).expect_err("not its own");
    assert_eq!(error.kind, ErrorKind::NotFound);
    let own = world.call_ok("approvals", json!({ "id": id })).json;
    assert_eq!(own["plan"]["changes"][0]["change"], "remove");
}

#[test]
fn approval_shows_diff_to_person() {
    let world = fixture_with_approval_policy();
    let version = world.call_as(&approver(), "read", json!({ "path": "kept/a" })).unwrap().json["version"].clone();
    let id = request_approval(&world, "write", json!({ "path": "kept/a", "content": "three\n", "base": version }));
    let shown = world.call_as(&approver(), "approvals", json!({ "id": id })).unwrap().json;
    let change = &shown["plan"]["changes"][0];
    // The rule keeps the agent from reading the file, so only the person can see the diff.
    assert_eq!(change["path"], "kept/a");
    assert_eq!(change["size"], 6);
    assert!(change["diff"].is_string() || change["diff_note"].is_string(), "{change}");
}

#[test]
fn repeated_key_does_not_consume_approval() {
    let world = fixture_with_approval_policy();
    let call = |key| {
        let Value::Object(arguments) = remove_args() else { panic!("an object") };
        let mut call = Call::new(&world.caller, "remove", arguments);
        call.idempotency_key = Some(key);
        world.engine.call(&call)
    };
    let id = call("k").expect_err("it waits").details["approval"].as_str().unwrap().to_owned();
    approve(&world, &id);
    let first = call("k").unwrap().json["entry"].clone();
    assert_eq!(call("k").unwrap().json["entry"], first);
    world.workspace.put_file("kept/a", "one\n");
    assert_eq!(call("other").expect_err("another call").kind, ErrorKind::ApprovalPending);
}

#[test]
fn reads_can_need_approval() {
    let world = fixture_with_approval_policy();
    let id = request_approval(&world, "read", json!({ "path": "kept/a" }));
    approve(&world, &id);
    assert_eq!(world.call_ok("read", json!({ "path": "kept/a" })).json["content"], "one\n");
    assert_ne!(request_approval(&world, "read", json!({ "path": "kept/a" })), id);
}

#[test]
fn waiting_call_continues_after_approval() {
    let world = fixture_with_approval_policy();
    let held = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let Value::Object(arguments) = remove_args() else { panic!("an object") };
            let mut call = Call::new(&world.caller, "remove", arguments);
            call.control = CallControl::default().with_approval_wait(20_000);
            world.engine.call(&call)
        });
        let id = loop {
            let filter = ApprovalFilter { limit: 1, ..ApprovalFilter::default() };
            if let Some(approval) = world.engine.workspace().approvals(&filter).unwrap().pop() {
                break approval.id;
            }
            std::thread::yield_now();
        };
        approve(&world, &id);
        waiting.join().unwrap()
    });
    assert!(held.unwrap().json.contains_key("trash"));
}

#[test]
fn approval_mode_denies_or_allows_everything() {
    let world = fixture_with_approval_policy();
    let Value::Object(arguments) = remove_args() else { panic!("an object") };
    let ask = |asking| {
        world.engine.clone().with_approval_mode(asking).call(&Call::new(&world.caller, "remove", arguments.clone()))
    };
    assert_eq!(ask(ApprovalMode::DenyAll).expect_err("nobody is asked").kind, ErrorKind::ApprovalDenied);
    assert_eq!(world.engine.workspace().approvals(&ApprovalFilter { limit: 9, ..Default::default() }).unwrap(), []);
    let entry = ask(ApprovalMode::AllowAll).unwrap().json["entry"].as_u64().unwrap();
    let recorded = world.engine.workspace().entry(entry).unwrap().unwrap().entry;
    assert_eq!(recorded.approval.as_deref(), Some("operator"));
}

#[test]
fn pending_approvals_are_limited() {
    let world = fixture_with_approval_policy();
    for number in 0..stead_engine::limits::APPROVALS_PENDING_MAX {
        let path = format!("kept/{number}");
        world.workspace.put_file(&path, "x");
        world.call_err("remove", json!({ "path": path }), ErrorKind::ApprovalPending);
    }
    world.call_err("remove", remove_args(), ErrorKind::TooMany);
}

/// The first change of an approval preview.
fn preview_of_pending_call(world: &EngineFixture, id: &str) -> Value {
    world.call_as(&approver(), "approvals", json!({ "id": id })).unwrap().json["plan"]["changes"][0].clone()
}

#[test]
fn removal_preview_shows_lost_content_within_limits() {
    let world = fixture_with_approval_policy();
    let change = preview_of_pending_call(&world, &request_approval(&world, "remove", remove_args()));
    assert_eq!((&change["change"], &change["type"]), (&json!("remove"), &json!("file")));
    assert_eq!((&change["files"], &change["bytes"], &change["recoverable_hours"]), (&json!(1), &json!(4), &json!(24)));
    assert_eq!(change["diff"], "--- kept/a\n+++ nothing\n@@ -1 +0,0 @@\n-one\n");

    world.workspace.put_file("kept/bytes", [0, 159, 146, 150]);
    let binary = preview_of_pending_call(&world, &request_approval(&world, "remove", json!({ "path": "kept/bytes" })));
    assert_eq!((&binary["diff_note"], binary.get("diff")), (&json!("the content is not text"), None));

    let lines = stead_engine::limits::APPROVAL_DIFF_LINES_MAX;
    world.workspace.put_file("kept/long", "x\n".repeat(lines + 7));
    let long = preview_of_pending_call(&world, &request_approval(&world, "remove", json!({ "path": "kept/long" })));
    assert!(long["diff"].as_str().unwrap().lines().count() <= lines + 3);
    assert!(long["diff_note"].as_str().unwrap().ends_with("more lines are not shown"), "{}", long["diff_note"]);

    world.workspace.put_file("kept/large", vec![b'x'; 2 << 20]);
    let large = preview_of_pending_call(&world, &request_approval(&world, "remove", json!({ "path": "kept/large" })));
    assert_eq!(large["diff_note"], "the current file is too large to show");

    let link = "kept/way";
    world.workspace.put_link(link, "a");
    let link = preview_of_pending_call(&world, &request_approval(&world, "remove", json!({ "path": link })));
    assert_eq!((&link["type"], &link["target"]), (&json!("link"), &json!("a")));
}

#[test]
fn directory_removal_preview_hides_unreadable_files() {
    let world = fixture_with_approval_policy();
    let most = stead_engine::limits::APPROVAL_FILES_SHOWN_MAX;
    for number in 0..most + 2 {
        world.workspace.put_file(&format!("kept/d/{number:04}"), "12345");
    }
    let arguments = json!({ "path": "kept/d", "recursive": true });
    let unseen = preview_of_pending_call(&world, &request_approval(&world, "remove", arguments.clone()));
    assert_eq!(unseen["holds"], json!([]));
    let note = format!("{} files that the caller may not read are not shown", most + 2);
    assert_eq!(unseen["holds_note"], json!(note));
    // Rules about removal alone hide nothing.
    world.workspace.set_policy(&APPROVAL_POLICY.replace(", \"read\"", ""));
    let tree = preview_of_pending_call(&world, &request_approval(&world, "remove", arguments));
    assert_eq!(tree["holds"].as_array().unwrap().len(), most);
    assert_eq!(tree["holds"][0], json!({ "path": "kept/d/0000", "size": 5 }));
    assert_eq!((&tree["holds_note"], &tree["files"]), (&json!("2 more files are not shown"), &json!(most + 2)));
}

#[test]
fn escaping_path_of_agent_is_recorded_as_path_escape() {
    let world = fixture_with_approval_policy();
    for path in ["../x", "/etc/passwd", "a/../../b"] {
        let error = world.call_err("read", json!({ "path": path }), ErrorKind::InvalidPath);
        assert!(!error.details.contains_key("path"), "{error}");
        let head = world.engine.workspace().head().unwrap();
        let entry = world.engine.workspace().entry(head.number).unwrap().unwrap().entry;
        assert_eq!(entry.reason.as_deref(), Some("path_escape"), "{path}");
    }
    for (caller, path) in [(approver(), "../x"), (world.caller.clone(), "")] {
        world.call_as(&caller, "read", json!({ "path": path })).unwrap_err();
        let head = world.engine.workspace().head().unwrap();
        let entry = world.engine.workspace().entry(head.number).unwrap().unwrap().entry;
        assert_eq!(entry.reason.as_deref(), Some("invalid_path"), "{path}");
    }
}
