//! Output queue for lines. Responses that are ready at the same time go out in one write, so that a client with many
//! concurrent requests wakes up once for many responses.
//!
//! Lines are written whole and in order, and none is lost while the output accepts bytes.

use std::{
    io, mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::{self, watch},
};

/// Queues lines for an output.
pub(crate) struct Outbox<W> {
    pending: Mutex<WaitingLines>,
    /// The number of the last line that was written or failed.
    finished: watch::Sender<u64>,
    output: sync::Mutex<W>,
}

/// Lines that no sender has started to write.
#[derive(Default)]
struct WaitingLines {
    bytes: Vec<u8>,
    /// The number of the last enqueued line; lines are numbered from 1.
    last_number: u64,
}

impl<W: AsyncWrite + Unpin> Outbox<W> {
    pub(crate) fn new(output: W) -> Self {
        Self { pending: Mutex::default(), finished: watch::Sender::new(0), output: sync::Mutex::new(output) }
    }

    /// Sends a line with other queued lines. Must not be dropped: the sender that holds the output writes for all.
    pub(crate) async fn send(&self, line: Vec<u8>) -> io::Result<()> {
        let number = self.enqueue(line);
        // Lets other ready senders enqueue their lines.
        tokio::task::yield_now().await;
        let mut finished = self.finished.subscribe();
        // The lock is passed on to one sender per write, and a write takes the lines of many: a sender that waited for
        // the lock although its line is out would stay in an ever longer queue.
        let mut output = tokio::select! {
            biased;
            _ = finished.wait_for(|finished| *finished >= number) => return Ok(()),
            output = self.output.lock() => output,
        };
        let lines = self.take_pending();
        if lines.bytes.is_empty() {
            // Another sender wrote the line and updated `finished` before it released the lock.
            return Ok(());
        }
        let written = write_and_flush(&mut *output, &lines.bytes).await;
        // A failed write counts as finished: these lines are not retried, so waiting for them would never end.
        self.finished.send_replace(lines.last_number);
        written
    }

    /// Waits until fewer than `lines_max` lines are unfinished. Cancel safe.
    pub(crate) async fn wait_for_room(&self, lines_max: u64) {
        let has_room = |finished: &u64| self.waiting().last_number - finished < lines_max;
        // The sender lives in `self`, so this ends with room and never because the channel closed.
        drop(self.finished.subscribe().wait_for(has_room).await);
    }

    /// Flushes the output.
    pub(crate) async fn flush(&self) -> io::Result<()> {
        self.output.lock().await.flush().await
    }

    /// Replaces the output and drops the old one.
    pub(crate) async fn replace(&self, output: W) {
        *self.output.lock().await = output;
    }

    /// Adds a line and returns its number.
    fn enqueue(&self, line: Vec<u8>) -> u64 {
        let mut waiting = self.waiting();
        if waiting.bytes.is_empty() {
            // The common case; it avoids copying a large response.
            waiting.bytes = line;
        } else {
            waiting.bytes.extend_from_slice(&line);
        }
        waiting.last_number += 1;
        waiting.last_number
    }

    fn take_pending(&self) -> WaitingLines {
        let mut waiting = self.waiting();
        WaitingLines { bytes: mem::take(&mut waiting.bytes), last_number: waiting.last_number }
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingLines> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write_and_flush<W: AsyncWrite + Unpin>(output: &mut W, bytes: &[u8]) -> io::Result<()> {
    output.write_all(bytes).await?;
    output.flush().await
}

#[cfg(test)]
mod tests {
    use std::{
        pin::Pin,
        sync::Arc,
        task::{Context, Poll},
    };

    use tokio::{io::AsyncReadExt, task::JoinSet};

    use super::*;

    #[derive(Clone, Default)]
    struct RecordedWrites(Arc<Mutex<Vec<Vec<u8>>>>);

    impl AsyncWrite for RecordedWrites {
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
    async fn concurrent_lines_are_written_together_in_order() {
        let writes = RecordedWrites::default();
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
    async fn single_line_is_written_immediately() {
        let writes = RecordedWrites::default();
        let outbox = Outbox::new(writes.clone());
        outbox.send(b"a\n".to_vec()).await.unwrap();
        outbox.send(b"b\n".to_vec()).await.unwrap();
        assert_eq!(*writes.0.lock().unwrap(), [b"a\n".to_vec(), b"b\n".to_vec()]);
    }

    /// Runs all tasks until each of them is blocked.
    async fn let_tasks_run() {
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
    }

    const LINE: &[u8] = b"123456789\n";
    const LINES_PER_ROUND: usize = 10;

    fn spawn_sends(outbox: &Arc<Outbox<tokio::io::DuplexStream>>, count: usize, sends: &mut JoinSet<io::Result<()>>) {
        for _ in 0..count {
            let outbox = outbox.clone();
            sends.spawn(async move { outbox.send(LINE.to_vec()).await });
        }
    }

    #[tokio::test]
    async fn a_sender_leaves_as_soon_as_its_line_is_written() {
        // The pipe holds one byte, so every write blocks until its last byte is read.
        let (near, mut far) = tokio::io::duplex(1);
        let outbox = Arc::new(Outbox::new(near));
        let mut sends = JoinSet::new();
        spawn_sends(&outbox, LINES_PER_ROUND, &mut sends);
        let_tasks_run().await;
        for round in 1..=5 {
            // The next lines are enqueued while the previous write is blocked.
            spawn_sends(&outbox, LINES_PER_ROUND, &mut sends);
            let_tasks_run().await;
            let mut written = vec![0; LINES_PER_ROUND * LINE.len()];
            far.read_exact(&mut written).await.unwrap();
            assert_eq!(written, LINE.repeat(LINES_PER_ROUND));
            let_tasks_run().await;
            while let Some(sent) = sends.try_join_next() {
                sent.unwrap().unwrap();
            }
            assert!(sends.len() <= LINES_PER_ROUND, "{} unfinished after round {round}", sends.len());
        }
    }

    #[tokio::test]
    async fn room_comes_back_when_lines_are_read() {
        let (near, mut far) = tokio::io::duplex(1);
        let outbox = Arc::new(Outbox::new(near));
        outbox.wait_for_room(1).await;
        let mut sends = JoinSet::new();
        spawn_sends(&outbox, LINES_PER_ROUND, &mut sends);
        let_tasks_run().await;
        outbox.wait_for_room(LINES_PER_ROUND as u64 + 1).await;
        let waiting = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.wait_for_room(LINES_PER_ROUND as u64).await }
        });
        let_tasks_run().await;
        assert!(!waiting.is_finished());
        far.read_exact(&mut vec![0; LINES_PER_ROUND * LINE.len()]).await.unwrap();
        waiting.await.unwrap();
    }

    #[tokio::test]
    async fn a_failed_write_gives_room_and_ends_every_send() {
        let (near, far) = tokio::io::duplex(1);
        let outbox = Arc::new(Outbox::new(near));
        let mut sends = JoinSet::new();
        spawn_sends(&outbox, LINES_PER_ROUND, &mut sends);
        let_tasks_run().await;
        spawn_sends(&outbox, LINES_PER_ROUND, &mut sends);
        let_tasks_run().await;
        drop(far);
        let failed = sends.join_all().await.iter().filter(|sent| sent.is_err()).count();
        assert_eq!(failed, 2, "one for each write");
        outbox.wait_for_room(1).await;
    }
}
