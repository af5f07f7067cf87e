//! Runs a tool call: cancels it when the client does, and reports progress if the client asked for it.

use std::sync::Arc;

use axum::http::request::Parts;
use rmcp::{
    ErrorData, RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::{Peer, RequestContext},
};
use stead_engine::{CallOutcome, CallProgress, CostClass, Error};

use super::transport::{CloseSignal, is_only_request};
use crate::{
    call_executor::{CallExecutor, CallRequest, OtherRequests},
    call_recorder::{self, CallRecorder},
    progress::{self, ClientDisconnected, ProgressReceiver, ProgressSender},
};

pub(super) async fn run_call(
    executor: &CallExecutor,
    closed: &CloseSignal,
    request: CallRequest,
    context: &RequestContext<RoleServer>,
) -> Result<Result<CallOutcome, Error>, ErrorData> {
    let cost_class = executor.cost_class(&request);
    let other_requests =
        if is_only_request(&context.extensions) { OtherRequests::None } else { OtherRequests::Waiting };
    let (sender, progress) = McpProgressReporter::new(context);
    let call = executor.run(request, cost_class, other_requests, sender, until_cancelled(cost_class, closed, context));
    let call = call_recorder::record_during(request_recorder(context), call);
    let (outcome, ()) = tokio::join!(call, progress.report_until_done());
    outcome.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// The recorder of the HTTP request behind a call. The protocol library handles the call in another task.
pub(super) fn request_recorder(context: &RequestContext<RoleServer>) -> Option<Arc<CallRecorder>> {
    context.extensions.get::<Parts>()?.extensions.get::<Arc<CallRecorder>>().cloned()
}

/// Resolves when the call is to be cancelled. If the client disconnects, only waiting calls are cancelled; changes are
/// completed.
async fn until_cancelled(cost_class: CostClass, closed: &CloseSignal, context: &RequestContext<RoleServer>) {
    let mut closed = closed.clone();
    let disconnected = async {
        match cost_class {
            CostClass::Inline | CostClass::Short | CostClass::Long => std::future::pending().await,
            CostClass::Waiting => drop(closed.wait_for(|closed| *closed).await),
        }
    };
    tokio::select! {
        () = context.ct.cancelled() => {}
        () = disconnected => {}
    }
}

/// Sends progress notifications of a call to the client.
struct McpProgressReporter(Option<(ProgressToken, Peer<RoleServer>, ProgressReceiver)>);

impl McpProgressReporter {
    /// The sender for the call and the reporter; both idle if the client did not ask for progress.
    fn new(context: &RequestContext<RoleServer>) -> (Option<ProgressSender>, Self) {
        match context.meta.get_progress_token() {
            Some(token) => {
                let (sender, receiver) = progress::progress_channel();
                (Some(sender), Self(Some((token, context.peer.clone(), receiver))))
            }
            None => (None, Self(None)),
        }
    }

    async fn report_until_done(self) {
        let Some((token, peer, receiver)) = self.0 else { return };
        let notice = |progress: CallProgress| {
            #[expect(clippy::cast_precision_loss, reason = "the protocol counts in floating point")]
            let mut notice = ProgressNotificationParam::new(token.clone(), progress.entries_done as f64);
            notice.message = Some(progress.to_string());
            let peer = &peer;
            async move { peer.notify_progress(notice).await.map_err(|_| ClientDisconnected) }
        };
        receiver.report_until_done(notice).await;
    }
}
