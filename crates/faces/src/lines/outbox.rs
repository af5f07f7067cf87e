//! Lines on their way out. Answers that are ready at the same time leave in one write: a client that asks for many
//! things at once wakes up once for many answers instead of once for each.
//!
//! Promises that a line is never torn or lost while the output takes bytes, and that lines leave in the order in which
//! they came.

use std::{
    io, mem,
    sync::{Mutex, PoisonError},
};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync,
};

/// Where lines wait for the output.
pub(crate) struct Outbox<W> {
    waiting: Mutex<Vec<u8>>,
    output: sync::Mutex<W>,
}

impl<W: AsyncWrite + Unpin> Outbox<W> {
    pub(crate) fn new(output: W) -> Self {
        Self { waiting: Mutex::default(), output: sync::Mutex::new(output) }
    }

    /// Sends a line, together with others that are ready. Must run to its end: whoever has the output writes for all.
    pub(crate) async fn send(&self, line: Vec<u8>) -> io::Result<()> {
        self.add(line);
        // Whoever else is ready adds to it now.
        tokio::task::yield_now().await;
        let mut output = self.output.lock().await;
        let lines = self.take();
        if lines.is_empty() {
            // Another has written it, and with the lock has also said so.
            return Ok(());
        }
        output.write_all(&lines).await?;
        output.flush().await
    }

    /// Waits until everything before is out.
    pub(crate) async fn flush(&self) -> io::Result<()> {
        self.output.lock().await.flush().await
    }

    /// Puts another output in the place of the present one, which is let go.
    pub(crate) async fn replace(&self, output: W) {
        *self.output.lock().await = output;
    }

    fn add(&self, line: Vec<u8>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.is_empty() {
            // The common case, and the one where a copy of a large answer would be felt.
            *waiting = line;
        } else {
            waiting.extend_from_slice(&line);
        }
    }

    fn take(&self) -> Vec<u8> {
        mem::take(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::Pin,
        sync::Arc,
        task::{Context, Poll},
    };

    use super::*;

    /// Remembers every write.
    #[derive(Clone, Default)]
    struct Writes(Arc<Mutex<Vec<Vec<u8>>>>);

    impl AsyncWrite for Writes {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.0.lock().unwrap().push(bytes.to_vec());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn what_is_ready_together_leaves_together_and_in_order() {
        let writes = Writes::default();
        let outbox = Arc::new(Outbox::new(writes.clone()));
        let sends: Vec<_> = (0..100)
            .map(|number| {
                let outbox = outbox.clone();
                tokio::spawn(async move { outbox.send(format!("{number}\n").into_bytes()).await })
            })
            .collect();
        for send in sends {
            send.await.unwrap().unwrap();
        }
        let writes = writes.0.lock().unwrap();
        let wanted: String = (0..100).map(|number| format!("{number}\n")).collect();
        assert_eq!(String::from_utf8(writes.concat()).unwrap(), wanted);
        assert_eq!(writes.len(), 1);
    }

    #[tokio::test]
    async fn a_line_alone_does_not_wait_for_others() {
        let writes = Writes::default();
        let outbox = Outbox::new(writes.clone());
        outbox.send(b"a\n".to_vec()).await.unwrap();
        outbox.send(b"b\n".to_vec()).await.unwrap();
        assert_eq!(*writes.0.lock().unwrap(), [b"a\n".to_vec(), b"b\n".to_vec()]);
    }
}
