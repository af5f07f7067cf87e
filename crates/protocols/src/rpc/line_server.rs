//! JSON-RPC over a pair of byte streams, one message per line. Messages are answered as they complete, so a long or
//! waiting call blocks no other; with too many pending messages the input is not read.

use std::{io, sync::Arc};

use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{Semaphore, mpsc},
    task::JoinSet,
};

use super::{
    RpcConnection, RpcServer,
    message::{RpcMessageError, echoable_id},
    progress::{self, MessageSink},
};
use crate::{
    event_pusher::{EVENT_METHOD, EventPusher, PushedEvent, QUEUED_EVENTS_MAX},
    limits::REQUESTS_PENDING_MAX,
    lines::{LineReader, LineReaderEvent, Outbox},
};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Serves one client until it closes its side. Then waiting calls are cancelled, and the others complete.
///
/// Must run inside a tokio runtime; calls occupy its blocking threads.
pub async fn serve<R, W>(rpc: Arc<RpcServer>, input: R, output: W) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let mut lines = LineReader::new(input);
    let outbox = Arc::new(Outbox::new(output));
    let slots = Arc::new(Semaphore::new(REQUESTS_PENDING_MAX));
    let (events, pushed) = mpsc::channel(QUEUED_EVENTS_MAX);
    let connection = Arc::new(RpcConnection::with_output(EventPusher::new(events), outbox.clone()));
    let push_task = tokio::spawn(push_events(rpc.clone(), pushed, outbox.clone()));
    let mut tasks = JoinSet::new();
    while let Ok(slot) = slots.clone().acquire_owned().await {
        while tasks.try_join_next().is_some() {}
        let rejection = match lines.next().await {
            LineReaderEvent::Line => None,
            LineReaderEvent::Oversized(id) => {
                let id = id.as_ref().and_then(echoable_id);
                Some(RpcMessageError::invalid_request(id, "the message is too long").into_response())
            }
            LineReaderEvent::End => break,
        };
        let line = lines.line();
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        if rejection.is_none() && line.is_empty() {
            continue;
        }
        let (rpc, outbox, line) = (rpc.clone(), outbox.clone(), line.to_vec());
        let pending = connection.accept_message();
        tasks.spawn(async move {
            let response = match rejection {
                Some(rejection) => Some(rejection),
                None => rpc.answer_message(&line, &pending).await,
            };
            drop(line);
            if let Some(response) = response {
                // A send error means that the client is gone; the next read notices it.
                drop(outbox.send(progress::message_line(&response)).await);
            }
            drop((pending, slot));
        });
    }
    connection.close();
    while tasks.join_next().await.is_some() {}
    push_task.abort();
    outbox.flush().await
}

pub(super) async fn push_events(
    rpc: Arc<RpcServer>,
    mut events: mpsc::Receiver<PushedEvent>,
    sink: Arc<dyn MessageSink>,
) {
    while let Some(pushed) = events.recv().await {
        let params = pushed.render(&rpc.dialects);
        let notification = json!({ "jsonrpc": "2.0", "method": EVENT_METHOD, "params": params });
        if sink.send(progress::message_line(&notification)).await.is_err() {
            return;
        }
    }
}
