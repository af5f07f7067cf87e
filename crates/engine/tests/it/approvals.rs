//! Tests of approvals: a person's approval is valid once, and only for the call and plan that requested it.

use serde_json::{Value, json};
use stead_engine::{
    ApprovalFilter, ApprovalMode, ApprovalState, CallControl, Caller, CallerApproverStatus, ErrorKind, Principal,
};
use testkit::native::{EngineJsonCalls, JsonCall};
use testkit::{
    ErrorDetailsJson,
    engine_fixture::{EngineFixture, agent},
    wait::wait_for,
};

const APPROVAL_POLICY: &str = "[[system.rules]]\nname = \"removals\"\noperations = [\"remove\", \"write\", \"read\", \"undo\"]\npaths = [\"kept/**\"]\nprincipals = [\"agent:*\"]\ntier = \"approval_required\"\n";

fn fixture_with_approval_policy() -> EngineFixture {
    let fixture = EngineFixture::with_files(&[("kept/a", "one\n"), ("kept/b", "two\n"), ("free", "x\n")]);
    fixture.workspace.set_policy(APPROVAL_POLICY);
    fixture
}

fn approver() -> Caller {
    let mut caller = Caller::new(Principal::User("ann".to_owned()), "cli", "cli");
    caller.grants.approver = CallerApproverStatus::SecretVerified;
    caller
}

fn remove_args() -> Value {
    json!({ "path": "kept/a" })
}

fn request_approval(fixture: &EngineFixture, operation: &str, arguments: Value) -> String {
    let error = fixture.call_err(operation, arguments, ErrorKind::ApprovalPending);
    error.details_json()["approval"].as_str().unwrap().to_owned()
}

fn approve(fixture: &EngineFixture, id: &str) {
    fixture.call_as(&approver(), "approve", json!({ "id": id })).unwrap();
}

fn approval_state(fixture: &EngineFixture, id: &str) -> ApprovalState {
    fixture.engine.workspace().approval(id).unwrap().unwrap().state
}

#[test]
fn approved_call_runs_once_then_needs_new_approval() {
    let fixture = fixture_with_approval_policy();
    let id = request_approval(&fixture, "remove", remove_args());
    assert_eq!(request_approval(&fixture, "remove", remove_args()), id, "the same call makes only one request");
    let error = fixture.call_err("remove", remove_args(), ErrorKind::ApprovalPending);
    assert_eq!(error.details_json()["command"], format!("stead approvals approve {id}"));
    approve(&fixture, &id);
    let entry = fixture.call_ok("remove", remove_args())["entry"].as_u64().unwrap();
    let recorded = fixture.engine.workspace().entry(entry).unwrap().unwrap().entry;
    assert_eq!(recorded.tier.as_deref(), Some("approval_required"));
    assert_eq!(recorded.approval.as_deref(), Some(id.as_str()));
    assert_eq!(approval_state(&fixture, &id), ApprovalState::Used);
    fixture.workspace.put_file("kept/a", "one\n");
    assert_ne!(request_approval(&fixture, "remove", remove_args()), id, "an approval is valid only once");
}

#[test]
fn approval_calls_work_when_everything_needs_approval() {
    let rate = "[system.rate]\ncalls = 1\nper_seconds = 1000\nthen = \"approval_required\"\n";
    let every = "[[organisation.rules]]\noperations = [\"*\"]\ntier = \"approval_required\"\n";
    for policy in ["[system]\ndefault = \"approval_required\"\n", rate, every] {
        let fixture = fixture_with_approval_policy();
        fixture.workspace.set_policy(policy);
        fixture.call("stat", json!({ "path": "free" })).ok();
        let id = request_approval(&fixture, "remove", remove_args());
        let ann = |operation: &str, arguments: Value| fixture.call_as(&approver(), operation, arguments);
        assert_eq!(ann("approvals", json!({})).unwrap().json["approvals"][0]["id"], *id, "{policy}");
        ann("approvals", json!({ "id": id })).unwrap();
        ann("policy", json!({ "operation": "remove", "arguments": remove_args() })).unwrap();
        for (operation, arguments) in
            [("events", json!({})), ("session", json!({})), ("alert", json!({ "message": "please" }))]
        {
            fixture.call(operation, arguments).unwrap();
        }
        approve(&fixture, &id);
        fixture.call_ok("remove", remove_args());
    }
}

