//! What a client is told without an answer: how far a call of its has come. A notice is out before the answer of its
//! call can be.

use std::{io, pin::Pin, sync::Arc};

use engine::Progress;
use serde_json::{Map, Value, json};
use tokio::io::AsyncWrite;

use super::{
    code::{self, ErrorObject},
    message::id_of,
};
use crate::{
    lines::Outbox,
    progress::{self, Gone, Seen, Told},
};

/// The notification that carries progress.
const PROGRESS_METHOD: &str = "$/progress";
/// The member of `_meta` that asks for it.
const TOKEN_MEMBER: &str = "progressToken";

/// A way out for lines, whatever they are written to.
pub(super) trait Out: Send + Sync {
    /// Sends one line; resolves once it is out.
    fn send(&self, line: Vec<u8>) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + '_>>;
}

impl<W: AsyncWrite + Unpin + Send> Out for Outbox<W> {
    fn send(&self, line: Vec<u8>) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + '_>> {
        Box::pin(Outbox::send(self, line))
    }
}

/// A message as one line.
pub(super) fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// By which name the client wants to hear of a call's progress, if it does. A name that cannot be echoed is refused:
/// whoever sent it waits for notices.
pub(super) fn token(meta: &Map<String, Value>) -> Result<Option<Value>, ErrorObject> {
    let Some(given) = meta.get(TOKEN_MEMBER) else { return Ok(None) };
    match id_of(given) {
        Some(token) if !token.is_null() => Ok(Some(token)),
        Some(_) | None => {
            let wanted = format!("_meta.{TOKEN_MEMBER} must be a whole number or a short string");
            Err(ErrorObject::new(code::INVALID_PARAMS, wanted))
        }
    }
}

/// Who tells a client how far its call has come.
pub(super) struct Teller(Option<(Arc<dyn Out>, Value, Seen)>);

impl Teller {
    /// Where a call puts its progress, and who tells it; both idle when the client did not ask or cannot be told.
    pub(super) fn new(out: Option<Arc<dyn Out>>, token: Option<Value>) -> (Option<Told>, Self) {
        match (out, token) {
            (Some(out), Some(token)) => {
                let (told, seen) = progress::channel();
                (Some(told), Self(Some((out, token, seen))))
            }
            (Some(_) | None, _) => (None, Self(None)),
        }
    }

    /// Tells until the call ends.
    pub(super) async fn tell(self) {
        let Some((out, token, seen)) = self.0 else { return };
        let notice = |progress: Progress| {
            let mut params =
                json!({ "token": token, "done": progress.done, "message": progress.to_string() });
            if let Some(found) = progress.found {
                params["found"] = found.into();
            }
            let message = json!({ "jsonrpc": "2.0", "method": PROGRESS_METHOD, "params": params });
            let out = &out;
            async move { out.send(line(&message)).await.map_err(|_| Gone) }
        };
        seen.tell(notice).await;
    }
}
