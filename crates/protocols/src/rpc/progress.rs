//! Progress notifications. A notification is sent before the response of its call.

use std::{io, pin::Pin, sync::Arc};

use serde_json::{Map, Value, json};
use stead_engine::CallProgress;
use tokio::io::AsyncWrite;

use super::{
    errors::{self, RpcError},
    message::echoable_id,
};
use crate::{
    lines::Outbox,
    progress::{self, ClientDisconnected, ProgressReceiver, ProgressSender},
};

const PROGRESS_METHOD: &str = "$/progress";
/// The member of `_meta` that requests progress.
const PROGRESS_TOKEN_MEMBER: &str = "progressToken";

/// Output for lines, independent of the transport.
pub(super) trait MessageSink: Send + Sync {
    /// Sends one line; resolves once it is written.
    fn send(&self, line: Vec<u8>) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + '_>>;
}

impl<W: AsyncWrite + Unpin + Send> MessageSink for Outbox<W> {
    fn send(&self, line: Vec<u8>) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + '_>> {
        Box::pin(Outbox::send(self, line))
    }
}

pub(super) fn message_line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// The progress token, if the client sent one. A token that cannot be echoed is an error, because the client would wait
/// for notifications.
pub(super) fn progress_token(meta: &Map<String, Value>) -> Result<Option<Value>, RpcError> {
    let Some(given) = meta.get(PROGRESS_TOKEN_MEMBER) else { return Ok(None) };
    match echoable_id(given) {
        Some(token) if !token.is_null() => Ok(Some(token)),
        Some(_) | None => {
            let message = format!("_meta.{PROGRESS_TOKEN_MEMBER} must be a whole number or a short string");
            Err(RpcError::new(errors::INVALID_PARAMS, message))
        }
    }
}

/// Sends progress notifications of a call to the client.
pub(super) struct RpcProgressReporter(Option<(Arc<dyn MessageSink>, Value, ProgressReceiver)>);

impl RpcProgressReporter {
    /// The sender for the call and the reporter; both idle if the client did not ask for progress or cannot receive it.
    pub(super) fn new(sink: Option<Arc<dyn MessageSink>>, token: Option<Value>) -> (Option<ProgressSender>, Self) {
        match (sink, token) {
            (Some(sink), Some(token)) => {
                let (sender, receiver) = progress::progress_channel();
                (Some(sender), Self(Some((sink, token, receiver))))
            }
            (Some(_) | None, _) => (None, Self(None)),
        }
    }

    pub(super) async fn report_until_done(self) {
        let Some((sink, token, receiver)) = self.0 else { return };
        let notice = |progress: CallProgress| {
            let mut params = json!({ "token": token, "done": progress.entries_done, "message": progress.to_string() });
            if let Some(found) = progress.found {
                params["found"] = found.into();
            }
            let message = json!({ "jsonrpc": "2.0", "method": PROGRESS_METHOD, "params": params });
            let sink = &sink;
            async move { sink.send(message_line(&message)).await.map_err(|_| ClientDisconnected) }
        };
        receiver.report_until_done(notice).await;
    }
}