#[test]
fn approval_is_bound_to_one_call_and_principal() {
    let fixture = fixture_with_approval_policy();
    let id = request_approval(&fixture, "remove", remove_args());
    approve(&fixture, &id);
    let others = fixture.call_as(&agent("two"), "remove", remove_args()).expect_err("another agent");
    assert_eq!(others.kind, ErrorKind::ApprovalPending);
    fixture.call_err("remove", json!({ "path": "kept/b" }), ErrorKind::ApprovalPending);
    fixture.call_err("write", json!({ "path": "kept/a", "content": "", "base": "r1" }), ErrorKind::BadRequest);
    assert_eq!(approval_state(&fixture, &id), ApprovalState::Approved);
    fixture.call_ok("remove", remove_args());
}

#[test]
fn approval_becomes_stale_when_files_change() {
    let fixture = fixture_with_approval_policy();
    let id = request_approval(&fixture, "remove", remove_args());
    approve(&fixture, &id);
    fixture.workspace.put_file("kept/a", "changed\n");
    let error = fixture.call_err("remove", remove_args(), ErrorKind::ApprovalStale);
    assert_eq!(error.details_json()["outdated"], id.as_str());
    let new = error.details_json()["approval"].as_str().unwrap().to_owned();
    assert_eq!(
        (approval_state(&fixture, &id), approval_state(&fixture, &new)),
        (ApprovalState::Stale, ApprovalState::Pending)
    );
    // The old approval stays stale even if the files return to their earlier state.
    fixture.workspace.put_file("kept/a", "one\n");
    fixture.call_err("remove", remove_args(), ErrorKind::ApprovalPending);
}

#[test]
fn change_inside_tree_makes_approval_stale() {
    let fixture = fixture_with_approval_policy();
    let all = json!({ "path": "kept", "recursive": true });
    let id = request_approval(&fixture, "remove", all.clone());
    approve(&fixture, &id);
    fixture.workspace.put_file("kept/deep/c", "new\n");
    fixture.call_err("remove", all, ErrorKind::ApprovalStale);
}

#[test]
fn approval_becomes_stale_when_policy_changes() {
    let fixture = fixture_with_approval_policy();
    let id = request_approval(&fixture, "remove", remove_args());
    approve(&fixture, &id);
    fixture.workspace.set_policy(&format!("{APPROVAL_POLICY}# another text\n"));
    let error = fixture.call_err("remove", remove_args(), ErrorKind::ApprovalStale);
    assert!(error.message.contains("the policy"), "{error}");
}

#[test]
fn denial_holds_until_it_expires() {
    let fixture = fixture_with_approval_policy();
    let id = request_approval(&fixture, "remove", remove_args());
    fixture.call_as(&approver(), "deny", json!({ "id": id, "reason": "not today" })).unwrap();
    let error = fixture.call_err("remove", remove_args(), ErrorKind::ApprovalDenied);
    assert!(error.message.contains("not today"), "{error}");
    let late =
        fixture.call_as(&approver(), "approve", json!({ "id": id })).expect_err("the request is already answered");
    assert_eq!(late.kind, ErrorKind::Conflict);
    fixture.workspace.advance_ms(24 * 60 * 60 * 1000);
    assert_ne!(request_approval(&fixture, "remove", remove_args()), id);
}

#[test]
fn pending_and_approved_requests_expire() {
    let fixture = fixture_with_approval_policy();
    let (first, second) = (
        request_approval(&fixture, "remove", remove_args()),
        request_approval(&fixture, "remove", json!({ "path": "kept/b" })),
    );
    approve(&fixture, &first);
    fixture.workspace.advance_ms(24 * 60 * 60 * 1000);
    let late = fixture.call_as(&approver(), "approve", json!({ "id": second })).expect_err("the request expired");
    assert_eq!(late.kind, ErrorKind::Conflict);
    fixture.call_err("remove", remove_args(), ErrorKind::ApprovalPending);
}

#[test]
fn only_verified_person_may_approve() {
    let fixture = fixture_with_approval_policy();
    let id = request_approval(&fixture, "remove", remove_args());
    let mut agent_with_proof = agent("one");
    agent_with_proof.grants.approver = CallerApproverStatus::SecretVerified;
    let mut person_without_proof = approver();
    person_without_proof.grants.approver = CallerApproverStatus::None;
    for caller in [&fixture.caller, &agent("two"), &agent_with_proof, &person_without_proof] {
        for operation in ["approve", "deny"] {
            let error =
                fixture.call_as(caller, operation, json!({ "id": id })).expect_err("only a verified person may answer");
            assert_eq!(error.kind, ErrorKind::PolicyDenied, "{error}");
        }
    }
    assert_eq!(approval_state(&fixture, &id), ApprovalState::Pending);
    fixture.call_err("remove", remove_args(), ErrorKind::ApprovalPending);
}

