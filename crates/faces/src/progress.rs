//! How far a call has come, on its way to the client that asked to be told. Tells at most once an interval, only what
//! is new, and nothing once the call has ended. Knows no protocol: each face says how a notice looks.

use engine::Progress;
use tokio::sync::watch;

use crate::limits::PROGRESS_INTERVAL;

/// Where a running call puts its progress.
pub(crate) type Told = watch::Sender<Progress>;

/// The other end, for whoever tells the client.
pub(crate) struct Seen(watch::Receiver<Progress>);

/// A client that is told nothing more.
pub(crate) struct Gone;

/// Both ends for one call.
pub(crate) fn channel() -> (Told, Seen) {
    let (told, seen) = watch::channel(Progress::default());
    (told, Seen(seen))
}

impl Seen {
    /// Tells as long as the call runs. Ends with the call, and never in the middle of a notice: one that is on its way
    /// when the answer goes could come after it.
    pub(crate) async fn tell<F: Future<Output = Result<(), Gone>>>(mut self, notice: impl Fn(Progress) -> F) {
        let mut told = 0;
        // A call that has ended has closed its side.
        while self.0.changed().await.is_ok() && self.0.has_changed().is_ok() {
            let progress = *self.0.borrow_and_update();
            if progress.done <= told {
                continue;
            }
            told = progress.done;
            if notice(progress).await.is_err() || self.pause().await.is_err() {
                return;
            }
        }
    }

    /// Waits for an interval to pass; ends early, and badly, when the call ends.
    async fn pause(&mut self) -> Result<(), watch::error::RecvError> {
        let passed = tokio::time::sleep(PROGRESS_INTERVAL);
        tokio::pin!(passed);
        loop {
            tokio::select! {
                () = &mut passed => break,
                changed = self.0.changed() => changed?,
            }
        }
        self.0.mark_changed();
        Ok(())
    }
}
