//! A conversation over whole messages, for transports that frame them: what comes in is worked on at once and answered as
//! it is done; what is pushed goes the same way out.

use std::{io, pin::Pin, sync::Arc};

use tokio::{
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore, mpsc},
    task::{JoinHandle, JoinSet},
};

use super::{Conversation, Rpc, notice::Out, serve};
use crate::{
    limits::REQUESTS_PENDING_MAX,
    notes,
    push::{PUSHED_WAITING_MAX, Push},
};

/// Bytes of answers that may lie unread, and the pieces they are counted in.
const ANSWERS_BYTES_MAX: usize = 64 << 20;
const PIECE_BYTES: usize = 1 << 10;

/// Messages go out through this channel.
#[derive(Clone)]
struct Channel(mpsc::Sender<Vec<u8>>);

impl Out for Channel {
    fn send(&self, line: Vec<u8>) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + '_>> {
        Box::pin(async { self.0.send(line).await.map_err(|_| io::ErrorKind::BrokenPipe.into()) })
    }
}

/// One client's conversation.
pub(crate) struct Messages {
    rpc: Arc<Rpc>,
    conversation: Arc<Conversation>,
    out: Channel,
    slots: Arc<Semaphore>,
    /// Room for answers that nobody has read yet.
    room: Arc<Semaphore>,
    tasks: JoinSet<()>,
    pushing: JoinHandle<()>,
}

impl Messages {
    /// A conversation whose answers go to this channel.
    pub(crate) fn new(rpc: Arc<Rpc>, to: mpsc::Sender<Vec<u8>>) -> Self {
        let out = Channel(to);
        let (events, pushed) = mpsc::channel(PUSHED_WAITING_MAX);
        let conversation = Arc::new(Conversation::telling(Push::new(events), Arc::new(out.clone())));
        let pushing = tokio::spawn(serve::push(rpc.clone(), pushed, Arc::new(out.clone())));
        let slots = Arc::new(Semaphore::new(REQUESTS_PENDING_MAX));
        let room = Arc::new(Semaphore::new(ANSWERS_BYTES_MAX / PIECE_BYTES));
        Self { rpc, conversation, out, slots, room, tasks: JoinSet::new(), pushing }
    }

    /// A place for one more message, once fewer are worked on than may be. Whoever waits for it goes on sending answers: what is
    /// worked on has its place until its answer is taken.
    pub(crate) async fn place(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.slots.clone().acquire_owned().await
    }

    /// Takes a message in.
    pub(crate) fn take(&mut self, message: &[u8], slot: OwnedSemaphorePermit) {
        while self.tasks.try_join_next().is_some() {}
        let (rpc, out, message) = (self.rpc.clone(), self.out.clone(), message.to_vec());
        let admitted = self.conversation.admit();
        let room = self.room.clone();
        let work = async move {
            // While answers lie unread, nothing more is made that would lie beside them.
            drop(room.acquire().await);
            if let Some(answer) = rpc.answer(&message, &admitted).await {
                let answer = answer.to_string().into_bytes();
                let pieces = answer.len().div_ceil(PIECE_BYTES).clamp(1, ANSWERS_BYTES_MAX / PIECE_BYTES);
                let _held = room.acquire_many(u32::try_from(pieces).unwrap_or(u32::MAX)).await;
                // A client that is gone needs no answer.
                drop(out.0.send(answer).await);
            }
            drop((admitted, slot));
        };
        self.tasks.spawn(notes::taking(notes::current(), work));
    }

    /// The client is gone: what waits ends, what changes something is still done.
    pub(crate) async fn close(mut self) {
        self.conversation.close();
        while self.tasks.join_next().await.is_some() {}
        self.pushing.abort();
    }
}