#[test]
fn agent_sees_only_its_own_approvals() {
    let fixture = fixture_with_approval_policy();
    let id = request_approval(&fixture, "remove", remove_args());
    let other = agent("two");
    let listed = fixture.call_as(&other, "approvals", json!({ "state": "all" })).unwrap();
    assert_eq!(listed.json["approvals"], json!([]));
    let error =
        fixture.call_as(&other, "approvals", json!({ "id": id })).expect_err("the approval belongs to another agent");
    assert_eq!(error.kind, ErrorKind::NotFound);
    let own = fixture.call_ok("approvals", json!({ "id": id }));
    assert_eq!(own["plan"]["changes"][0]["change"], "remove");
}

#[test]
fn approval_shows_diff_to_person() {
    let fixture = fixture_with_approval_policy();
    let version = fixture.call_as(&approver(), "read", json!({ "path": "kept/a" })).unwrap().json["version"].clone();
    let id = request_approval(&fixture, "write", json!({ "path": "kept/a", "content": "three\n", "base": version }));
    let approval = fixture.call_as(&approver(), "approvals", json!({ "id": id })).unwrap().json;
    let change = &approval["plan"]["changes"][0];
    // The rule keeps the agent from reading the file, so only the person can see the diff.
    assert_eq!(change["path"], "kept/a");
    assert_eq!(change["size"], 6);
    assert!(change["diff"].is_string() || change["diff_note"].is_string(), "{change}");
}

#[test]
fn repeated_key_does_not_consume_approval() {
    let fixture = fixture_with_approval_policy();
    let call = |key| {
        let Value::Object(arguments) = remove_args() else { panic!("an object") };
        let mut call = JsonCall::new(&fixture.caller, "remove", arguments);
        call.idempotency_key = Some(key);
        fixture.engine.call(&call)
    };
    let id = call("k").expect_err("the call needs approval").details_json()["approval"].as_str().unwrap().to_owned();
    approve(&fixture, &id);
    let first = call("k").unwrap().json["entry"].clone();
    assert_eq!(call("k").unwrap().json["entry"], first);
    fixture.workspace.put_file("kept/a", "one\n");
    assert_eq!(call("other").expect_err("another call").kind, ErrorKind::ApprovalPending);
}

#[test]
fn reads_can_need_approval() {
    let fixture = fixture_with_approval_policy();
    let id = request_approval(&fixture, "read", json!({ "path": "kept/a" }));
    approve(&fixture, &id);
    assert_eq!(fixture.call_ok("read", json!({ "path": "kept/a" }))["content"], "one\n");
    assert_ne!(request_approval(&fixture, "read", json!({ "path": "kept/a" })), id);
}

#[test]
fn waiting_call_continues_after_approval() {
    let fixture = fixture_with_approval_policy();
    let outcome = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let Value::Object(arguments) = remove_args() else { panic!("an object") };
            let mut call = JsonCall::new(&fixture.caller, "remove", arguments);
            call.control = CallControl::default().with_approval_wait(20_000);
            fixture.engine.call(&call)
        });
        let filter = ApprovalFilter { limit: 1, ..ApprovalFilter::default() };
        let pending =
            wait_for("an approval is requested", || fixture.engine.workspace().approvals(&filter).unwrap().pop());
        approve(&fixture, &pending.id);
        waiting.join().unwrap()
    });
    assert!(outcome.unwrap().json.contains_key("trash"));
}

#[test]
fn approval_mode_denies_or_allows_everything() {
    let fixture = fixture_with_approval_policy();
    let Value::Object(arguments) = remove_args() else { panic!("an object") };
    let remove_in_mode = |mode| {
        fixture.engine.clone().with_approval_mode(mode).call(&JsonCall::new(
            &fixture.caller,
            "remove",
            arguments.clone(),
        ))
    };
    assert_eq!(
        remove_in_mode(ApprovalMode::DenyAll).expect_err("the server denies the call").kind,
        ErrorKind::ApprovalDenied
    );
    assert_eq!(fixture.engine.workspace().approvals(&ApprovalFilter { limit: 9, ..Default::default() }).unwrap(), []);
    let entry = remove_in_mode(ApprovalMode::AllowAll).unwrap().json["entry"].as_u64().unwrap();
    let recorded = fixture.engine.workspace().entry(entry).unwrap().unwrap().entry;
    assert_eq!(recorded.approval.as_deref(), Some("operator"));
}

#[test]
fn pending_approvals_are_limited() {
    let fixture = fixture_with_approval_policy();
    for number in 0..stead_engine::limits::APPROVALS_PENDING_MAX {
        let path = format!("kept/{number}");
        fixture.workspace.put_file(&path, "x");
        fixture.call_err("remove", json!({ "path": path }), ErrorKind::ApprovalPending);
    }
    fixture.call_err("remove", remove_args(), ErrorKind::TooMany);
}

