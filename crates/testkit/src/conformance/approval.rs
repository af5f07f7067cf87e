//! Conformance tests of approvals: stored once, answered once, used once, and present after a restart.

use stead_engine::{
    Approval, ApprovalAnswer, ApprovalDecision, ApprovalFilter, ApprovalRequest, ApprovalState, CommitError,
    CommitExpectation, ErrorKind, JournalCallRecord, LeaseAcquireOrReleaseRequest, Plan,
};
use stead_journal::Digest;

use super::{
    ConformanceWorkspaceFactory, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest, lease, put_change,
    rel_path,
};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("a question is kept once and answered once", approval_is_answered_once),
    ("a yes is used once", approval_is_used_once),
    ("another plan makes a question stale", another_plan_makes_approval_stale),
    ("questions and answers outlive a restart", approvals_survive_reopening),
    ("a stored request is returned as it was made", approval_keeps_its_request),
    ("approvals are found by principal, call and state", approvals_are_filtered),
    ("a recorded call and a lease use an approval, a failed call does not", every_successful_call_uses_its_approval),
    ("a commit that fails keeps its approval", failed_commit_keeps_its_approval),
];

pub(super) fn approval_request(fixture: &WorkspaceUnderConformanceTest, call: &str, plan: &str) -> ApprovalRequest {
    ApprovalRequest {
        principal: fixture.caller.principal.to_string(),
        session: "s".to_owned(),
        operation: "write".to_owned(),
        tool: None,
        call_digest: Digest::sha256(call.as_bytes()),
        plan_digest: Digest::sha256(plan.as_bytes()),
        plan_preview: "{}".to_owned(),
        reason: "a test".to_owned(),
        policy_version: u64::MAX,
        valid_for_ms: 60_000,
    }
}

pub(super) fn request_approval(fixture: &WorkspaceUnderConformanceTest, plan: &str) -> Approval {
    fixture.workspace.request_approval(&approval_request(fixture, "call", plan)).unwrap()
}

pub(super) fn answer_approval(
    fixture: &WorkspaceUnderConformanceTest,
    id: &str,
    say: ApprovalDecision,
) -> Result<Approval, ErrorKind> {
    let answer = ApprovalAnswer { id: id.to_owned(), decision: say, reason: Some("so".to_owned()) };
    let answered = fixture.workspace.answer_approval(&answer, &fixture.journal_record("approve", None));
    answered.map(|(approval, _)| approval).map_err(|failure| failure.kind)
}

pub(super) fn approval_state(fixture: &WorkspaceUnderConformanceTest, id: &str) -> ApprovalState {
    fixture.workspace.approval(id).unwrap().unwrap().state
}

pub(super) fn use_approval(fixture: &WorkspaceUnderConformanceTest, id: &str, path: &str) -> Result<(), ErrorKind> {
    let record = JournalCallRecord { approval: Some(id.to_owned()), ..fixture.journal_record("write", None) };
    match fixture.workspace.commit(&Plan::new(vec![put_change(path, CommitExpectation::Absent, b"x")]), &record) {
        Ok(_) => Ok(()),
        Err(CommitError::Failed(failure)) => Err(failure.kind),
        Err(other) => panic!("{other:?}"),
    }
}

fn approval_is_answered_once(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let first = request_approval(&fixture, "p");
    assert_eq!(first.state, ApprovalState::Pending);
    assert_eq!(request_approval(&fixture, "p").id, first.id);
    assert_eq!(fixture.workspace.approval("ap-none").unwrap(), None);
    let denied = answer_approval(&fixture, &first.id, ApprovalDecision::Deny).unwrap();
    assert_eq!((denied.state, denied.request.policy_version), (ApprovalState::Denied, u64::MAX));
    assert_eq!(denied.resolution.unwrap().reason.as_deref(), Some("so"));
    assert_eq!(answer_approval(&fixture, &first.id, ApprovalDecision::Approve), Err(ErrorKind::Conflict));
    assert_eq!(answer_approval(&fixture, "ap-none", ApprovalDecision::Approve), Err(ErrorKind::NotFound));
}

