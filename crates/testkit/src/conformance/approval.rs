//! Conformance tests of approvals: stored once, answered once, used once, and present after a restart.

use stead_engine::{
    Approval, ApprovalAnswer, ApprovalDecision, ApprovalFilter, ApprovalRequest, ApprovalState, CommitError,
    CommitExpectation, ErrorKind, JournalCallRecord, Plan,
};
use stead_journal::Digest;

use super::{ConformanceWorkspaceFactory, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest, put_change};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("a question is kept once and answered once", approval_is_answered_once),
    ("a yes is used once", approval_is_used_once),
    ("another plan makes a question stale", another_plan_makes_approval_stale),
    ("questions and answers outlive a restart", approvals_survive_reopening),
];

fn request_approval(fixture: &WorkspaceUnderConformanceTest, plan: &str) -> Approval {
    fixture
        .workspace
        .request_approval(&ApprovalRequest {
            principal: fixture.caller.principal.to_string(),
            session: "s".to_owned(),
            operation: "write".to_owned(),
            tool: None,
            call_digest: Digest::sha256(b"call"),
            plan_digest: Digest::sha256(plan.as_bytes()),
            plan_preview: "{}".to_owned(),
            reason: "a test".to_owned(),
            policy_version: u64::MAX,
            valid_for_ms: 60_000,
        })
        .unwrap()
}

fn answer_approval(
    fixture: &WorkspaceUnderConformanceTest,
    id: &str,
    say: ApprovalDecision,
) -> Result<Approval, ErrorKind> {
    let answer = ApprovalAnswer { id: id.to_owned(), decision: say, reason: Some("so".to_owned()) };
    let answered = fixture.workspace.answer_approval(&answer, &fixture.journal_record("approve", None));
    answered.map(|(approval, _)| approval).map_err(|failure| failure.kind)
}

fn approval_state(fixture: &WorkspaceUnderConformanceTest, id: &str) -> ApprovalState {
    fixture.workspace.approval(id).unwrap().unwrap().state
}

fn use_approval(fixture: &WorkspaceUnderConformanceTest, id: &str, path: &str) -> Result<(), ErrorKind> {
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
