//! Conformance tests of concurrent calls, in one opening and in two openings of the same state. Each case has exactly
//! one possible result, whatever the order of the calls.

use std::sync::Barrier;

use stead_engine::{
    ApprovalDecision, CommitError, CommitExpectation, ErrorKind, FailedExpectation, Plan, RequiredUsageFreshness,
    StorageQuotaLimits,
};
use stead_journal::JournalEntryRelation;

use super::{
    ConformanceWorkspaceFactory, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest,
    approval::{answer_approval, request_approval, use_approval},
    buffers, journal,
    lease::{LONG_MS, acquire_lease},
    put_change,
    quota::{UNLIMITED_QUOTA, commit_under_quota, usage_of},
};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("concurrent calls write one chain", |factory| calls_write_one_chain(&one_opening(factory))),
    ("one of several concurrent calls creates a file", |factory| one_call_creates_a_file(&one_opening(factory))),
    ("one of several concurrent calls uses a key", |factory| one_call_uses_a_key(&one_opening(factory))),
    ("one of several concurrent calls uses an approval", |factory| one_call_uses_an_approval(&one_opening(factory))),
    ("one of several concurrent callers gets a lease", |factory| one_caller_gets_a_lease(&one_opening(factory))),
    ("one of several concurrent editors opens a file", |factory| one_editor_opens_a_file(&one_opening(factory))),
    ("concurrent calls fill a quota exactly", |factory| calls_fill_a_quota(&one_opening(factory))),
];

pub(super) const TWO_OPENINGS_CASES: WorkspaceConformanceCaseTable = &[
    ("concurrent calls of two openings write one chain", |factory| calls_write_one_chain(&two_openings(factory))),
    ("one call of two openings creates a file", |factory| one_call_creates_a_file(&two_openings(factory))),
    ("one call of two openings uses a key", |factory| one_call_uses_a_key(&two_openings(factory))),
    ("one call of two openings uses an approval", |factory| one_call_uses_an_approval(&two_openings(factory))),
    ("one caller of two openings gets a lease", |factory| one_caller_gets_a_lease(&two_openings(factory))),
    ("one editor of two openings opens a file", |factory| one_editor_opens_a_file(&two_openings(factory))),
    ("concurrent calls of two openings fill a quota exactly", |factory| calls_fill_a_quota(&two_openings(factory))),
];

const CALLS: usize = 8;

fn one_opening(factory: &dyn ConformanceWorkspaceFactory) -> Vec<WorkspaceUnderConformanceTest> {
    vec![WorkspaceUnderConformanceTest::new(factory)]
}

fn two_openings(factory: &dyn ConformanceWorkspaceFactory) -> Vec<WorkspaceUnderConformanceTest> {
    let first = WorkspaceUnderConformanceTest::new(factory);
    let second = first.with_second_opening(factory);
    vec![first, second]
}