fn first_previewed_change(fixture: &EngineFixture, id: &str) -> Value {
    fixture.call_as(&approver(), "approvals", json!({ "id": id })).unwrap().json["plan"]["changes"][0].clone()
}

#[test]
fn removal_preview_shows_lost_content_within_limits() {
    let fixture = fixture_with_approval_policy();
    let change = first_previewed_change(&fixture, &request_approval(&fixture, "remove", remove_args()));
    assert_eq!((&change["change"], &change["type"]), (&json!("remove"), &json!("file")));
    assert_eq!((&change["files"], &change["bytes"], &change["recoverable_hours"]), (&json!(1), &json!(4), &json!(24)));
    assert_eq!(change["diff"], "--- kept/a\n+++ nothing\n@@ -1 +0,0 @@\n-one\n");

    fixture.workspace.put_file("kept/bytes", [0, 159, 146, 150]);
    let binary =
        first_previewed_change(&fixture, &request_approval(&fixture, "remove", json!({ "path": "kept/bytes" })));
    assert_eq!((&binary["diff_note"], binary.get("diff")), (&json!("the content is not text"), None));

    let lines = stead_engine::limits::APPROVAL_DIFF_LINES_MAX;
    fixture.workspace.put_file("kept/long", "x\n".repeat(lines + 7));
    let long = first_previewed_change(&fixture, &request_approval(&fixture, "remove", json!({ "path": "kept/long" })));
    assert!(long["diff"].as_str().unwrap().lines().count() <= lines + 3);
    assert!(long["diff_note"].as_str().unwrap().ends_with("more lines are not shown"), "{}", long["diff_note"]);

    fixture.workspace.put_file("kept/large", vec![b'x'; 2 << 20]);
    let large =
        first_previewed_change(&fixture, &request_approval(&fixture, "remove", json!({ "path": "kept/large" })));
    assert_eq!(large["diff_note"], "the current file is too large to show");

    let link = "kept/way";
    fixture.workspace.put_link(link, "a");
    let link = first_previewed_change(&fixture, &request_approval(&fixture, "remove", json!({ "path": link })));
    assert_eq!((&link["type"], &link["target"]), (&json!("link"), &json!("a")));
}

#[test]
fn directory_removal_preview_hides_unreadable_files() {
    let fixture = fixture_with_approval_policy();
    let most = stead_engine::limits::APPROVAL_FILES_SHOWN_MAX;
    for number in 0..most + 2 {
        fixture.workspace.put_file(&format!("kept/d/{number:04}"), "12345");
    }
    let arguments = json!({ "path": "kept/d", "recursive": true });
    let hidden = first_previewed_change(&fixture, &request_approval(&fixture, "remove", arguments.clone()));
    assert_eq!(hidden["holds"], json!([]));
    let note = format!("{} files that the caller may not read are not shown", most + 2);
    assert_eq!(hidden["holds_note"], json!(note));
    // A rule that restricts only removal does not hide the files of a removed directory.
    fixture.workspace.set_policy(&APPROVAL_POLICY.replace(", \"read\"", ""));
    let tree = first_previewed_change(&fixture, &request_approval(&fixture, "remove", arguments));
    assert_eq!(tree["holds"].as_array().unwrap().len(), most);
    assert_eq!(tree["holds"][0], json!({ "path": "kept/d/0000", "size": 5 }));
    assert_eq!((&tree["holds_note"], &tree["files"]), (&json!("2 more files are not shown"), &json!(most + 2)));
}

#[test]
fn escaping_path_of_agent_is_recorded_as_path_escape() {
    let fixture = fixture_with_approval_policy();
    for path in ["../x", "/etc/passwd", "a/../../b"] {
        let error = fixture.call_err("read", json!({ "path": path }), ErrorKind::InvalidPath);
        assert!(error.details_json().get("path").is_none(), "{error}");
        let head = fixture.engine.workspace().head().unwrap();
        let entry = fixture.engine.workspace().entry(head.number).unwrap().unwrap().entry;
        assert_eq!(entry.reason.as_deref(), Some("path_escape"), "{path}");
    }
    for (caller, path) in [(approver(), "../x"), (fixture.caller.clone(), "")] {
        fixture.call_as(&caller, "read", json!({ "path": path })).unwrap_err();
        let head = fixture.engine.workspace().head().unwrap();
        let entry = fixture.engine.workspace().entry(head.number).unwrap().unwrap().entry;
        assert_eq!(entry.reason.as_deref(), Some("invalid_path"), "{path}");
    }
}
