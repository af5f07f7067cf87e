//! Conformance tests of jumps of the wall clock. While the machine runs, the steady clock decides when a lease or an
//! approval ends. After a restart of the machine, the wall clock decides.

use stead_engine::{ApprovalState, PlannedChange, RequiredUsageFreshness};

use super::{
    ConformanceWorkspaceFactory,
    TestClockChange::{self, Advance, Reboot, WallClockJump},
    WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest,
    approval::{approval_state, request_approval},
    lease::{acquire_lease, lease_holders},
    rel_path, single_file_tree,
};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("a jump of the wall clock ends nothing and prolongs nothing", wall_clock_jumps_change_no_duration),
    ("a jump of the wall clock purges no trash", wall_clock_jump_purges_no_trash),
];

const HOUR_MS: i64 = 60 * 60 * 1000;
/// The duration of the lease and of the approval request.
const DURATION_MS: i64 = 60_000;

fn wall_clock_jumps_change_no_duration(factory: &dyn ConformanceWorkspaceFactory) {
    let cases: &[(&[TestClockChange], bool, ApprovalState)] = &[
        (&[WallClockJump(48 * HOUR_MS)], true, ApprovalState::Pending),
        (&[WallClockJump(-48 * HOUR_MS)], true, ApprovalState::Pending),
        (&[WallClockJump(-48 * HOUR_MS), Advance(DURATION_MS - 1)], true, ApprovalState::Pending),
        (&[WallClockJump(-48 * HOUR_MS), Advance(DURATION_MS)], false, ApprovalState::Expired),
        (&[WallClockJump(48 * HOUR_MS), Advance(DURATION_MS - 1)], true, ApprovalState::Pending),
        (&[Reboot], true, ApprovalState::Pending),
        (&[Reboot, Advance(DURATION_MS - 1)], true, ApprovalState::Pending),
        (&[Reboot, Advance(DURATION_MS)], false, ApprovalState::Expired),
        (&[Reboot, WallClockJump(48 * HOUR_MS)], false, ApprovalState::Expired),
        // The age of a request from the future is unknown, so the request is not used.
        (&[Reboot, WallClockJump(-1)], true, ApprovalState::Expired),
    ];
    for (changes, is_leased, state) in cases {
        let fixture = WorkspaceUnderConformanceTest::new(factory);
        acquire_lease(&fixture, "d", DURATION_MS).unwrap();
        let approval = request_approval(&fixture, "p").id;
        changes.iter().for_each(|change| factory.change_clock(*change));
        let seen = |fixture: &WorkspaceUnderConformanceTest| {
            (!lease_holders(fixture, "d").is_empty(), approval_state(fixture, &approval))
        };
        assert_eq!(seen(&fixture), (*is_leased, *state), "{changes:?}");
        assert_eq!(seen(&fixture.reopen(factory)), (*is_leased, *state), "{changes:?}, opened again");
    }
}

fn wall_clock_jump_purges_no_trash(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("f", b"12345");
    let remove = PlannedChange::Remove {
        path: rel_path("f"),
        expectation: fixture.expect_observed_file("f"),
        retain_until_ms: fixture.workspace.now_ms() + HOUR_MS,
        tree: single_file_tree(5),
    };
    let id = fixture.commit(vec![remove]).trash_ids.remove(0);
    let recount_and_look = |fixture: &WorkspaceUnderConformanceTest| {
        fixture.workspace.principal_usage(&fixture.caller.principal, RequiredUsageFreshness::Recount).unwrap();
        fixture.workspace.trash_item(&id).unwrap().is_some()
    };
    factory.change_clock(WallClockJump(48 * HOUR_MS));
    assert!(recount_and_look(&fixture));
    let fixture = fixture.reopen(factory);
    assert!(recount_and_look(&fixture));
    factory.change_clock(WallClockJump(-48 * HOUR_MS));
    factory.change_clock(Advance(2 * HOUR_MS));
    assert!(!recount_and_look(&fixture));
}
