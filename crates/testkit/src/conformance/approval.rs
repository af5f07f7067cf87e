//! Questions to people: kept once, answered once, used once, and there again after a restart.

use engine::{
    Approval, ApprovalAnswer, ApprovalAsk, ApprovalFilter, ApprovalState, CommitError, Expect, Kind, Plan,
    Record, Say,
};
use journal::Digest;

use super::{Bench, Cases, Maker, put};

pub(super) const CASES: Cases = &[
    ("a question is kept once and answered once", answered_once),
    ("a yes is used once", used_once),
    ("another plan makes a question stale", superseded),
    ("questions and answers outlive a restart", lasting),
];

fn ask(bench: &Bench, plan: &str) -> Approval {
    bench
        .workspace
        .ask(&ApprovalAsk {
            principal: bench.caller.principal.to_string(),
            session: "s".to_owned(),
            operation: "write".to_owned(),
            tool: None,
            call: Digest::of(b"call"),
            plan: Digest::of(plan.as_bytes()),
            shown: "{}".to_owned(),
            why: "a test".to_owned(),
            policy: u64::MAX,
            lasting_ms: 60_000,
        })
        .unwrap()
}

fn answer(bench: &Bench, id: &str, say: Say) -> Result<Approval, Kind> {
    let answer = ApprovalAnswer { id: id.to_owned(), say, reason: Some("so".to_owned()) };
    let answered = bench.workspace.answer(&answer, &bench.record("approve", None));
    answered.map(|(approval, _)| approval).map_err(|failure| failure.kind)
}

fn state(bench: &Bench, id: &str) -> ApprovalState {
    bench.workspace.approval(id).unwrap().unwrap().state
}

fn use_up(bench: &Bench, id: &str, path: &str) -> Result<(), Kind> {
    let record = Record { approval: Some(id.to_owned()), ..bench.record("write", None) };
    match bench.workspace.commit(&Plan::of(vec![put(path, Expect::Absent, b"x")]), &record) {
        Ok(_) => Ok(()),
        Err(CommitError::Failed(failure)) => Err(failure.kind),
        Err(other) => panic!("{other:?}"),
    }
}

fn answered_once(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let first = ask(&bench, "p");
    assert_eq!(first.state, ApprovalState::Pending);
    assert_eq!(ask(&bench, "p").id, first.id);
    assert_eq!(bench.workspace.approval("ap-none").unwrap(), None);
    let denied = answer(&bench, &first.id, Say::No).unwrap();
    assert_eq!((denied.state, denied.asked.policy), (ApprovalState::Denied, u64::MAX));
    assert_eq!(denied.answered.unwrap().reason.as_deref(), Some("so"));
    assert_eq!(answer(&bench, &first.id, Say::Yes), Err(Kind::Conflict));
    assert_eq!(answer(&bench, "ap-none", Say::Yes), Err(Kind::NotFound));
}

fn used_once(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let id = ask(&bench, "p").id;
    assert_eq!(use_up(&bench, &id, "a"), Err(Kind::ApprovalStale), "nobody has said yes");
    answer(&bench, &id, Say::Yes).unwrap();
    let others = bench.and("other");
    assert_eq!(use_up(&others, &id, "a"), Err(Kind::ApprovalStale), "it is somebody else's");
    assert_eq!(use_up(&bench, &id, "a"), Ok(()));
    assert_eq!(state(&bench, &id), ApprovalState::Used);
    let before = bench.workspace.head().unwrap();
    assert_eq!(use_up(&bench, &id, "b"), Err(Kind::ApprovalStale), "it is used up");
    assert_eq!(bench.workspace.head().unwrap(), before, "a refused commit leaves nothing");
}

fn superseded(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let first = ask(&bench, "p").id;
    answer(&bench, &first, Say::Yes).unwrap();
    let second = ask(&bench, "q").id;
    assert_ne!(first, second);
    assert_eq!(state(&bench, &first), ApprovalState::Stale);
    assert_eq!(use_up(&bench, &first, "a"), Err(Kind::ApprovalStale));
    let filter = ApprovalFilter { call: Some(Digest::of(b"call")), limit: 9, ..ApprovalFilter::default() };
    let ids: Vec<String> =
        bench.workspace.approvals(&filter).unwrap().into_iter().map(|approval| approval.id).collect();
    assert_eq!(ids, [second, first], "newest first");
}

fn lasting(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let id = ask(&bench, "p").id;
    let bench = bench.reopened(maker);
    assert_eq!(state(&bench, &id), ApprovalState::Pending);
    answer(&bench, &id, Say::Yes).unwrap();
    let bench = bench.reopened(maker);
    assert_eq!(use_up(&bench, &id, "a"), Ok(()));
    let bench = bench.reopened(maker);
    assert_eq!(state(&bench, &id), ApprovalState::Used);
}
