//! Writes lines to a peer, whole and in order. Closing the writer signals the end of input to the peer.

use std::io;

use super::{conductor::SuccessorEnvelope, proxy::BoxedWriter};
use crate::lines::Outbox;

pub(super) struct AcpPeerWriter {
    outbox: std::sync::Arc<Outbox<BoxedWriter>>,
    envelope: Option<std::sync::Arc<SuccessorEnvelope>>,
}

impl AcpPeerWriter {
    /// A writer that sends lines unchanged.
    pub(super) fn new(output: BoxedWriter) -> Self {
        Self { outbox: std::sync::Arc::new(Outbox::new(output)), envelope: None }
    }

    /// A writer to the successor in a chain, over the same connection.
    pub(super) fn for_successor(&self, envelope: std::sync::Arc<SuccessorEnvelope>) -> Self {
        Self { outbox: self.outbox.clone(), envelope: Some(envelope) }
    }

    /// Sends a line, which must end with its terminator.
    pub(super) async fn send(&self, line: Vec<u8>) -> io::Result<()> {
        let line = match &self.envelope {
            Some(envelope) => envelope.wrap_line(line),
            None => line,
        };
        self.outbox.send(line).await
    }

    pub(super) async fn flush(&self) -> io::Result<()> {
        self.outbox.flush().await
    }

    /// Closes the connection to the peer.
    pub(super) async fn close(&self) {
        self.outbox.replace(Box::new(tokio::io::sink())).await;
    }
}
