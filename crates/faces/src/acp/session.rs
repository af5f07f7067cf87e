//! One session of an agent: its roots, who asks in it, and what it has seen of each file.
//!
//! Promises that a path belongs to at most one root, the innermost that holds it, and that no path outside all of them
//! reaches an engine. Remembers texts within a bound; the oldest go first.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use engine::{Caller, Engine};
use path::{RelPath, Trailing};
use tokio::sync;

use super::{Who, made::Made, setup::Ticket};
use crate::{
    dialect::acp,
    limits::{REQUESTS_PENDING_MAX, SEEN_BYTES_MAX, SEEN_FILES_MAX},
    run::Runner,
};

/// A root of a session, opened.
pub struct Opened {
    /// What serves it.
    pub engine: Engine,
    /// Its absolute spellings: as it was given, and without links.
    pub spellings: Vec<String>,
    /// Set where the root is one file: the directory above it is opened, and nothing else in it is reached.
    pub only: Option<Only>,
}

/// The one file of a root that is no directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Only {
    /// Where it was said to be, beneath the directory that was opened.
    pub spelled: RelPath,
    /// Where that leads.
    pub found: RelPath,
}

/// A root with what runs its calls.
pub(super) struct Root {
    pub(super) runner: Runner,
    pub(super) caller: Caller,
    /// The person at the editor, in this root.
    pub(super) person: Caller,
    spellings: Vec<String>,
    only: Option<Only>,
}

/// A place in one of the roots.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Spot {
    /// Which root.
    pub(super) root: usize,
    /// Where beneath it.
    pub(super) path: RelPath,
    /// As the engine reads it.
    pub(super) wire: String,
}

/// What a session knows of a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Seen {
    /// It was not there.
    Absent,
    /// It held this text, as the agent knows it; what was merged into what it wrote, it has not seen.
    Text(Arc<str>),
}

impl Seen {
    fn bytes(&self) -> usize {
        match self {
            Seen::Absent => 0,
            Seen::Text(text) => text.len(),
        }
    }
}

/// Where a session stood with a file when a read began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark(Option<u64>);

/// One session.
pub(super) struct Session {
    pub(super) id: String,
    roots: Vec<Root>,
    seen: Mutex<Memory>,
    made: Mutex<Made>,
    rejected: Mutex<HashSet<Spot>>,
    turns: Mutex<HashMap<Spot, Arc<sync::Mutex<()>>>>,
    cancelled: sync::watch::Sender<u64>,
    /// Marks of prompts that are under way.
    marks: sync::watch::Sender<usize>,
    /// The server that the agent was given for it, if any.
    pub(super) served: Option<Served>,
}

/// A server that an agent was given for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Served {
    /// The working directory that it serves.
    pub(super) directory: String,
    pub(super) ticket: Ticket,
}

/// A mark that is under way. Writes of its session wait until it is let go, whatever became of it.
pub(super) struct Marking(sync::watch::Sender<usize>);

impl Drop for Marking {
    fn drop(&mut self) {
        self.0.send_modify(|marks| *marks -= 1);
    }
}

impl Session {
    /// A session with these roots, in which these ask. It has no id yet.
    pub(super) fn new(who: &Who, opened: impl IntoIterator<Item = Opened>) -> Self {
        let root = |opened: Opened| {
            let within = |mut caller: Caller| {
                caller.since_ms = opened.engine.workspace().now_ms();
                if let Some(only) = &opened.only {
                    caller.grants.readable = vec![only.found.clone()];
                    caller.grants.writable = vec![only.found.clone()];
                }
                caller
            };
            let (caller, person) = (within(who.agent.clone()), within(who.person.clone()));
            let (spellings, only) = (opened.spellings, opened.only);
            Root { runner: Runner::new(opened.engine), caller, person, spellings, only }
        };
        let ((cancelled, _), (marks, _)) = (sync::watch::channel(0), sync::watch::channel(0));
        Self {
            id: String::new(),
            roots: opened.into_iter().map(root).collect(),
            seen: Mutex::default(),
            made: Mutex::default(),
            rejected: Mutex::default(),
            turns: Mutex::default(),
            cancelled,
            marks,
            served: None,
        }
    }

    /// The same with its id, and what the journal calls it.
    pub(super) fn named(mut self, id: String, shown: String) -> Self {
        self.id = id;
        for root in &mut self.roots {
            root.caller.session.clone_from(&shown);
        }
        self
    }

    /// The same whose agent was given a server.
    pub(super) fn served(mut self, served: Option<Served>) -> Self {
        self.served = served;
        self
    }

    /// What the journal calls it.
    pub(super) fn shown(&self) -> &str {
        self.roots.first().map_or("", |root| &root.caller.session)
    }

