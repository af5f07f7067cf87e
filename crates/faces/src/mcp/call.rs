//! What a running call has to do with its conversation: it is stopped when the client cancels, and tells its progress
//! when the client asked for it.

use engine::{Answer, Failure, Pace, Progress};
use rmcp::{
    ErrorData, RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::{Peer, RequestContext},
};
use tokio::sync::watch;

use super::transport::{Closed, is_alone};
use crate::{
    limits::PROGRESS_INTERVAL,
    run::{Asked, Company, Runner},
};

/// Runs one call to its end.
pub(super) async fn run(
    runner: &Runner,
    closed: &Closed,
    asked: Asked,
    context: &RequestContext<RoleServer>,
) -> Result<Result<Answer, Failure>, ErrorData> {
    let pace = runner.pace(&asked);
    let company = if is_alone(&context.extensions) { Company::Alone } else { Company::Others };
    let (told, progress) = Teller::new(context);
    let call = runner.run(asked, pace, company, told, stopped(pace, closed, context));
    let (outcome, ()) = tokio::join!(call, progress.tell());
    outcome.map_err(|broken| ErrorData::internal_error(broken.to_string(), None))
}

/// Resolves once nobody wants the call any more. A client that is gone still gets its changes made, but nobody is left
/// to wait.
async fn stopped(pace: Pace, closed: &Closed, context: &RequestContext<RoleServer>) {
    let mut closed = closed.clone();
    let gone = async {
        match pace {
            Pace::Brief | Pace::Short | Pace::Work => std::future::pending().await,
            Pace::Wait => drop(closed.wait_for(|closed| *closed).await),
        }
    };
    tokio::select! {
        () = context.ct.cancelled() => {}
        () = gone => {}
    }
}

/// Tells a client how far its call has come.
struct Teller(Option<(ProgressToken, Peer<RoleServer>, watch::Receiver<Progress>)>);

impl Teller {
    /// Where a call puts its progress, and who tells it; both idle when the client did not ask.
    fn new(context: &RequestContext<RoleServer>) -> (Option<watch::Sender<Progress>>, Self) {
        match context.meta.get_progress_token() {
            Some(token) => {
                let (told, seen) = watch::channel(Progress::default());
                (Some(told), Self(Some((token, context.peer.clone(), seen))))
            }
            None => (None, Self(None)),
        }
    }

    /// Tells as long as the call runs, at most once an interval, and only what is new. Ends with the call, and never
    /// in the middle of a notice: one that is on its way when the answer goes could come after it.
    async fn tell(self) {
        let Some((token, peer, mut seen)) = self.0 else { return };
        let mut told = 0;
        // A call that has ended has closed its side.
        while seen.changed().await.is_ok() && seen.has_changed().is_ok() {
            let progress = *seen.borrow_and_update();
            if progress.done <= told {
                continue;
            }
            told = progress.done;
            #[expect(clippy::cast_precision_loss, reason = "the protocol counts in floating point")]
            let mut notice = ProgressNotificationParam::new(token.clone(), progress.done as f64);
            notice.message = Some(progress.to_string());
            if peer.notify_progress(notice).await.is_err() || pause(&mut seen).await.is_err() {
                return;
            }
        }
    }
}

/// Waits for an interval to pass; ends early, and badly, when the call ends.
async fn pause(seen: &mut watch::Receiver<Progress>) -> Result<(), watch::error::RecvError> {
    let passed = tokio::time::sleep(PROGRESS_INTERVAL);
    tokio::pin!(passed);
    loop {
        tokio::select! {
            () = &mut passed => break,
            changed = seen.changed() => changed?,
        }
    }
    seen.mark_changed();
    Ok(())
}
