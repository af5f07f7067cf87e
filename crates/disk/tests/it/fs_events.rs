//! Tests file watches: a change is queued when the call that made it returns, and nothing outside the workspace is
//! watched.

use std::{
    fs,
    os::unix::fs::symlink,
    time::{Duration, Instant},
};

use stead_disk::fs_events::{
    FsEvent, FsEventDrainEndReason, FsEventFileType, FsEventKind, FsEventQueue, FsEventQueueWaker, InotifyWatchId,
};

use crate::fixture::{BOTH_RESOLVERS, DiskFixture, kind, name, rel_path};

fn drain_events(watch: &FsEventQueue) -> Vec<FsEvent> {
    let mut events = Vec::new();
    assert_eq!(watch.drain(&mut events).unwrap(), FsEventDrainEndReason::Complete);
    events
}

fn drain_names_and_kinds(watch: &FsEventQueue) -> Vec<(String, FsEventKind)> {
    let summary = |event: FsEvent| (event.name.map(|name| name.to_string()).unwrap_or_default(), event.kind);
    drain_events(watch).into_iter().map(summary).collect()
}

#[test]
fn events_arrive_immediately_and_in_order() {
    let f = DiskFixture::new();
    f.file("d/a", "1");
    let root = f.root(BOTH_RESOLVERS[0]);
    let directory = root.open_directory(&rel_path("d")).unwrap();
    let watch = FsEventQueue::new(&directory).unwrap();
    let id = watch.watch_directory(&directory).unwrap();
    assert_eq!(watch.watch_directory(&root.open_directory(&rel_path("d")).unwrap()).unwrap(), id);
    assert!(!watch.wait(Duration::ZERO).unwrap());
    assert_eq!(drain_events(&watch), []);

    fs::write(f.workspace.join("d/b"), "2").unwrap();
    assert!(watch.wait(Duration::ZERO).unwrap());
    let named = |text: &str, kind| (text.to_owned(), kind);
    assert_eq!(
        drain_names_and_kinds(&watch),
        [named("b", FsEventKind::Created), named("b", FsEventKind::Modified), named("b", FsEventKind::WriterClosed)]
    );
    fs::set_permissions(f.workspace.join("d/b"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    fs::rename(f.workspace.join("d/b"), f.workspace.join("d/c")).unwrap();
    fs::remove_file(f.workspace.join("d/a")).unwrap();
    let events = drain_names_and_kinds(&watch);
    assert_eq!(events[0], named("b", FsEventKind::AttributesChanged));
    let (FsEventKind::MovedFrom(from), FsEventKind::MovedTo(to)) = (events[1].1, events[2].1) else {
        panic!("{events:?}")
    };
    assert_eq!((from, &*events[1].0, &*events[2].0), (to, "b", "c"));
    assert_eq!(events[3], named("a", FsEventKind::Deleted));
}

#[test]
fn a_wake_ends_a_wait_and_is_not_lost() {
    let f = DiskFixture::new();
    let top = f.root_directory();
    let watch = FsEventQueue::new(&top).unwrap();
    let waker = FsEventQueueWaker::new().unwrap();
    waker.wake();
    waker.wake();
    let started = Instant::now();
    watch.wait_with_waker(&waker, Duration::from_secs(60)).unwrap();
    assert!(started.elapsed() < Duration::from_secs(30));
    let started = Instant::now();
    watch.wait_with_waker(&waker, Duration::from_millis(20)).unwrap();
    assert!(started.elapsed() >= Duration::from_millis(20), "earlier wakes end only one wait");
}

#[test]
fn events_of_children_and_of_the_watched_directory_differ() {
    let f = DiskFixture::new();
    f.directory("d");
    let directory = f.root(BOTH_RESOLVERS[0]).open_directory(&rel_path("d")).unwrap();
    let watch = FsEventQueue::new(&directory).unwrap();
    let id = watch.watch_directory(&directory).unwrap();
    f.directory("d/e");
    let expected = FsEvent {
        watch: Some(id),
        name: Some(name("e")),
        subject: FsEventFileType::Directory,
        kind: FsEventKind::Created,
    };
    assert_eq!(drain_events(&watch), [expected]);
    fs::rename(f.workspace.join("d"), f.workspace.join("x")).unwrap();
    assert_eq!(drain_names_and_kinds(&watch), [(String::new(), FsEventKind::SelfMoved)]);
    f.file("x/f", "");
    assert_eq!(drain_names_and_kinds(&watch)[0].0, "f");
    drop(directory);
    fs::remove_dir_all(f.workspace.join("x")).unwrap();
    let ends = drain_names_and_kinds(&watch);
    assert_eq!(ends[ends.len() - 2].1, FsEventKind::SelfDeleted);
    assert_eq!(ends[ends.len() - 1].1, FsEventKind::WatchRemoved);
    watch.remove_watch(id).unwrap();
}

#[test]
fn symlinks_are_not_followed_when_watching() {
    let f = DiskFixture::new();
    symlink(&f.outside, f.workspace.join("out")).unwrap();
    for resolver in BOTH_RESOLVERS {
        let root = f.root(resolver);
        let top = root.open_directory(&rel_path(".")).unwrap();
        assert_eq!(kind(top.open_directory(&name("out"))), stead_disk::DiskErrorKind::IsSymlink);
        let watch = FsEventQueue::new(&top).unwrap();
        watch.watch_directory(&top).unwrap();
        fs::write(f.outside.join("secret"), "changed").unwrap();
        assert_eq!(drain_events(&watch), []);
    }
}

#[test]
fn overflow_is_reported() {
    let f = DiskFixture::in_memory();
    let top = f.root_directory();
    let watch = FsEventQueue::new(&top).unwrap();
    watch.watch_directory(&top).unwrap();
    let most: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    for number in 0..=most {
        fs::create_dir(f.workspace.join(format!("d{number}"))).unwrap();
    }
    let (mut events, mut all) = (Vec::new(), FsEventDrainEndReason::Partial);
    while all == FsEventDrainEndReason::Partial {
        all = watch.drain(&mut events).unwrap();
    }
    let last = events.last().unwrap();
    assert_eq!((last.watch, last.kind), (None::<InotifyWatchId>, FsEventKind::Overflow));
    assert_eq!(events.len(), most + 1);
}
