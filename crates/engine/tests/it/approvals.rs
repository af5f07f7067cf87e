//! A person's yes to one exact plan: asked, given, used once, and worth nothing for anything else.

use engine::{ApprovalFilter, ApprovalState, Approver, Asking, Call, Caller, Control, Kind, Principal};
use serde_json::{Value, json};

use crate::world::{World, agent};

const ASK: &str = "[[system.rules]]\nname = \"removals\"\noperations = [\"remove\", \"write\", \"read\", \"undo\"]\npaths = [\"kept/**\"]\nprincipals = [\"agent:*\"]\ntier = \"approval_required\"\n";

fn world() -> World {
    let world = World::with(&[("kept/a", "one\n"), ("kept/b", "two\n"), ("free", "x\n")]);
    world.workspace.set_policy(ASK);
    world
}

fn person() -> Caller {
    let mut caller = Caller::new(Principal::User("ann".to_owned()), "cli", "cli");
    caller.grants.approver = Approver::Shown;
    caller
}

fn remove() -> Value {
    json!({ "path": "kept/a" })
}

/// Asks, and gives the id of the question.
fn asked(world: &World, operation: &str, arguments: Value) -> String {
    let failure = world.fails(operation, arguments, Kind::ApprovalPending);
    failure.facts["approval"].as_str().unwrap().to_owned()
}

fn approve(world: &World, id: &str) {
    world.call_as(&person(), "approve", json!({ "id": id })).unwrap();
}

fn state(world: &World, id: &str) -> ApprovalState {
    world.engine.workspace().approval(id).unwrap().unwrap().state
}

#[test]
fn a_call_waits_runs_once_and_asks_again() {
    let world = world();
    let id = asked(&world, "remove", remove());
    assert_eq!(asked(&world, "remove", remove()), id, "the same question is asked once");
    let failure = world.fails("remove", remove(), Kind::ApprovalPending);
    assert_eq!(failure.facts["command"], format!("stead approvals approve {id}"));
    approve(&world, &id);
    let entry = world.ok("remove", remove()).json["entry"].as_u64().unwrap();
    let recorded = world.engine.workspace().entry(entry).unwrap().unwrap().entry;
    assert_eq!(recorded.tier.as_deref(), Some("approval_required"));
    assert_eq!(recorded.approval.as_deref(), Some(id.as_str()));
    assert_eq!(state(&world, &id), ApprovalState::Used);
    world.workspace.put_file("kept/a", "one\n");
    assert_ne!(asked(&world, "remove", remove()), id, "a used approval is used up");
}

#[test]
fn where_everything_is_asked_about_people_can_answer_and_callers_can_wait() {
    let rate = "[system.rate]\ncalls = 1\nper_seconds = 1000\nthen = \"approval_required\"\n";
    let every = "[[organisation.rules]]\noperations = [\"*\"]\ntier = \"approval_required\"\n";
    for policy in ["[system]\ndefault = \"approval_required\"\n", rate, every] {
        let world = world();
        world.workspace.set_policy(policy);
        world.call("stat", json!({ "path": "free" })).ok();
        let id = asked(&world, "remove", remove());
        let ann = |operation: &str, arguments: Value| world.call_as(&person(), operation, arguments);
        assert_eq!(ann("approvals", json!({})).unwrap().json["approvals"][0]["id"], *id, "{policy}");
        ann("approvals", json!({ "id": id })).unwrap();
        ann("policy", json!({ "operation": "remove", "arguments": remove() })).unwrap();
        for (operation, arguments) in
            [("events", json!({})), ("session", json!({})), ("alert", json!({ "message": "please" }))]
        {
            world.call(operation, arguments).unwrap();
        }
        approve(&world, &id);
        world.ok("remove", remove());
    }
}