fn approval_is_used_once(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let id = request_approval(&fixture, "p").id;
    assert_eq!(use_approval(&fixture, &id, "a"), Err(ErrorKind::ApprovalStale), "the approval is still pending");
    answer_approval(&fixture, &id, ApprovalDecision::Approve).unwrap();
    let others = fixture.with_other_agent("other");
    assert_eq!(use_approval(&others, &id, "a"), Err(ErrorKind::ApprovalStale), "it is somebody else's");
    assert_eq!(use_approval(&fixture, &id, "a"), Ok(()));
    assert_eq!(approval_state(&fixture, &id), ApprovalState::Used);
    let before = fixture.workspace.head().unwrap();
    assert_eq!(use_approval(&fixture, &id, "b"), Err(ErrorKind::ApprovalStale), "it is used up");
    assert_eq!(fixture.workspace.head().unwrap(), before, "a refused commit leaves nothing");
}

fn another_plan_makes_approval_stale(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let first = request_approval(&fixture, "p").id;
    answer_approval(&fixture, &first, ApprovalDecision::Approve).unwrap();
    let second = request_approval(&fixture, "q").id;
    assert_ne!(first, second);
    assert_eq!(approval_state(&fixture, &first), ApprovalState::Stale);
    assert_eq!(use_approval(&fixture, &first, "a"), Err(ErrorKind::ApprovalStale));
    let filter = ApprovalFilter { call_digest: Some(Digest::sha256(b"call")), limit: 9, ..ApprovalFilter::default() };
    let ids: Vec<String> =
        fixture.workspace.approvals(&filter).unwrap().into_iter().map(|approval| approval.id).collect();
    assert_eq!(ids, [second, first], "newest first");
}

fn approvals_survive_reopening(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let id = request_approval(&fixture, "p").id;
    let fixture = fixture.reopen(factory);
    assert_eq!(approval_state(&fixture, &id), ApprovalState::Pending);
    answer_approval(&fixture, &id, ApprovalDecision::Approve).unwrap();
    let fixture = fixture.reopen(factory);
    assert_eq!(use_approval(&fixture, &id, "a"), Ok(()));
    let fixture = fixture.reopen(factory);
    assert_eq!(approval_state(&fixture, &id), ApprovalState::Used);
}

fn approval_keeps_its_request(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let request = ApprovalRequest {
        tool: Some("dialect/tool".to_owned()),
        plan_preview: "{\"changes\":[\"ä\"]}".to_owned(),
        ..approval_request(&fixture, "call", "p")
    };
    let stored = fixture.workspace.request_approval(&request).unwrap();
    assert_eq!((&stored.request, &stored.resolution, stored.used_by_entry), (&request, &None, None));
    assert_eq!(fixture.workspace.approval(&stored.id).unwrap().as_ref(), Some(&stored));
    let other = fixture.with_other_agent("two");
    let answered = answer_approval(&other, &stored.id, ApprovalDecision::Approve).unwrap();
    let resolution = answered.resolution.clone().unwrap();
    assert_eq!((resolution.resolved_by.as_str(), resolution.reason.as_deref()), ("agent:two", Some("so")));
    let expected = Approval { state: ApprovalState::Approved, resolution: Some(resolution), ..stored };
    assert_eq!((&answered, fixture.workspace.approval(&expected.id).unwrap()), (&expected, Some(expected.clone())));
    use_approval(&fixture, &expected.id, "f").unwrap();
    let used_by_entry = Some(fixture.head_number());
    let expected = Approval { state: ApprovalState::Used, used_by_entry, ..expected };
    assert_eq!(fixture.workspace.approval(&expected.id).unwrap(), Some(expected));
}

