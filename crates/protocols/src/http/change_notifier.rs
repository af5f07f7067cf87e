//! Wakes event streams when a workspace changes. One thread per workspace waits for journal entries, and ends when no
//! event stream is open. Journal entries without changes wake no stream.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
    time::{Duration, Instant},
};

use stead_engine::{Engine, Error, JournalEntryQuery, JournalNoChangeEntryFilter};
use tokio::sync::watch;

const SUBSCRIBER_CHECK_INTERVAL: Duration = Duration::from_secs(30);
const RETRY_DELAY: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct ChangeNotifiersByWorkspace(Mutex<HashMap<String, Weak<ChangeNotifier>>>);

pub(super) struct ChangeNotifier(watch::Sender<ChangeNotifierSignal>);

#[derive(Clone, Copy)]
enum ChangeNotifierSignal {
    /// New subscribers wait until the notifier thread watches the journal, so that they miss no change.
    Starting,
    /// The notifier thread sends `Notified` when it starts to watch the journal, and after every change.
    Notified,
}

pub(super) struct ChangeSubscription {
    receiver: watch::Receiver<ChangeNotifierSignal>,
    /// The notifier thread ends when the last reference to the notifier is dropped.
    _notifier: Arc<ChangeNotifier>,
}

#[derive(Debug)]
pub(super) struct ChangeNotifierStoppedError;

impl ChangeNotifiersByWorkspace {
    /// A subscriber misses no change if it reads the journal after subscribing and after every notification.
    pub(super) async fn subscribe(
        &self,
        workspace: &str,
        engine: &Engine,
    ) -> Result<ChangeSubscription, ChangeNotifierStoppedError> {
        let notifier = self.notifier_for(workspace, engine).map_err(|_| ChangeNotifierStoppedError)?;
        let mut receiver = notifier.0.subscribe();
        receiver
            .wait_for(|state| matches!(state, ChangeNotifierSignal::Notified))
            .await
            .map_err(|_| ChangeNotifierStoppedError)?;
        Ok(ChangeSubscription { receiver, _notifier: notifier })
    }

    fn notifier_for(&self, workspace: &str, engine: &Engine) -> std::io::Result<Arc<ChangeNotifier>> {
        let mut notifiers = crate::lock(&self.0);
        if let Some(notifier) = notifiers.get(workspace).and_then(Weak::upgrade) {
            return Ok(notifier);
        }
        notifiers.retain(|_, notifier| notifier.strong_count() > 0);
        let notifier = Arc::new(ChangeNotifier(watch::channel(ChangeNotifierSignal::Starting).0));
        let (weak, engine) = (Arc::downgrade(&notifier), engine.clone());
        std::thread::Builder::new().name("change-notifier".to_owned()).spawn(move || watch_journal(&weak, &engine))?;
        notifiers.insert(workspace.to_owned(), Arc::downgrade(&notifier));
        Ok(notifier)
    }
}

impl ChangeSubscription {
    /// Waits until the workspace has changed since the last call of `changed`.
    pub(super) async fn changed(&mut self) -> Result<(), ChangeNotifierStoppedError> {
        self.receiver.changed().await.map_err(|_| ChangeNotifierStoppedError)
    }
}

fn watch_journal(notifier: &Weak<ChangeNotifier>, engine: &Engine) {
    let mut known = engine.workspace().head().map_or(0, |head| head.number);
    match notifier.upgrade() {
        Some(notifier) => notifier.0.send_replace(ChangeNotifierSignal::Notified),
        None => return,
    };
    loop {
        let waited = engine.workspace().wait_for_entry_after(known, Instant::now() + SUBSCRIBER_CHECK_INTERVAL);
        let Some(notifier) = notifier.upgrade() else { return };
        match waited.and_then(|()| check_changes_after(engine, &mut known)) {
            Ok(true) => drop(notifier.0.send_replace(ChangeNotifierSignal::Notified)),
            Ok(false) => {}
            Err(_) => std::thread::sleep(RETRY_DELAY),
        }
    }
}

/// Returns whether the journal has changes after the entry `known`, and sets `known` to the last entry.
fn check_changes_after(engine: &Engine, known: &mut u64) -> Result<bool, Error> {
    let head = engine.workspace().head()?.number;
    let filter = JournalEntryQuery {
        after: Some(*known),
        selection: JournalNoChangeEntryFilter::WithChanges,
        limit: 1,
        ..JournalEntryQuery::default()
    };
    let found = engine.workspace().entries(&filter)?;
    *known = head;
    Ok(!found.is_empty())
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use serde_json::{Map, json};
    use stead_engine::{Caller, Principal};
    use testkit::MemoryWorkspace;

    use super::*;
    use crate::native::JsonCall;

    const TEST_TIMEOUT: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn subscribe_waits_until_journal_is_watched() {
        let engine = Engine::new(Arc::new(MemoryWorkspace::new()));
        let (notifiers, notifier) = (
            ChangeNotifiersByWorkspace::default(),
            Arc::new(ChangeNotifier(watch::channel(ChangeNotifierSignal::Starting).0)),
        );
        notifiers.0.lock().unwrap().insert("w".to_owned(), Arc::downgrade(&notifier));
        tokio::select! {
            biased;
            _ = notifiers.subscribe("w", &engine) => panic!("the journal is not watched yet"),
            () = ready(()) => {}
        }
        let (weak, listener) = (Arc::downgrade(&notifier), engine.clone());
        let watcher = std::thread::spawn(move || watch_journal(&weak, &listener));
        let mut subscription = notifiers.subscribe("w", &engine).await.unwrap();
        let caller = Caller::new(Principal::Agent("a".to_owned()), "s", "test");
        let arguments = json!({ "path": "a.txt", "content": "x", "base": "" });
        JsonCall::new(&caller, "write", arguments.as_object().unwrap().clone()).run(&engine).into_result().unwrap();
        tokio::time::timeout(TEST_TIMEOUT, subscription.changed()).await.expect("a notification").unwrap();
        drop((subscription, notifier));
        // After every new entry, the thread checks whether a subscriber is left. No subscriber is left here, so the
        // thread ends.
        JsonCall::new(&caller, "list", Map::new()).run(&engine).into_result().unwrap();
        watcher.join().unwrap();
    }
}