#[test]
fn an_approval_fits_one_call_of_one_principal() {
    let world = world();
    let id = asked(&world, "remove", remove());
    approve(&world, &id);
    let others = world.call_as(&agent("two"), "remove", remove()).expect_err("another agent");
    assert_eq!(others.kind, Kind::ApprovalPending);
    world.fails("remove", json!({ "path": "kept/b" }), Kind::ApprovalPending);
    world.fails("write", json!({ "path": "kept/a", "content": "", "base": "r1" }), Kind::BadRequest);
    assert_eq!(state(&world, &id), ApprovalState::Approved);
    world.ok("remove", remove());
}

#[test]
fn when_the_world_moved_the_approval_no_longer_fits_and_says_so() {
    let world = world();
    let id = asked(&world, "remove", remove());
    approve(&world, &id);
    world.workspace.put_file("kept/a", "changed\n");
    let failure = world.fails("remove", remove(), Kind::ApprovalStale);
    assert_eq!(failure.facts["outdated"], id.as_str());
    let new = failure.facts["approval"].as_str().unwrap().to_owned();
    assert_eq!((state(&world, &id), state(&world, &new)), (ApprovalState::Stale, ApprovalState::Pending));
    // The old one stays dead when the world moves back.
    world.workspace.put_file("kept/a", "one\n");
    world.fails("remove", remove(), Kind::ApprovalPending);
}

#[test]
fn a_tree_that_changed_below_is_another_plan() {
    let world = world();
    let all = json!({ "path": "kept", "recursive": true });
    let id = asked(&world, "remove", all.clone());
    approve(&world, &id);
    world.workspace.put_file("kept/deep/c", "new\n");
    world.fails("remove", all, Kind::ApprovalStale);
}

#[test]
fn when_the_policy_moved_the_approval_no_longer_fits() {
    let world = world();
    let id = asked(&world, "remove", remove());
    approve(&world, &id);
    world.workspace.set_policy(&format!("{ASK}# another text\n"));
    let failure = world.fails("remove", remove(), Kind::ApprovalStale);
    assert!(failure.detail.contains("the policy"), "{failure}");
}

#[test]
fn what_is_denied_stays_denied_until_it_ends() {
    let world = world();
    let id = asked(&world, "remove", remove());
    world.call_as(&person(), "deny", json!({ "id": id, "reason": "not today" })).unwrap();
    let failure = world.fails("remove", remove(), Kind::ApprovalDenied);
    assert!(failure.detail.contains("not today"), "{failure}");
    let late = world.call_as(&person(), "approve", json!({ "id": id })).expect_err("it is answered");
    assert_eq!(late.kind, Kind::Conflict);
    world.workspace.advance_ms(24 * 60 * 60 * 1000);
    assert_ne!(asked(&world, "remove", remove()), id);
}

#[test]
fn a_question_and_an_answer_end_with_their_time() {
    let world = world();
    let (first, second) =
        (asked(&world, "remove", remove()), asked(&world, "remove", json!({ "path": "kept/b" })));
    approve(&world, &first);
    world.workspace.advance_ms(24 * 60 * 60 * 1000);
    let late = world.call_as(&person(), "approve", json!({ "id": second })).expect_err("its time is over");
    assert_eq!(late.kind, Kind::Conflict);
    world.fails("remove", remove(), Kind::ApprovalPending);
}

#[test]
fn only_a_person_with_the_secret_answers() {
    let world = world();
    let id = asked(&world, "remove", remove());
    let mut shown_agent = agent("one");
    shown_agent.grants.approver = Approver::Shown;
    let mut bare_person = person();
    bare_person.grants.approver = Approver::No;
    for caller in [&world.caller, &agent("two"), &shown_agent, &bare_person] {
        for answer in ["approve", "deny"] {
            let failure = world.call_as(caller, answer, json!({ "id": id })).expect_err("no person");
            assert_eq!(failure.kind, Kind::PolicyDenied, "{failure}");
        }
    }
    assert_eq!(state(&world, &id), ApprovalState::Pending);
    world.fails("remove", remove(), Kind::ApprovalPending);
}

