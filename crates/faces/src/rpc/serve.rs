//! JSON-RPC over a pair of byte streams, one message a line. Messages are answered as they are done, so a call that
//! waits or works long holds up no other; too many at once leave the input unread.

use std::{io, sync::Arc};

use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{Semaphore, mpsc},
    task::JoinSet,
};

use super::{
    Conversation, Rpc,
    message::{Refused, id_of},
    notice::{self, Out},
};
use crate::{
    limits::REQUESTS_PENDING_MAX,
    lines::{LineReader, Next, Outbox},
    push::{EVENT_METHOD, PUSHED_WAITING_MAX, Push, Pushed},
};

/// The byte order mark that a parser may ignore.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Serves one client until it closes its side; then what runs is ended and answered.
///
/// Must run inside a tokio runtime; calls occupy its blocking threads.
pub async fn serve<R, W>(rpc: Arc<Rpc>, input: R, output: W) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let mut lines = LineReader::new(input);
    let outbox = Arc::new(Outbox::new(output));
    let slots = Arc::new(Semaphore::new(REQUESTS_PENDING_MAX));
    let (events, pushed) = mpsc::channel(PUSHED_WAITING_MAX);
    let conversation = Arc::new(Conversation::telling(Push::new(events), outbox.clone()));
    let pushing = tokio::spawn(push(rpc.clone(), pushed, outbox.clone()));
    let mut tasks = JoinSet::new();
    while let Ok(slot) = slots.clone().acquire_owned().await {
        while tasks.try_join_next().is_some() {}
        let refused = match lines.next().await {
            Next::Line => None,
            Next::Oversize(id) => {
                let id = id.as_ref().and_then(id_of);
                Some(Refused::request(id, "the message is too long").answer())
            }
            Next::End => break,
        };
        let line = lines.line();
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        if refused.is_none() && line.is_empty() {
            continue;
        }
        let (rpc, outbox, line) = (rpc.clone(), outbox.clone(), line.to_vec());
        let admitted = conversation.admit();
        tasks.spawn(async move {
            let answer = match refused {
                Some(refused) => Some(refused),
                None => rpc.answer(&line, &admitted).await,
            };
            drop(line);
            if let Some(answer) = answer {
                // A client that is gone needs no answer; the next read finds out.
                drop(outbox.send(notice::line(&answer)).await);
            }
            drop((admitted, slot));
        });
    }
    conversation.close();
    while tasks.join_next().await.is_some() {}
    pushing.abort();
    outbox.flush().await
}

/// Sends events as notifications, as they come.
pub(super) async fn push(rpc: Arc<Rpc>, mut events: mpsc::Receiver<Pushed>, out: Arc<dyn Out>) {
    while let Some(pushed) = events.recv().await {
        let told = pushed.told(&rpc.dialects);
        let notification = json!({ "jsonrpc": "2.0", "method": EVENT_METHOD, "params": told });
        if out.send(notice::line(&notification)).await.is_err() {
            return;
        }
    }
}
