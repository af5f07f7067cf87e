//! Approvals: stored once, answered once, used once, and present after a restart.

use stead_engine::{
    Approval, ApprovalAnswer, ApprovalDecision, ApprovalFilter, ApprovalRequest, ApprovalState, CallRecord,
    CommitError, CommitExpectation, ErrorKind, Plan,
};
use stead_journal::Digest;

use super::{ConformanceCaseTable, WorkspaceFactory, WorkspaceFixture, put_change};

pub(super) const CASES: ConformanceCaseTable = &[
    ("a question is kept once and answered once", approval_is_answered_once),
    ("a yes is used once", approval_is_used_once),
    ("another plan makes a question stale", another_plan_makes_approval_stale),
    ("questions and answers outlive a restart", approvals_survive_reopening),
];

fn request_approval(bench: &WorkspaceFixture, plan: &str) -> Approval {
    bench
        .workspace
        .request_approval(&ApprovalRequest {
            principal: bench.caller.principal.to_string(),
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

fn answer_approval(bench: &WorkspaceFixture, id: &str, say: ApprovalDecision) -> Result<Approval, ErrorKind> {
    let answer = ApprovalAnswer { id: id.to_owned(), decision: say, reason: Some("so".to_owned()) };
    let answered = bench.workspace.answer_approval(&answer, &bench.journal_record("approve", None));
    answered.map(|(approval, _)| approval).map_err(|failure| failure.kind)
}

fn approval_state(bench: &WorkspaceFixture, id: &str) -> ApprovalState {
    bench.workspace.approval(id).unwrap().unwrap().state
}

fn use_approval(bench: &WorkspaceFixture, id: &str, path: &str) -> Result<(), ErrorKind> {
    let record = CallRecord { approval: Some(id.to_owned()), ..bench.journal_record("write", None) };
    match bench.workspace.commit(&Plan::new(vec![put_change(path, CommitExpectation::Absent, b"x")]), &record) {
        Ok(_) => Ok(()),
        Err(CommitError::Failed(failure)) => Err(failure.kind),
        Err(other) => panic!("{other:?}"),
    }
}

fn approval_is_answered_once(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    let first = request_approval(&bench, "p");
    assert_eq!(first.state, ApprovalState::Pending);
    assert_eq!(request_approval(&bench, "p").id, first.id);
    assert_eq!(bench.workspace.approval("ap-none").unwrap(), None);
    let denied = answer_approval(&bench, &first.id, ApprovalDecision::Deny).unwrap();
    assert_eq!((denied.state, denied.request.policy_version), (ApprovalState::Denied, u64::MAX));
    assert_eq!(denied.resolution.unwrap().reason.as_deref(), Some("so"));
    assert_eq!(answer_approval(&bench, &first.id, ApprovalDecision::Approve), Err(ErrorKind::Conflict));
    assert_eq!(answer_approval(&bench, "ap-none", ApprovalDecision::Approve), Err(ErrorKind::NotFound));
}

fn approval_is_used_once(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    let id = request_approval(&bench, "p").id;
    assert_eq!(use_approval(&bench, &id, "a"), Err(ErrorKind::ApprovalStale), "nobody has said yes");
    answer_approval(&bench, &id, ApprovalDecision::Approve).unwrap();
    let others = bench.with_other_agent("other");
    assert_eq!(use_approval(&others, &id, "a"), Err(ErrorKind::ApprovalStale), "it is somebody else's");
    assert_eq!(use_approval(&bench, &id, "a"), Ok(()));
    assert_eq!(approval_state(&bench, &id), ApprovalState::Used);
    let before = bench.workspace.head().unwrap();
    assert_eq!(use_approval(&bench, &id, "b"), Err(ErrorKind::ApprovalStale), "it is used up");
    assert_eq!(bench.workspace.head().unwrap(), before, "a refused commit leaves nothing");
}

fn another_plan_makes_approval_stale(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    let first = request_approval(&bench, "p").id;
    answer_approval(&bench, &first, ApprovalDecision::Approve).unwrap();
    let second = request_approval(&bench, "q").id;
    assert_ne!(first, second);
    assert_eq!(approval_state(&bench, &first), ApprovalState::Stale);
    assert_eq!(use_approval(&bench, &first, "a"), Err(ErrorKind::ApprovalStale));
    let filter = ApprovalFilter { call_digest: Some(Digest::sha256(b"call")), limit: 9, ..ApprovalFilter::default() };
    let ids: Vec<String> =
        bench.workspace.approvals(&filter).unwrap().into_iter().map(|approval| approval.id).collect();
    assert_eq!(ids, [second, first], "newest first");
}

fn approvals_survive_reopening(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    let id = request_approval(&bench, "p").id;
    let bench = bench.reopen(maker);
    assert_eq!(approval_state(&bench, &id), ApprovalState::Pending);
    answer_approval(&bench, &id, ApprovalDecision::Approve).unwrap();
    let bench = bench.reopen(maker);
    assert_eq!(use_approval(&bench, &id, "a"), Ok(()));
    let bench = bench.reopen(maker);
    assert_eq!(approval_state(&bench, &id), ApprovalState::Used);
}