/// Makes all calls at the same time, by turns in each opening, and returns their results.
fn make_calls<T: Send>(
    openings: &[WorkspaceUnderConformanceTest],
    call: impl Fn(&WorkspaceUnderConformanceTest, usize) -> T + Sync,
) -> Vec<T> {
    let start = Barrier::new(CALLS);
    std::thread::scope(|scope| {
        let run = |number: usize| {
            let (start, call) = (&start, &call);
            let opening = &openings[number % openings.len()];
            scope.spawn(move || {
                start.wait();
                call(opening, number)
            })
        };
        let running: Vec<_> = (0..CALLS).map(run).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[track_caller]
fn assert_one_succeeds<E: std::fmt::Debug + PartialEq>(results: Vec<Result<(), E>>, error: &E) {
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    assert!(results.iter().all(|result| result.as_ref().err().is_none_or(|found| found == error)), "{results:?}");
}

fn new_file_plan(path: &str) -> Plan {
    Plan::new(vec![put_change(path, CommitExpectation::Absent, path.as_bytes())])
}

fn calls_write_one_chain(openings: &[WorkspaceUnderConformanceTest]) {
    let mut numbers = make_calls(openings, |opening, number| {
        opening.workspace.record_call(&opening.journal_record("read", None)).unwrap();
        opening.create_file(&format!("f{number}"), b"x")
    });
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), CALLS);
    for opening in openings {
        opening.head_number();
    }
    for opening in openings {
        assert_eq!((opening.list_tree().len(), opening.head_number()), (CALLS, 2 * CALLS as u64));
        journal::check_chain(opening);
    }
}

fn one_call_creates_a_file(openings: &[WorkspaceUnderConformanceTest]) {
    let results = make_calls(openings, |opening, number| {
        let bytes = number.to_string();
        match opening.try_commit(vec![put_change("f", CommitExpectation::Absent, bytes.as_bytes())]) {
            Ok(_) => Ok(()),
            Err(CommitError::ExpectationFailed(FailedExpectation::Path(path))) => Err(path.to_string()),
            Err(other) => panic!("{other:?}"),
        }
    });
    let winner = results.iter().position(Result::is_ok).unwrap();
    assert_one_succeeds(results, &"f".to_owned());
    assert_eq!((openings[0].read_bytes("f"), openings[0].head_number()), (winner.to_string().into_bytes(), 1));
}

fn one_call_uses_a_key(openings: &[WorkspaceUnderConformanceTest]) {
    let results = make_calls(openings, |opening, number| {
        match opening.try_plan(&new_file_plan(&format!("f{number}")), Some("key")) {
            Ok(_) => Ok(()),
            Err(CommitError::KeyAlreadyUsed(number)) => Err(number),
            Err(other) => panic!("{other:?}"),
        }
    });
    assert_one_succeeds(results, &1);
    assert_eq!((openings[0].list_tree().len(), openings[0].head_number()), (1, 1));
}

fn one_call_uses_an_approval(openings: &[WorkspaceUnderConformanceTest]) {
    let id = request_approval(&openings[0], "p").id;
    answer_approval(&openings[0], &id, ApprovalDecision::Approve).unwrap();
    let results = make_calls(openings, |opening, number| use_approval(opening, &id, &format!("f{number}")));
    assert_one_succeeds(results, &ErrorKind::ApprovalStale);
    assert_eq!(openings[0].list_tree().len(), 1);
}

fn one_caller_gets_a_lease(openings: &[WorkspaceUnderConformanceTest]) {
    let results = make_calls(openings, |opening, number| {
        let caller = opening.with_other_agent(&format!("agent{number}"));
        acquire_lease(&caller, "f", LONG_MS).map(drop).map_err(|error| error.kind)
    });
    assert_one_succeeds(results, &ErrorKind::Locked);
}

fn one_editor_opens_a_file(openings: &[WorkspaceUnderConformanceTest]) {
    let results = make_calls(openings, |opening, _| {
        buffers::open_buffer(opening, "f", b"typed").map(drop).map_err(|error| error.kind)
    });
    assert_one_succeeds(results, &ErrorKind::Exists);
}

fn calls_fill_a_quota(openings: &[WorkspaceUnderConformanceTest]) {
    usage_of(&openings[0], RequiredUsageFreshness::RecountIfStale);
    let limit = StorageQuotaLimits { files: Some(CALLS as u64 / 2), ..UNLIMITED_QUOTA };
    let results = make_calls(openings, |opening, number| {
        let changes = new_file_plan(&format!("f{number}")).changes;
        commit_under_quota(opening, limit, changes, JournalEntryRelation::None).map(drop)
    });
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), CALLS / 2, "{results:?}");
    assert!(results.iter().all(|result| matches!(result, Ok(()) | Err(ErrorKind::QuotaExceeded))), "{results:?}");
    assert_eq!(usage_of(&openings[0], RequiredUsageFreshness::Cached).1, CALLS as u64 / 2);
    assert_eq!(openings[0].list_tree().len(), CALLS / 2);
}