#[test]
fn an_agent_sees_only_its_own_questions() {
    let world = world();
    let id = asked(&world, "remove", remove());
    let other = agent("two");
    let listed = world.call_as(&other, "approvals", json!({ "state": "all" })).unwrap();
    assert_eq!(listed.json["approvals"], json!([]));
    let failure = world.call_as(&other, "approvals", json!({ "id": id })).expect_err("not its own");
    assert_eq!(failure.kind, Kind::NotFound);
    let own = world.ok("approvals", json!({ "id": id })).json;
    assert_eq!(own["plan"]["changes"][0]["change"], "remove");
}

#[test]
fn a_person_sees_the_difference_before_answering() {
    let world = world();
    let version =
        world.call_as(&person(), "read", json!({ "path": "kept/a" })).unwrap().json["version"].clone();
    let id = asked(&world, "write", json!({ "path": "kept/a", "content": "three\n", "base": version }));
    let shown = world.call_as(&person(), "approvals", json!({ "id": id })).unwrap().json;
    let change = &shown["plan"]["changes"][0];
    // The rule keeps the agent from reading the file, so only the person's own look can tell.
    assert_eq!(change["path"], "kept/a");
    assert_eq!(change["size"], 6);
    assert!(change["diff"].is_string() || change["diff_note"].is_string(), "{change}");
}

#[test]
fn a_repeated_key_is_answered_from_its_entry_and_uses_nothing() {
    let world = world();
    let call = |key| {
        let Value::Object(arguments) = remove() else { panic!("an object") };
        let mut call = Call::new(&world.caller, "remove", arguments);
        call.key = Some(key);
        world.engine.call(&call)
    };
    let id = call("k").expect_err("it waits").facts["approval"].as_str().unwrap().to_owned();
    approve(&world, &id);
    let first = call("k").unwrap().json["entry"].clone();
    assert_eq!(call("k").unwrap().json["entry"], first);
    world.workspace.put_file("kept/a", "one\n");
    assert_eq!(call("other").expect_err("another call").kind, Kind::ApprovalPending);
}

#[test]
fn a_look_can_need_approval_too() {
    let world = world();
    let id = asked(&world, "read", json!({ "path": "kept/a" }));
    approve(&world, &id);
    assert_eq!(world.ok("read", json!({ "path": "kept/a" })).json["content"], "one\n");
    assert_ne!(asked(&world, "read", json!({ "path": "kept/a" })), id);
}

