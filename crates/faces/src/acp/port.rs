//! The way to a peer. A line is sent whole, in the order in which lines come; closing it is what tells the peer that no
//! more will come.

use std::io;

use tokio::io::AsyncWrite;

use super::chain::Wrap;
use crate::lines::Outbox;

/// Where bytes for a peer go.
pub(super) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// The way to one peer.
pub(super) struct Port {
    outbox: std::sync::Arc<Outbox<Output>>,
    wrap: Option<std::sync::Arc<Wrap>>,
}

impl Port {
    /// The way to a peer that takes lines as they are.
    pub(super) fn new(output: Output) -> Self {
        Self { outbox: std::sync::Arc::new(Outbox::new(output)), wrap: None }
    }

    /// The way to the next one in a chain, through the same conductor.
    pub(super) fn behind(&self, wrap: std::sync::Arc<Wrap>) -> Self {
        Self { outbox: self.outbox.clone(), wrap: Some(wrap) }
    }

    /// Sends a line, which ends in its line end.
    pub(super) async fn send(&self, line: Vec<u8>) -> io::Result<()> {
        let line = match &self.wrap {
            Some(wrap) => wrap.around(line),
            None => line,
        };
        self.outbox.send(line).await
    }

    /// Waits until everything is out.
    pub(super) async fn flush(&self) -> io::Result<()> {
        self.outbox.flush().await
    }

    /// Lets go of the peer: it sees the end.
    pub(super) async fn close(&self) {
        self.outbox.replace(Box::new(tokio::io::sink())).await;
    }
}
