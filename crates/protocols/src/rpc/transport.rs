//! Transports JSON-RPC messages over a pair of byte streams, or over connections that frame messages, such as a
//! WebSocket. Messages are handled concurrently, so that a long or waiting call blocks no other call. A transport stops
//! reading input while too many messages are pending.

use std::{io, pin::Pin, sync::Arc};

use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore, mpsc},
    task::{JoinHandle, JoinSet},
};

use super::{
    RpcConnection, RpcServer,
    message::{RpcMessageError, echoable_id},
};
use crate::{
    call_recorder,
    event_pusher::{EVENT_METHOD, EventPusher, PushedEvent},
    limits::{QUEUED_EVENTS_MAX, REQUESTS_PENDING_MAX, UNREAD_RESPONSE_BYTES_MAX},
    lines::{LineReader, LineReaderEvent, Outbox, into_line},
};

/// The number of response bytes that one semaphore permit represents.
const RESPONSE_UNIT_BYTES: usize = 1 << 10;

pub(super) trait MessageSink: Send + Sync {
    fn send(&self, line: Vec<u8>) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + '_>>;
}

impl<W: AsyncWrite + Unpin + Send> MessageSink for Outbox<W> {
    fn send(&self, line: Vec<u8>) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + '_>> {
        Box::pin(Outbox::send(self, line))
    }
}

/// Serves one JSON-RPC client until the client closes the connection. When the client disconnects, calls that wait for
/// an event are cancelled, and all other calls run to completion.
///
/// This function must run inside a tokio runtime, whose blocking threads the client's requests can occupy.
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
        let line = lines.message();
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
                // A send error means that the client has disconnected, which the next read reports.
                drop(outbox.send(into_line(response)).await);
            }
            drop((pending, slot));
        });
    }
    connection.close();
    while tasks.join_next().await.is_some() {}
    push_task.abort();
    outbox.flush().await
}

async fn push_events(rpc: Arc<RpcServer>, mut events: mpsc::Receiver<PushedEvent>, sink: Arc<dyn MessageSink>) {
    while let Some(pushed) = events.recv().await {
        let params = pushed.render(&rpc.dialects);
        let notification = json!({ "jsonrpc": "2.0", "method": EVENT_METHOD, "params": params });
        if sink.send(into_line(notification.to_string())).await.is_err() {
            return;
        }
    }
}

#[derive(Clone)]
struct RpcChannelMessageSink(mpsc::Sender<Vec<u8>>);

impl MessageSink for RpcChannelMessageSink {
    fn send(&self, line: Vec<u8>) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + '_>> {
        Box::pin(async { self.0.send(line).await.map_err(|_| io::ErrorKind::BrokenPipe.into()) })
    }
}

/// A JSON-RPC connection over a transport that frames messages; pushed events share the channel of the responses.
pub(crate) struct FramedRpcConnection {
    server: Arc<RpcServer>,
    connection: Arc<RpcConnection>,
    sink: RpcChannelMessageSink,
    message_slots: Arc<Semaphore>,
    /// Limits the bytes of responses that the client has not read.
    response_bytes: Arc<Semaphore>,
    tasks: JoinSet<()>,
    push_task: JoinHandle<()>,
}

impl FramedRpcConnection {
    pub(crate) fn new(server: Arc<RpcServer>, sender: mpsc::Sender<Vec<u8>>) -> Self {
        let sink = RpcChannelMessageSink(sender);
        let (events, pushed) = mpsc::channel(QUEUED_EVENTS_MAX);
        let connection = Arc::new(RpcConnection::with_output(EventPusher::new(events), Arc::new(sink.clone())));
        let push_task = tokio::spawn(push_events(server.clone(), pushed, Arc::new(sink.clone())));
        let message_slots = Arc::new(Semaphore::new(REQUESTS_PENDING_MAX));
        let response_bytes = Arc::new(Semaphore::new(UNREAD_RESPONSE_BYTES_MAX / RESPONSE_UNIT_BYTES));
        Self { server, connection, sink, message_slots, response_bytes, tasks: JoinSet::new(), push_task }
    }

    /// Waits for a free message slot. A message keeps its slot until its response is sent, so responses must be sent
    /// during the wait.
    pub(crate) async fn acquire_slot(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.message_slots.clone().acquire_owned().await
    }

    pub(crate) fn accept(&mut self, message: &[u8], slot: OwnedSemaphorePermit) {
        while self.tasks.try_join_next().is_some() {}
        let (rpc, out, message) = (self.server.clone(), self.sink.clone(), message.to_vec());
        let pending = self.connection.accept_message();
        let response_bytes = self.response_bytes.clone();
        let task = async move {
            // The message waits here while unread responses take up all the allowed memory.
            drop(response_bytes.acquire().await);
            if let Some(response) = rpc.answer_message(&message, &pending).await {
                let response = response.into_bytes();
                let units = response
                    .len()
                    .div_ceil(RESPONSE_UNIT_BYTES)
                    .clamp(1, UNREAD_RESPONSE_BYTES_MAX / RESPONSE_UNIT_BYTES);
                let _permits = response_bytes.acquire_many(u32::try_from(units).unwrap_or(u32::MAX)).await;
                drop(out.0.send(response).await);
            }
            drop((pending, slot));
        };
        self.tasks.spawn(call_recorder::record_during(call_recorder::current_recorder(), task));
    }

    pub(crate) async fn close(mut self) {
        self.connection.close();
        while self.tasks.join_next().await.is_some() {}
        self.push_task.abort();
    }
}
