//! Wakes everybody who waits for changes of a workspace: one thread listens for all of them, and there is none while nobody
//! waits. Ten thousand streams that hear nothing cost ten thousand small tasks and no work. Only changes ring: looking is
//! recorded as well, and wakes nobody.

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
pub(super) struct Bell(watch::Sender<Said>);

/// What a bell has said last.
#[derive(Clone, Copy)]
enum Said {
    /// Nobody listens yet: a change now would not be heard.
    NotYet,
    /// Every change from here on rings.
    Rung,
}

/// The ear of one who waits.
pub(super) struct Heard {
    rung: watch::Receiver<Said>,
    /// The thread listens for as long as somebody has the bell.
    _bell: Arc<Bell>,
}

/// Nobody rings any more, or ever will.
#[derive(Debug)]
pub(super) struct Silent;

impl Bells {
    /// Hears every change of a workspace from when this resolves: whoever looks then, and again at every ring, misses none.
    pub(super) async fn hear(&self, workspace: &str, engine: &Engine) -> Result<Heard, Silent> {
        let bell = self.of(workspace, engine).map_err(|_| Silent)?;
        let mut rung = bell.0.subscribe();
        rung.wait_for(|said| matches!(said, Said::Rung)).await.map_err(|_| Silent)?;
        Ok(Heard { rung, _bell: bell })
    }

    /// The bell of a workspace, hung up if nobody waited there before.
    fn of(&self, workspace: &str, engine: &Engine) -> std::io::Result<Arc<Bell>> {
        let mut bells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bell) = bells.get(workspace).and_then(Weak::upgrade) {
            return Ok(bell);
        }
        bells.retain(|_, bell| bell.strong_count() > 0);
        let bell = Arc::new(Bell(watch::channel(Said::NotYet).0));
        let (weak, engine) = (Arc::downgrade(&bell), engine.clone());
        std::thread::Builder::new().name("bell".to_owned()).spawn(move || listen(&weak, &engine))?;
        bells.insert(workspace.to_owned(), Arc::downgrade(&bell));
        Ok(bell)
    }
}

impl Heard {
    /// Resolves when something has changed since it resolved last.
    pub(super) async fn again(&mut self) -> Result<(), Silent> {
        self.rung.changed().await.map_err(|_| Silent)
    }
}

/// Rings until nobody has the bell any more.
fn listen(bell: &Weak<Bell>, engine: &Engine) {
    let mut known = engine.workspace().head().map_or(0, |head| head.number);
    match bell.upgrade() {
        Some(bell) => bell.0.send_replace(Said::Rung),
        None => return,
    };
    loop {
        let waited = engine.workspace().wait_after(known, Instant::now() + LOOK_EVERY);
        let Some(bell) = bell.upgrade() else { return };
        match waited.and_then(|()| changed_after(engine, &mut known)) {
            Ok(Changed::Yes) => drop(bell.0.send_replace(Said::Rung)),
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

#[cfg(test)]
mod tests {
    use std::future::ready;

    use engine::{Call, Caller, Principal};
    use serde_json::{Map, json};
    use testkit::MemoryWorkspace;

    use super::*;

    /// Nothing here takes longer unless a ring was lost.
    const PATIENCE: Duration = Duration::from_secs(30);

    /// The thread may come to run late. Nobody is told that it listens before it does, or a change in between would be lost.
    #[tokio::test]
    async fn nobody_hears_before_somebody_listens() {
        let engine = Engine::new(Arc::new(MemoryWorkspace::new()));
        let (bells, bell) = (Bells::default(), Arc::new(Bell(watch::channel(Said::NotYet).0)));
        bells.0.lock().unwrap().insert("w".to_owned(), Arc::downgrade(&bell));
        tokio::select! {
            biased;
            _ = bells.hear("w", &engine) => panic!("nobody listens yet"),
            () = ready(()) => {}
        }
        let (weak, listener) = (Arc::downgrade(&bell), engine.clone());
        let listening = std::thread::spawn(move || listen(&weak, &listener));
        let mut heard = bells.hear("w", &engine).await.unwrap();
        let caller = Caller::new(Principal::Agent("a".to_owned()), "s", "test");
        let arguments = json!({ "path": "a.txt", "content": "x", "base": "" });
        engine.call(&Call::new(&caller, "write", arguments.as_object().unwrap().clone())).unwrap();
        tokio::time::timeout(PATIENCE, heard.again()).await.expect("it rings").unwrap();
        drop((heard, bell));
        // Any entry makes the thread see that nobody is left.
        engine.call(&Call::new(&caller, "list", Map::new())).unwrap();
        listening.join().unwrap();
    }
}
