//! Wakes everybody who waits for changes of a workspace: one thread listens for all of them, and there is none while nobody
//! waits. Ten thousand streams that hear nothing cost ten thousand small tasks and no work. Only changes ring: looking is
//! recorded as well, and must not wake whoever looks.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use engine::{Engine, EntryFilter, Failure, Which};
use tokio::sync::watch;

/// How long the thread waits before it looks whether anybody is still there.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How long it waits after a failure before it tries again.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The bells of all workspaces that somebody waits for.
#[derive(Default)]
pub(super) struct Bells(Mutex<HashMap<String, Weak<Bell>>>);

/// Rings whenever something in one workspace has changed.
pub(super) struct Bell(watch::Sender<u64>);

impl Bells {
    /// The bell of a workspace, hung up if nobody waited there before.
    pub(super) fn of(&self, workspace: &str, engine: &Engine) -> Arc<Bell> {
        let mut bells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bell) = bells.get(workspace).and_then(Weak::upgrade) {
            return bell;
        }
        bells.retain(|_, bell| bell.strong_count() > 0);
        let bell = Arc::new(Bell(watch::channel(0).0));
        bells.insert(workspace.to_owned(), Arc::downgrade(&bell));
        let (weak, engine) = (Arc::downgrade(&bell), engine.clone());
        // Without the thread a stream still looks whenever it says that it is alive.
        drop(std::thread::Builder::new().name("bell".to_owned()).spawn(move || listen(&weak, &engine)));
        bell
    }
}

impl Bell {
    /// What changes with every ring.
    pub(super) fn heard(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

/// Rings until nobody has the bell any more.
fn listen(bell: &Weak<Bell>, engine: &Engine) {
    let mut known = engine.workspace().head().map_or(0, |head| head.number);
    loop {
        let waited = engine.workspace().wait_after(known, Instant::now() + LOOK_EVERY);
        let Some(bell) = bell.upgrade() else { return };
        match waited.and_then(|()| changed_after(engine, &mut known)) {
            Ok(Changed::Yes) => bell.0.send_modify(|rung| *rung = known),
            Ok(Changed::No) => {}
            Err(_) => std::thread::sleep(AFTER_FAILURE),
        }
    }
}

/// Whether anything was changed.
enum Changed {
    Yes,
    No,
}

/// Looks at what came after an entry, and goes on to the last of it.
fn changed_after(engine: &Engine, known: &mut u64) -> Result<Changed, Failure> {
    let head = engine.workspace().head()?.number;
    let filter =
        EntryFilter { after: Some(*known), what: Which::Changes, limit: 1, ..EntryFilter::default() };
    let found = engine.workspace().entries(&filter)?;
    *known = head;
    Ok(if found.is_empty() { Changed::No } else { Changed::Yes })
}
