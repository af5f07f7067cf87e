//! Conformance tests of administration: listing and purging the trash.

use stead_engine::{
    AdministrationCall, CallControl, Caller, Error, ErrorKind, PlannedChange, Principal,
    ops::{ListTrashArgs, PurgeTrashArgs},
};

use super::{
    ConformanceWorkspaceFactory, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest, assert_commit_fails,
    assert_fails, rel_path, remove_change, single_file_tree,
};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("the trash is listed for its owner or for everybody", trash_is_listed),
    ("purged items are gone, and the purge is recorded", purged_items_are_gone),
    ("a purge with one wrong id deletes nothing", wrong_id_deletes_nothing),
    ("the trash of one owner or of everybody is purged", whole_trash_is_purged),
    ("no approver's secret is set at first", no_approver_secret_at_first),
];

const OWN_TRASH: ListTrashArgs = ListTrashArgs { all: false };
const ALL_TRASH: ListTrashArgs = ListTrashArgs { all: true };

fn ann() -> Caller {
    Caller::new(Principal::User("ann".to_owned()), "session", "test")
}

/// Runs a call of administration by `user:ann`.
fn call_as_ann<T>(operation: &'static str, run: impl FnOnce(&AdministrationCall<'_>) -> T) -> T {
    run(&AdministrationCall { caller: &ann(), control: &CallControl::default(), operation })
}

fn listed_paths(factory: &dyn ConformanceWorkspaceFactory, args: &ListTrashArgs) -> Vec<String> {
    let listed = call_as_ann("trash.list", |call| factory.administration().list_trash(args, call));
    listed.unwrap().items.into_iter().map(|item| format!("{} {}", item.owner, item.path)).collect()
}

fn purge(factory: &dyn ConformanceWorkspaceFactory, args: &PurgeTrashArgs) -> Result<u64, Error> {
    call_as_ann("trash.purge", |call| factory.administration().purge_trash(args, call)).map(|outcome| outcome.deleted)
}

fn purge_ids(ids: &[&String]) -> PurgeTrashArgs {
    PurgeTrashArgs { ids: ids.iter().map(|id| (*id).clone()).collect(), mine: false, all: false }
}

/// Removes the files `a` and `b` as `user:ann` and `c` as an agent, and returns their trash ids.
fn fixture_with_trash(factory: &dyn ConformanceWorkspaceFactory) -> (WorkspaceUnderConformanceTest, [String; 3]) {
    let agent = WorkspaceUnderConformanceTest::new(factory);
    let user = WorkspaceUnderConformanceTest { workspace: agent.workspace.clone(), caller: ann() };
    let ids = [("a", &user), ("b", &user), ("c", &agent)].map(|(path, owner)| {
        owner.create_file(path, b"12345");
        let change = remove_change(path, owner.expect_observed_file(path), single_file_tree(5));
        owner.commit(vec![change]).trash_ids.remove(0)
    });
    (user, ids)
}

fn trash_is_listed(factory: &dyn ConformanceWorkspaceFactory) {
    let (fixture, ids) = fixture_with_trash(factory);
    assert_eq!(listed_paths(factory, &OWN_TRASH), ["user:ann b", "user:ann a"], "newest first");
    assert_eq!(listed_paths(factory, &ALL_TRASH), ["agent:one c", "user:ann b", "user:ann a"]);
    let item = fixture.workspace.trash_item(&ids[0]).unwrap().unwrap();
    let listed = call_as_ann("trash.list", |call| factory.administration().list_trash(&OWN_TRASH, call));
    let listed = listed.unwrap().items.pop().unwrap();
    assert_eq!((listed.trash, listed.files, listed.bytes, listed.entry), (item.id, 1, 5, item.entry));
    assert_eq!((listed.removed.unix_ms, listed.recoverable_until.unix_ms), (item.removed_ms, item.retain_until_ms));
}

fn purged_items_are_gone(factory: &dyn ConformanceWorkspaceFactory) {
    let (fixture, ids) = fixture_with_trash(factory);
    let before = fixture.head_number();
    assert_eq!(purge(factory, &purge_ids(&[&ids[0]])).unwrap(), 1);
    let entry = fixture.entry(fixture.head_number());
    assert_eq!((entry.number, entry.operation.as_str()), (before + 1, "trash.purge"));
    assert_eq!((entry.caller.principal.as_str(), entry.changes), ("user:ann", Vec::new()));
    assert_eq!(fixture.workspace.trash_item(&ids[0]).unwrap(), None);
    assert_eq!(fixture.workspace.storage_usage().unwrap().trash_items, 2);
    let change = PlannedChange::Restore { trash: ids[0].clone(), path: rel_path("a"), tree: single_file_tree(5) };
    assert_commit_fails(fixture.try_commit(vec![change]), ErrorKind::NotFound);
    assert_fails(purge(factory, &purge_ids(&[&ids[0]])), ErrorKind::NotFound);
    let fixture = fixture.reopen(factory);
    assert_eq!(fixture.workspace.trash(None).unwrap().len(), 2);
}

fn wrong_id_deletes_nothing(factory: &dyn ConformanceWorkspaceFactory) {
    let (fixture, ids) = fixture_with_trash(factory);
    let unknown = "t-none".to_owned();
    for (wrong, kind) in [(&ids[2], ErrorKind::NotOwner), (&unknown, ErrorKind::NotFound)] {
        fixture.assert_refused(kind, || purge(factory, &purge_ids(&[&ids[0], wrong])));
    }
    assert_eq!(fixture.workspace.trash(None).unwrap().len(), 3);
    assert_eq!(
        purge(factory, &PurgeTrashArgs { all: true, ..purge_ids(&[&ids[0], &ids[2]]) }).unwrap(),
        2,
        "all includes items of others"
    );
}

fn whole_trash_is_purged(factory: &dyn ConformanceWorkspaceFactory) {
    let (fixture, ids) = fixture_with_trash(factory);
    let neither = || purge_ids(&[]);
    let mine = || PurgeTrashArgs { mine: true, ..neither() };
    for wrong in
        [neither(), PurgeTrashArgs { all: true, ..mine() }, PurgeTrashArgs { mine: true, ..purge_ids(&[&ids[0]]) }]
    {
        fixture.assert_refused(ErrorKind::BadRequest, || purge(factory, &wrong));
    }
    assert_eq!(purge(factory, &mine()).unwrap(), 2);
    assert_eq!(listed_paths(factory, &ALL_TRASH), ["agent:one c"]);
    assert_eq!(purge(factory, &PurgeTrashArgs { all: true, ..neither() }).unwrap(), 1);
    assert_eq!(fixture.workspace.trash(None).unwrap(), Vec::new());
}

fn no_approver_secret_at_first(factory: &dyn ConformanceWorkspaceFactory) {
    let _fixture = WorkspaceUnderConformanceTest::new(factory);
    assert!(!factory.administration().has_approver_secret().unwrap());
}
