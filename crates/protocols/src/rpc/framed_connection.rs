//! A connection over a transport that frames messages. Messages are handled concurrently and answered as they complete;
//! pushed events use the same channel.

use std::{io, pin::Pin, sync::Arc};

use tokio::{
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore, mpsc},
    task::{JoinHandle, JoinSet},
};

use super::{RpcConnection, RpcServer, line_server, progress::MessageSink};
use crate::{
    call_recorder,
    event_pusher::{EventPusher, QUEUED_EVENTS_MAX},
    limits::REQUESTS_PENDING_MAX,
};

/// Bytes of unread responses, and the unit they are counted in.
const UNREAD_RESPONSE_BYTES_MAX: usize = 64 << 20;
const RESPONSE_UNIT_BYTES: usize = 1 << 10;

#[derive(Clone)]
struct ChannelSink(mpsc::Sender<Vec<u8>>);

impl MessageSink for ChannelSink {
    fn send(&self, line: Vec<u8>) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + '_>> {
        Box::pin(async { self.0.send(line).await.map_err(|_| io::ErrorKind::BrokenPipe.into()) })
    }
}

pub(crate) struct FramedRpcConnection {
    server: Arc<RpcServer>,
    connection: Arc<RpcConnection>,
    sink: ChannelSink,
    message_slots: Arc<Semaphore>,
    /// Permits for unread responses.
    response_bytes: Arc<Semaphore>,
    tasks: JoinSet<()>,
    push_task: JoinHandle<()>,
}

impl FramedRpcConnection {
    /// A connection that sends its responses to this channel.
    pub(crate) fn new(server: Arc<RpcServer>, sender: mpsc::Sender<Vec<u8>>) -> Self {
        let sink = ChannelSink(sender);
        let (events, pushed) = mpsc::channel(QUEUED_EVENTS_MAX);
        let connection = Arc::new(RpcConnection::with_output(EventPusher::new(events), Arc::new(sink.clone())));
        let push_task = tokio::spawn(line_server::push_events(server.clone(), pushed, Arc::new(sink.clone())));
        let message_slots = Arc::new(Semaphore::new(REQUESTS_PENDING_MAX));
        let response_bytes = Arc::new(Semaphore::new(UNREAD_RESPONSE_BYTES_MAX / RESPONSE_UNIT_BYTES));
        Self { server, connection, sink, message_slots, response_bytes, tasks: JoinSet::new(), push_task }
    }

    /// Waits for a free message slot. The caller must keep sending responses meanwhile: a message holds its slot until
    /// its response is sent.
    pub(crate) async fn acquire_slot(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.message_slots.clone().acquire_owned().await
    }

    pub(crate) fn accept(&mut self, message: &[u8], slot: OwnedSemaphorePermit) {
        while self.tasks.try_join_next().is_some() {}
        let (rpc, out, message) = (self.server.clone(), self.sink.clone(), message.to_vec());
        let pending = self.connection.accept_message();
        let response_bytes = self.response_bytes.clone();
        let task = async move {
            // Wait while unread responses fill the buffer, so that memory stays bounded.
            drop(response_bytes.acquire().await);
            if let Some(response) = rpc.answer_message(&message, &pending).await {
                let response = response.to_string().into_bytes();
                let units = response
                    .len()
                    .div_ceil(RESPONSE_UNIT_BYTES)
                    .clamp(1, UNREAD_RESPONSE_BYTES_MAX / RESPONSE_UNIT_BYTES);
                let _permits = response_bytes.acquire_many(u32::try_from(units).unwrap_or(u32::MAX)).await;
                // A disconnected client needs no response.
                drop(out.0.send(response).await);
            }
            drop((pending, slot));
        };
        self.tasks.spawn(call_recorder::record_during(call_recorder::current_recorder(), task));
    }

    /// Closes the connection: waiting calls are cancelled, changes are completed.
    pub(crate) async fn close(mut self) {
        self.connection.close();
        while self.tasks.join_next().await.is_some() {}
        self.push_task.abort();
    }
}