    /// Its roots.
    pub(super) fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// The root of a place.
    pub(super) fn root(&self, spot: &Spot) -> Option<&Root> {
        self.roots.get(spot.root)
    }

    /// Where an absolute path lies; nothing when it is in none of the roots.
    pub(super) fn spot(&self, given: &str) -> Option<Spot> {
        let places = self.roots.iter().enumerate().filter_map(|(at, root)| Some((at, root.place(given)?)));
        let (root, (path, trailing)) = places.min_by_key(|(_, (path, _))| path.components().count())?;
        let wire = acp::wire(&path, trailing);
        Some(Spot { root, path, wire })
    }

    /// A place as an editor finds it: absolute, in the spelling that the editor gave its root, without dots.
    pub(super) fn absolute(&self, spot: &Spot) -> Option<String> {
        let root = self.roots.get(spot.root)?.spellings.first()?;
        let names = spot.path.components().map(std::str::from_utf8).collect::<Result<Vec<_>, _>>().ok()?;
        Some(format!("{}/{}", root.trim_end_matches('/'), names.join("/")))
    }

    /// What is known of a file.
    pub(super) fn seen(&self, spot: &Spot) -> Option<Seen> {
        self.memory().seen.get(spot).cloned()
    }

    /// How often something was remembered when this file last was, for [`Session::remember_read`].
    pub(super) fn mark(&self, spot: &Spot) -> Mark {
        Mark(self.memory().last.get(spot).copied())
    }

    /// Remembers what a read brought, unless a write of the session was remembered since the read began: what that left
    /// is what the agent knows last.
    pub(super) fn remember_read(&self, spot: &Spot, began: Mark, seen: Seen) {
        let mut memory = self.memory();
        if Mark(memory.last.get(spot).copied()) == began {
            memory.put(spot, seen);
        }
    }

    /// Remembers what a file held.
    pub(super) fn remember(&self, spot: &Spot, seen: Seen) {
        self.memory().put(spot, seen);
    }

    /// What the editor was given.
    pub(super) fn made(&self) -> std::sync::MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A root itself.
    pub(super) fn top(&self, root: usize) -> Spot {
        Spot { root, path: RelPath::root(), wire: String::new() }
    }

    /// A place of a root, as the engine spells it.
    pub(super) fn spot_in(&self, root: usize, wire: &str) -> Option<Spot> {
        Some(Spot { root, path: RelPath::from_wire(wire).ok()?, wire: wire.to_owned() })
    }

