//! Watching: what happened is queued when the call that did it returns, and nothing outside can be watched.

use std::{
    fs,
    os::unix::fs::symlink,
    time::{Duration, Instant},
};

use disk::watch::{About, Bell, Drained, Event, Happened, Watch, WatchId};

use crate::fixture::{BOTH, Fixture, kind, name, rel};

fn drained(watch: &Watch) -> Vec<Event> {
    let mut events = Vec::new();
    assert_eq!(watch.drain(&mut events).unwrap(), Drained::All);
    events
}

fn said(watch: &Watch) -> Vec<(String, Happened)> {
    let shown = |event: Event| (event.name.map(|name| name.to_string()).unwrap_or_default(), event.happened);
    drained(watch).into_iter().map(shown).collect()
}

#[test]
fn what_happened_is_there_at_once_and_in_order() {
    let f = Fixture::new();
    f.file("d/a", "1");
    let root = f.root(BOTH[0]);
    let directory = root.open_directory(&rel("d")).unwrap();
    let watch = Watch::new(&directory).unwrap();
    let id = watch.add(&directory).unwrap();
    assert_eq!(watch.add(&root.open_directory(&rel("d")).unwrap()).unwrap(), id);
    assert!(!watch.wait(Duration::ZERO).unwrap());
    assert_eq!(drained(&watch), []);

    fs::write(f.ws.join("d/b"), "2").unwrap();
    assert!(watch.wait(Duration::ZERO).unwrap());
    let named = |text: &str, happened| (text.to_owned(), happened);
    assert_eq!(
        said(&watch),
        [named("b", Happened::Created), named("b", Happened::Modified), named("b", Happened::Written)]
    );
    fs::set_permissions(f.ws.join("d/b"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    fs::rename(f.ws.join("d/b"), f.ws.join("d/c")).unwrap();
    fs::remove_file(f.ws.join("d/a")).unwrap();
    let events = said(&watch);
    assert_eq!(events[0], named("b", Happened::Attributes));
    let (Happened::MovedFrom(from), Happened::MovedTo(to)) = (events[1].1, events[2].1) else {
        panic!("{events:?}")
    };
    assert_eq!((from, &*events[1].0, &*events[2].0), (to, "b", "c"));
    assert_eq!(events[3], named("a", Happened::Deleted));
}

#[test]
fn a_bell_ends_a_wait_and_is_not_lost() {
    let f = Fixture::new();
    let top = f.top();
    let watch = Watch::new(&top).unwrap();
    let bell = Bell::new().unwrap();
    bell.ring();
    bell.ring();
    let started = Instant::now();
    watch.wait_for(&bell, Duration::from_secs(60)).unwrap();
    assert!(started.elapsed() < Duration::from_secs(30));
    let started = Instant::now();
    watch.wait_for(&bell, Duration::from_millis(20)).unwrap();
    assert!(started.elapsed() >= Duration::from_millis(20), "a ring ends one wait");
}

#[test]
fn directories_and_the_watched_one_itself_are_told_apart() {
    let f = Fixture::new();
    f.directory("d");
    let directory = f.root(BOTH[0]).open_directory(&rel("d")).unwrap();
    let watch = Watch::new(&directory).unwrap();
    let id = watch.add(&directory).unwrap();
    f.directory("d/e");
    let expected = Event {
        watch: Some(id),
        name: Some(name("e")),
        about: About::Directory,
        happened: Happened::Created,
    };
    assert_eq!(drained(&watch), [expected]);
    fs::rename(f.ws.join("d"), f.ws.join("x")).unwrap();
    assert_eq!(said(&watch), [(String::new(), Happened::SelfMoved)]);
    // The handle is the directory, wherever it is now.
    f.file("x/f", "");
    assert_eq!(said(&watch)[0].0, "f");
    drop(directory);
    fs::remove_dir_all(f.ws.join("x")).unwrap();
    let ends = said(&watch);
    assert_eq!(ends[ends.len() - 2].1, Happened::SelfDeleted);
    assert_eq!(ends[ends.len() - 1].1, Happened::Ended);
    watch.remove(id).unwrap();
}

#[test]
fn a_link_is_never_watched_through() {
    let f = Fixture::new();
    symlink(&f.out, f.ws.join("out")).unwrap();
    for resolver in BOTH {
        let root = f.root(resolver);
        let top = root.open_directory(&rel(".")).unwrap();
        assert_eq!(kind(top.open_directory(&name("out"))), disk::ErrorKind::IsLink);
        let watch = Watch::new(&top).unwrap();
        watch.add(&top).unwrap();
        fs::write(f.out.join("secret"), "changed").unwrap();
        assert_eq!(drained(&watch), []);
    }
}

#[test]
fn a_queue_that_ran_over_says_so() {
    let f = Fixture::in_memory();
    let top = f.top();
    let watch = Watch::new(&top).unwrap();
    watch.add(&top).unwrap();
    let most: usize =
        fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    for number in 0..=most {
        fs::create_dir(f.ws.join(format!("d{number}"))).unwrap();
    }
    let (mut events, mut all) = (Vec::new(), Drained::Some);
    while all == Drained::Some {
        all = watch.drain(&mut events).unwrap();
    }
    let last = events.last().unwrap();
    assert_eq!((last.watch, last.happened), (None::<WatchId>, Happened::Overflow));
    assert_eq!(events.len(), most + 1);
}
