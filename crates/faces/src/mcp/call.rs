//! What a running call has to do with its conversation: it is stopped when the client cancels, and tells its progress
//! when the client asked for it.

use std::sync::Arc;

use axum::http::request::Parts;
use engine::{Answer, Failure, Pace, Progress};
use rmcp::{
    ErrorData, RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::{Peer, RequestContext},
};

use super::transport::{Closed, is_alone};
use crate::{
    notes::{self, Notes},
    progress::{self, Gone, Seen, Told},
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
    let call = notes::taking(noted(context), call);
    let (outcome, ()) = tokio::join!(call, progress.tell());
    outcome.map_err(|broken| ErrorData::internal_error(broken.to_string(), None))
}

/// The notes of the request that a call came with: the protocol library works on it in another task.
pub(super) fn noted(context: &RequestContext<RoleServer>) -> Option<Arc<Notes>> {
    context.extensions.get::<Parts>()?.extensions.get::<Arc<Notes>>().cloned()
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

/// Who tells a client how far its call has come.
struct Teller(Option<(ProgressToken, Peer<RoleServer>, Seen)>);

impl Teller {
    /// Where a call puts its progress, and who tells it; both idle when the client did not ask.
    fn new(context: &RequestContext<RoleServer>) -> (Option<Told>, Self) {
        match context.meta.get_progress_token() {
            Some(token) => {
                let (told, seen) = progress::channel();
                (Some(told), Self(Some((token, context.peer.clone(), seen))))
            }
            None => (None, Self(None)),
        }
    }

    /// Tells until the call ends.
    async fn tell(self) {
        let Some((token, peer, seen)) = self.0 else { return };
        let notice = |progress: Progress| {
            #[expect(clippy::cast_precision_loss, reason = "the protocol counts in floating point")]
            let mut notice = ProgressNotificationParam::new(token.clone(), progress.done as f64);
            notice.message = Some(progress.to_string());
            let peer = &peer;
            async move { peer.notify_progress(notice).await.map_err(|_| Gone) }
        };
        seen.tell(notice).await;
    }
}