    /// Refuses every write of a file from now on.
    pub(super) fn reject(&self, spot: &Spot) {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner).insert(spot.clone());
    }

    /// Whether a person refused every write of this file.
    pub(super) fn rejects(&self, spot: &Spot) -> bool {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner).contains(spot)
    }

    /// Holds back the writes of this session while a prompt is marked; nothing when too many marks are under way.
    pub(super) fn marking(&self) -> Option<Marking> {
        let begun = self.marks.send_if_modified(|marks| {
            let has_room = *marks < REQUESTS_PENDING_MAX;
            *marks += usize::from(has_room);
            has_room
        });
        self.made().turn();
        begun.then(|| Marking(self.marks.clone()))
    }

    /// Waits until no other write of this session is at the same file, in the order in which they came, and until every
    /// prompt so far is marked, so that the write counts to its turn.
    pub(super) async fn turn(&self, spot: &Spot) -> sync::OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            turns.entry(spot.clone()).or_default().clone()
        };
        let held = turn.lock_owned().await;
        // The sender is ours, so it cannot be gone.
        drop(self.marks.subscribe().wait_for(|marks| *marks == 0).await);
        held
    }

    /// Ends what waits for a person or for the editor.
    pub(super) fn cancel(&self) {
        self.cancelled.send_modify(|times| *times += 1);
    }

    /// Resolves once the session is cancelled after this call.
    pub(super) fn cancelling(&self) -> impl Future<Output = ()> + use<> {
        let mut cancelled = self.cancelled.subscribe();
        async move {
            if cancelled.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Root {
    /// Where a path lies beneath this root; nothing when it lies elsewhere.
    fn place(&self, given: &str) -> Option<(RelPath, Trailing)> {
        let spelling = acp::place(given, &self.spellings)?;
        match &self.only {
            None => Some((spelling.path, spelling.trailing)),
            Some(only) => (spelling.path == only.spelled).then(|| (only.found.clone(), spelling.trailing)),
        }
    }
}

/// The texts that a session has seen.
#[derive(Default)]
struct Memory {
    seen: HashMap<Spot, Seen>,
    /// Oldest first. A place stands here once for each time it was remembered; only its last one counts.
    order: VecDeque<(Spot, u64)>,
    last: HashMap<Spot, u64>,
    counter: u64,
    bytes: usize,
}

impl Memory {
    fn put(&mut self, spot: &Spot, seen: Seen) {
        self.counter += 1;
        self.bytes += seen.bytes();
        if let Some(before) = self.seen.insert(spot.clone(), seen) {
            self.bytes -= before.bytes();
        }
        self.last.insert(spot.clone(), self.counter);
        self.order.push_back((spot.clone(), self.counter));
        while self.bytes > SEEN_BYTES_MAX || self.seen.len() > SEEN_FILES_MAX {
            let Some((oldest, number)) = self.order.pop_front() else { return };
            self.forget(&oldest, number);
        }
        // What was remembered again since needs no place in the order any more.
        if self.order.len() > 2 * SEEN_FILES_MAX {
            let last = &self.last;
            self.order.retain(|(spot, number)| last.get(spot) == Some(number));
        }
    }

    fn forget(&mut self, spot: &Spot, number: u64) {
        if self.last.get(spot) != Some(&number) {
            return;
        }
        self.last.remove(spot);
        if let Some(seen) = self.seen.remove(spot) {
            self.bytes -= seen.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::Arc,
        task::{Context, Waker},
    };

    use engine::Principal;
    use testkit::MemoryWorkspace;

    use super::*;

    fn opened(spellings: &[&str], only: Option<&str>) -> Opened {
        Opened {
            engine: Engine::new(Arc::new(MemoryWorkspace::new())),
            spellings: spellings.iter().map(|text| (*text).to_owned()).collect(),
            only: only.map(|name| {
                let path = RelPath::from_wire(name).unwrap();
                Only { spelled: path.clone(), found: path }
            }),
        }
    }

    fn session(roots: Vec<Opened>) -> Session {
        let agent = Caller::new(Principal::Agent("a".to_owned()), "s", "acp");
        let person = Caller::new(Principal::User("p".to_owned()), "s", "acp");
        Session::new(&Who { agent, person }, roots)
    }

    #[test]
    fn a_path_belongs_to_the_innermost_root_or_to_none() {
        let session = session(vec![
            opened(&["/p/link", "/p/real"], None),
            opened(&["/p/real/sub"], None),
            opened(&["/etc"], Some("hosts")),
        ]);
        let spot = |path: &str| session.spot(path).map(|spot| (spot.root, spot.wire));
        assert_eq!(spot("/p/link/a"), Some((0, "a".into())));
        assert_eq!(spot("/p/real//b/./c"), Some((0, "b/c".into())));
        assert_eq!(spot("/p/real/sub/a"), Some((1, "a".into())));
        assert_eq!(spot("/p/real/x/../sub/a"), Some((1, "a".into())));
        assert_eq!(spot("/etc/hosts"), Some((2, "hosts".into())));
        assert_eq!(spot("/p/real/d/"), Some((0, "d/".into())));
        assert_eq!(spot("/p/real/back\\slash"), Some((0, "back\\\\slash".into())));
        for outside in
            ["/", "/p", "/p/realm/a", "/p/real/../x", "/etc", "/etc/passwd", "a", "", "/p/real/a\0b"]
        {
            assert_eq!(spot(outside), None, "{outside}");
        }
    }

    #[test]
    fn the_oldest_texts_are_forgotten_first() {
        let session = session(vec![opened(&["/p"], None)]);
        let text: Arc<str> = "x".repeat(SEEN_BYTES_MAX / 4).into();
        let seen = || Seen::Text(text.clone());
        let spots: Vec<Spot> = (0..6).map(|number| session.spot(&format!("/p/{number}")).unwrap()).collect();
        for spot in &spots[..4] {
            session.remember(spot, seen());
        }
        session.remember(&spots[0], seen());
        session.remember(&spots[4], seen());
        session.remember(&spots[5], Seen::Absent);
        let known: Vec<bool> = spots.iter().map(|spot| session.seen(spot).is_some()).collect();
        assert_eq!(known, [true, false, true, true, true, true]);
    }

    #[test]
    fn a_write_waits_until_every_prompt_is_marked() {
        let session = session(vec![opened(&["/p"], None)]);
        let spot = session.spot("/p/a").unwrap();
        let (first, second) = (session.marking().unwrap(), session.marking().unwrap());
        let mut write = Box::pin(session.turn(&spot));
        let mut context = Context::from_waker(Waker::noop());
        assert!(write.as_mut().poll(&mut context).is_pending());
        drop(first);
        assert!(write.as_mut().poll(&mut context).is_pending());
        drop(second);
        assert!(write.as_mut().poll(&mut context).is_ready());
        let many: Vec<_> = std::iter::repeat_with(|| session.marking()).take_while(Option::is_some).collect();
        assert_eq!(many.len(), REQUESTS_PENDING_MAX);
    }
}
