//! How messages come in and go out: one line each. Checks every line before the protocol library sees it, answers what
//! is no message, and leaves the input unread while too many requests are pending.

use std::{io, sync::Arc};

use rmcp::{
    RoleServer,
    model::{
        ClientRequest, ErrorData, Extensions, GetExtensions, GetMeta, JsonRpcMessage, ProtocolVersion,
        RequestId, ServerJsonRpcMessage,
    },
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
};

use super::message::{self, Envelope, Refused};
use crate::{
    limits::REQUESTS_PENDING_MAX,
    lines::{LineReader, Next, Outbox},
};

/// Whether the client has closed its side. Every clone sees it.
pub(crate) type Closed = watch::Receiver<bool>;

/// Held by a request until it is answered; rides along in its extensions.
#[derive(Clone)]
struct Pending(Arc<OwnedSemaphorePermit>);

/// Whether no other request waits beside the one that has these extensions. One slot is always taken for the next.
pub(super) fn is_alone(extensions: &Extensions) -> bool {
    let taken = |pending: &Pending| REQUESTS_PENDING_MAX - pending.0.semaphore().available_permits();
    extensions.get::<Pending>().map(taken).is_some_and(|taken| taken <= 2)
}

/// Messages as lines over a pair of byte streams.
pub(super) struct Lines<R, W> {
    lines: LineReader<R>,
    output: Arc<Outbox<W>>,
    slots: Arc<Semaphore>,
    /// The slot for the next request.
    slot: Option<OwnedSemaphorePermit>,
    opened: Opened,
    closed: watch::Sender<bool>,
}

/// Whether the client has opened the conversation. Before that only requests are passed on: the protocol library ends
/// at anything else.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opened {
    Not,
    Yes,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    pub(super) fn new(input: R, output: W) -> (Self, Closed) {
        let (closed, watcher) = watch::channel(false);
        let lines = Self {
            lines: LineReader::new(input),
            output: Arc::new(Outbox::new(output)),
            slots: Arc::new(Semaphore::new(REQUESTS_PENDING_MAX)),
            slot: None,
            opened: Opened::Not,
            closed,
        };
        (lines, watcher)
    }

    /// The message in the current line; nothing when it was refused or does not matter.
    fn read(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let line = message::bare(self.lines.line());
        if line.is_empty() {
            return None;
        }
        let envelope = match message::inspect(line) {
            Ok(envelope) => envelope,
            Err(refused) => {
                self.refuse(refused);
                return None;
            }
        };
        match serde_json::from_slice::<RxJsonRpcMessage<RoleServer>>(line) {
            Ok(message) => self.admit(message),
            Err(_) => {
                self.refuse_shape(envelope);
                None
            }
        }
    }

    fn admit(&mut self, message: RxJsonRpcMessage<RoleServer>) -> Option<RxJsonRpcMessage<RoleServer>> {
        match message {
            JsonRpcMessage::Request(mut request) => {
                if opens(&request.request) {
                    self.opened = Opened::Yes;
                }
                if let Some(slot) = self.slot.take() {
                    request.request.extensions_mut().insert(Pending(Arc::new(slot)));
                }
                Some(JsonRpcMessage::Request(request))
            }
            other @ (JsonRpcMessage::Notification(_)
            | JsonRpcMessage::Response(_)
            | JsonRpcMessage::Error(_)) => (self.opened == Opened::Yes).then_some(other),
        }
    }

    /// An object that is no message. A notification is never answered.
    fn refuse_shape(&mut self, envelope: Envelope) {
        if envelope.method.is_some() && envelope.id.is_none() {
            return;
        }
        self.refuse(Refused::request(envelope.id, "the object is not a JSON-RPC 2.0 request"));
    }

    /// Answers with an error. The answer is written by a task of its own, because reading may be abandoned half-way
    /// and a line must not be. The task holds the slot, so a client that never reads cannot pile up tasks.
    fn refuse(&mut self, refused: Refused) {
        let line = refusal(refused.id.as_ref(), &refused.error);
        let output = self.output.clone();
        let slot = self.slot.take();
        tokio::spawn(async move {
            // A client that is gone needs no answer; the next read finds out.
            drop(output.send(line).await);
            drop(slot);
        });
    }
}

/// Whether the protocol library takes this request as the start of a conversation.
fn opens(request: &ClientRequest) -> bool {
    if matches!(request, ClientRequest::InitializeRequest(_)) {
        return true;
    }
    let meta = request.get_meta();
    !matches!(request, ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_))
        && meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
        && meta.protocol_version().is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
}

/// An error as a line. An unknown id is null, as JSON-RPC wants it.
fn refusal(id: Option<&RequestId>, error: &ErrorData) -> Vec<u8> {
    let id = id.map_or(serde_json::Value::Null, |id| id.clone().into_json_value());
    let mut line = serde_json::json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into_bytes();
    line.push(b'\n');
    line
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let output = self.output.clone();
        async move { output.send(encode(&item)?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if self.slot.is_none() {
                self.slot = Some(self.slots.clone().acquire_owned().await.ok()?);
            }
            match self.lines.next().await {
                Next::Line => {
                    if let Some(message) = self.read() {
                        return Some(message);
                    }
                }
                Next::Oversize(id) => {
                    let id = id.as_ref().and_then(message::request_id);
                    self.refuse(Refused::request(id, "the message is too long"));
                }
                Next::End => {
                    self.closed.send_replace(true);
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.output.flush().await
    }
}

fn encode(item: &ServerJsonRpcMessage) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(item)?;
    line.push(b'\n');
    Ok(line)
}