#[test]
fn a_call_that_holds_on_goes_on_by_itself() {
    let world = world();
    let held = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let Value::Object(arguments) = remove() else { panic!("an object") };
            let mut call = Call::new(&world.caller, "remove", arguments);
            call.control = Control::default().holding(20_000);
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
fn the_operator_may_refuse_or_allow_everything() {
    let world = world();
    let Value::Object(arguments) = remove() else { panic!("an object") };
    let ask = |asking| {
        world.engine.clone().asking(asking).call(&Call::new(&world.caller, "remove", arguments.clone()))
    };
    assert_eq!(ask(Asking::Deny).expect_err("nobody is asked").kind, Kind::ApprovalDenied);
    assert_eq!(
        world.engine.workspace().approvals(&ApprovalFilter { limit: 9, ..Default::default() }).unwrap(),
        []
    );
    let entry = ask(Asking::Allow).unwrap().json["entry"].as_u64().unwrap();
    let recorded = world.engine.workspace().entry(entry).unwrap().unwrap().entry;
    assert_eq!(recorded.approval.as_deref(), Some("operator"));
}

#[test]
fn questions_are_bounded() {
    let world = world();
    for number in 0..engine::limits::APPROVALS_PENDING_MAX {
        let path = format!("kept/{number}");
        world.workspace.put_file(&path, "x");
        world.fails("remove", json!({ "path": path }), Kind::ApprovalPending);
    }
    world.fails("remove", remove(), Kind::TooMany);
}

/// The first change of a question, as a person sees it.
fn shown(world: &World, id: &str) -> Value {
    world.call_as(&person(), "approvals", json!({ "id": id })).unwrap().json["plan"]["changes"][0].clone()
}

#[test]
fn what_a_removal_would_lose_is_shown_as_far_as_it_goes() {
    let world = world();
    let change = shown(&world, &asked(&world, "remove", remove()));
    assert_eq!((&change["change"], &change["type"]), (&json!("remove"), &json!("file")));
    assert_eq!(
        (&change["files"], &change["bytes"], &change["recoverable_hours"]),
        (&json!(1), &json!(4), &json!(24))
    );
    assert_eq!(change["diff"], "--- kept/a\n+++ nothing\n@@ -1 +0,0 @@\n-one\n");

    world.workspace.put_file("kept/bytes", [0, 159, 146, 150]);
    let binary = shown(&world, &asked(&world, "remove", json!({ "path": "kept/bytes" })));
    assert_eq!((&binary["diff_note"], binary.get("diff")), (&json!("not text"), None));

    let lines = engine::limits::APPROVAL_DIFF_LINES_MAX;
    world.workspace.put_file("kept/long", "x\n".repeat(lines + 7));
    let long = shown(&world, &asked(&world, "remove", json!({ "path": "kept/long" })));
    assert!(long["diff"].as_str().unwrap().lines().count() <= lines + 3);
    assert!(
        long["diff_note"].as_str().unwrap().ends_with("more lines are not shown"),
        "{}",
        long["diff_note"]
    );

    world.workspace.put_file("kept/large", vec![b'x'; 2 << 20]);
    let large = shown(&world, &asked(&world, "remove", json!({ "path": "kept/large" })));
    assert_eq!(large["diff_note"], "the present file is too large to show");

    let link = "kept/way";
    world.workspace.put_link(link, "a");
    let link = shown(&world, &asked(&world, "remove", json!({ "path": link })));
    assert_eq!((&link["type"], &link["target"]), (&json!("link"), &json!("a")));
}

#[test]
fn what_a_removed_directory_holds_is_shown_as_far_as_it_may_be_seen() {
    let world = world();
    let most = engine::limits::APPROVAL_FILES_SHOWN;
    for number in 0..most + 2 {
        world.workspace.put_file(&format!("kept/d/{number:04}"), "12345");
    }
    let arguments = json!({ "path": "kept/d", "recursive": true });
    let unseen = shown(&world, &asked(&world, "remove", arguments.clone()));
    assert_eq!(unseen["holds"], json!([]));
    let note = format!("{} that the caller may not read are not shown", most + 2);
    assert_eq!(unseen["holds_note"], json!(note));
    // Rules that are about removing alone hide nothing.
    world.workspace.set_policy(&ASK.replace(", \"read\"", ""));
    let tree = shown(&world, &asked(&world, "remove", arguments));
    assert_eq!(tree["holds"].as_array().unwrap().len(), most);
    assert_eq!(tree["holds"][0], json!({ "path": "kept/d/0000", "size": 5 }));
    assert_eq!((&tree["holds_note"], &tree["files"]), (&json!("2 more are not shown"), &json!(most + 2)));
}

#[test]
fn an_agent_that_spells_a_place_outside_is_recorded_as_one_that_tries_to_get_out() {
    let world = world();
    for path in ["../x", "/etc/passwd", "a/../../b"] {
        let failure = world.fails("read", json!({ "path": path }), Kind::InvalidPath);
        assert!(!failure.facts.contains_key("path"), "{failure}");
        let head = world.engine.workspace().head().unwrap();
        let entry = world.engine.workspace().entry(head.number).unwrap().unwrap().entry;
        assert_eq!(entry.reason.as_deref(), Some("path_escape"), "{path}");
    }
    for (caller, path) in [(person(), "../x"), (world.caller.clone(), "")] {
        world.call_as(&caller, "read", json!({ "path": path })).unwrap_err();
        let head = world.engine.workspace().head().unwrap();
        let entry = world.engine.workspace().entry(head.number).unwrap().unwrap().entry;
        assert_eq!(entry.reason.as_deref(), Some("invalid_path"), "{path}");
    }
}
