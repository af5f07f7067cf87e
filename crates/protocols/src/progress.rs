//! Progress of a call, reported to clients that asked for it: at most once per interval, only increases, and never
//! after the call has ended. Independent of the protocol; each protocol renders its own notification.

use stead_engine::CallProgress;
use tokio::sync::watch;

use crate::limits::PROGRESS_INTERVAL;

/// Where a running call reports its progress.
pub(crate) type ProgressSender = watch::Sender<CallProgress>;

pub(crate) struct ProgressReceiver(watch::Receiver<CallProgress>);

/// The client accepts no more notifications.
pub(crate) struct ClientDisconnected;

pub(crate) fn progress_channel() -> (ProgressSender, ProgressReceiver) {
    let (sender, receiver) = watch::channel(CallProgress::default());
    (sender, ProgressReceiver(receiver))
}

impl ProgressReceiver {
    /// Reports until the call ends. A notification that has begun is sent completely before this returns, so that it
    /// cannot follow the result.
    pub(crate) async fn report_until_done<F: Future<Output = Result<(), ClientDisconnected>>>(
        mut self,
        notice: impl Fn(CallProgress) -> F,
    ) {
        let mut reported = 0;
        // A finished call has closed its sender.
        while self.0.changed().await.is_ok() && self.0.has_changed().is_ok() {
            let progress = *self.0.borrow_and_update();
            if progress.entries_done <= reported {
                continue;
            }
            reported = progress.entries_done;
            if notice(progress).await.is_err() || self.wait_interval().await.is_err() {
                return;
            }
        }
    }

    /// Waits for one interval. Returns an error early if the call ends.
    async fn wait_interval(&mut self) -> Result<(), watch::error::RecvError> {
        let interval = tokio::time::sleep(PROGRESS_INTERVAL);
        tokio::pin!(interval);
        loop {
            tokio::select! {
                () = &mut interval => break,
                changed = self.0.changed() => changed?,
            }
        }
        self.0.mark_changed();
        Ok(())
    }
}
