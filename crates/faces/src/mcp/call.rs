//! What a running call has to do with its conversation: it is stopped when the client cancels, and tells its progress
//! when the client asked for it.

use std::convert::Infallible;

use engine::{Answer, Failure, Pace};
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
    let unwanted = async {
        tokio::select! {
            () = stopped(pace, closed, context) => {}
            never = progress.tell() => match never {},
        }
    };
    let outcome = runner.run(asked, pace, company, told, unwanted).await;
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
struct Teller(Option<(ProgressToken, Peer<RoleServer>, watch::Receiver<u64>)>);

impl Teller {
    /// Where a call puts its progress, and who tells it; both idle when the client did not ask.
    fn new(context: &RequestContext<RoleServer>) -> (Option<watch::Sender<u64>>, Self) {
        match context.meta.get_progress_token() {
            Some(token) => {
                let (told, seen) = watch::channel(0);
                (Some(told), Self(Some((token, context.peer.clone(), seen))))
            }
            None => (None, Self(None)),
        }
    }

    /// Tells as long as the call runs, at most once an interval, and only what is new.
    async fn tell(self) -> Infallible {
        if let Some((token, peer, mut seen)) = self.0 {
            let mut told = 0;
            while seen.changed().await.is_ok() {
                let done = *seen.borrow_and_update();
                // A call may go over its places twice; what a client sees only grows.
                if done <= told {
                    continue;
                }
                told = done;
                #[expect(clippy::cast_precision_loss, reason = "the protocol counts in floating point")]
                let shown = done as f64;
                if peer.notify_progress(ProgressNotificationParam::new(token.clone(), shown)).await.is_err() {
                    break;
                }
                tokio::time::sleep(PROGRESS_INTERVAL).await;
            }
        }
        std::future::pending().await
    }
}