fn approvals_are_filtered(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let other = fixture.with_other_agent("two");
    let ask = |who: &WorkspaceUnderConformanceTest, call: &str| {
        fixture.workspace.request_approval(&approval_request(who, call, "p")).unwrap().id
    };
    let ids = [ask(&fixture, "a"), ask(&fixture, "b"), ask(&other, "a"), ask(&fixture, "c")];
    answer_approval(&fixture, &ids[1], ApprovalDecision::Deny).unwrap();
    let found = |filter: ApprovalFilter| -> Vec<usize> {
        let found = fixture.workspace.approvals(&filter).unwrap();
        found.iter().map(|approval| ids.iter().position(|id| *id == approval.id).unwrap()).collect()
    };
    let all = || ApprovalFilter { limit: 9, ..ApprovalFilter::default() };
    let (principal, call_digest) = (Some("agent:one".to_owned()), Some(Digest::sha256(b"a")));
    assert_eq!(found(all()), [3, 2, 1, 0]);
    assert_eq!(found(ApprovalFilter { limit: 2, ..all() }), [3, 2]);
    assert_eq!(found(ApprovalFilter { principal: principal.clone(), ..all() }), [3, 1, 0]);
    assert_eq!(found(ApprovalFilter { call_digest, ..all() }), [2, 0]);
    assert_eq!(found(ApprovalFilter { principal: principal.clone(), call_digest, ..all() }), [0]);
    assert_eq!(found(ApprovalFilter { state: Some(ApprovalState::Denied), ..all() }), [1]);
    let pending = Some(ApprovalState::Pending);
    assert_eq!(found(ApprovalFilter { principal, state: pending, limit: 1, ..all() }), [3]);
}

fn every_successful_call_uses_its_approval(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let approve = |plan: &str| {
        let id = request_approval(&fixture, plan).id;
        answer_approval(&fixture, &id, ApprovalDecision::Approve).unwrap();
        id
    };
    let id = approve("p");
    let record = |error_kind| {
        let base = fixture.journal_record("read", None);
        fixture.workspace.record_call(&JournalCallRecord { approval: Some(id.clone()), error_kind, ..base })
    };
    record(Some(ErrorKind::ApprovalPending)).unwrap();
    assert_eq!(approval_state(&fixture, &id), ApprovalState::Approved, "a refused call does not use its approval");
    record(None).unwrap();
    let used = fixture.workspace.approval(&id).unwrap().unwrap();
    assert_eq!((used.state, used.used_by_entry), (ApprovalState::Used, Some(fixture.head_number())));
    fixture.assert_refused(ErrorKind::ApprovalStale, || record(None));
    let id = approve("q");
    let acquire = |path: &str| {
        let ends_ms = fixture.workspace.now_ms() + lease::LONG_MS;
        let request = LeaseAcquireOrReleaseRequest::Acquire { path: rel_path(path), ends_ms };
        let record = JournalCallRecord { approval: Some(id.clone()), ..fixture.journal_record("lock", None) };
        fixture.workspace.execute_lease_request(&request, &record).map(|(_, receipt)| receipt.entry)
    };
    let number = acquire("a").unwrap();
    assert_eq!(fixture.workspace.approval(&id).unwrap().unwrap().used_by_entry, Some(number));
    fixture.assert_refused(ErrorKind::ApprovalStale, || acquire("b"));
    assert_eq!(fixture.workspace.leases(&[rel_path("b")]).unwrap(), Vec::new());
}

fn failed_commit_keeps_its_approval(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("taken", b"x");
    let id = request_approval(&fixture, "p").id;
    answer_approval(&fixture, &id, ApprovalDecision::Approve).unwrap();
    let record = JournalCallRecord { approval: Some(id.clone()), ..fixture.journal_record("write", Some("key")) };
    let plan = Plan::new(vec![put_change("taken", CommitExpectation::Absent, b"y")]);
    assert!(fixture.workspace.commit(&plan, &record).is_err());
    assert_eq!(approval_state(&fixture, &id), ApprovalState::Approved);
    assert_eq!(fixture.workspace.entry_for_idempotency_key(&fixture.caller.principal, "key").unwrap(), None);
    assert_eq!(use_approval(&fixture, &id, "free"), Ok(()));
}
