//! The output queue for lines, which are written whole and in order. The queue sends responses that are ready at the
//! same time in one write, so that the client wakes up once for many responses.

use std::{io, mem, sync::Mutex};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::{self, watch},
};

pub(crate) struct Outbox<W> {
    pending: Mutex<OutboxUnsentLines>,
    /// The sequence number of the last line whose write has succeeded or failed.
    finished: watch::Sender<u64>,
    output: sync::Mutex<W>,
}

#[derive(Default)]
struct OutboxUnsentLines {
    bytes: Vec<u8>,
    /// The sequence number of the last queued line; the first line has the number 1.
    last_number: u64,
}

impl<W: AsyncWrite + Unpin> Outbox<W> {
    pub(crate) fn new(output: W) -> Self {
        Self { pending: Mutex::default(), finished: watch::Sender::new(0), output: sync::Mutex::new(output) }
    }

    /// Sends a line and all other queued lines in one write. The future of `send` must not be dropped, because it may
    /// be writing the lines of other senders.
    pub(crate) async fn send(&self, line: Vec<u8>) -> io::Result<()> {
        let number = self.enqueue(line);
        // During this yield, other senders that are ready queue their lines.
        tokio::task::yield_now().await;
        let mut finished = self.finished.subscribe();
        // Other senders stop waiting for the lock once their lines are written. Otherwise the queue for the lock would
        // grow without bound.
        let mut output = tokio::select! {
            biased;
            _ = finished.wait_for(|finished| *finished >= number) => return Ok(()),
            output = self.output.lock() => output,
        };
        let lines = self.take_pending();
        if lines.bytes.is_empty() {
            return Ok(());
        }
        let written = write_and_flush(&mut *output, &lines.bytes).await;
        // The lines of a failed write count as finished, because no task should wait for lines that are never written.
        self.finished.send_replace(lines.last_number);
        written
    }

    pub(crate) async fn wait_for_room(&self, lines_max: u64) {
        let has_room = |finished: &u64| crate::lock(&self.pending).last_number - finished < lines_max;
        // The channel cannot close during the wait, because its sender lives in `self`.
        drop(self.finished.subscribe().wait_for(has_room).await);
    }

    pub(crate) async fn flush(&self) -> io::Result<()> {
        self.output.lock().await.flush().await
    }

    pub(crate) async fn replace(&self, output: W) {
        *self.output.lock().await = output;
    }

    fn enqueue(&self, line: Vec<u8>) -> u64 {
        let mut pending = crate::lock(&self.pending);
        if pending.bytes.is_empty() {
            // A large response is not copied if no other line is queued.
            pending.bytes = line;
        } else {
            pending.bytes.extend_from_slice(&line);
        }
        pending.last_number += 1;
        pending.last_number
    }

    fn take_pending(&self) -> OutboxUnsentLines {
        let mut pending = crate::lock(&self.pending);
        OutboxUnsentLines { bytes: mem::take(&mut pending.bytes), last_number: pending.last_number }
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
    struct RecordingTestWriter(Arc<Mutex<Vec<Vec<u8>>>>);

    impl AsyncWrite for RecordingTestWriter {
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
        let writes = RecordingTestWriter::default();
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
        let writes = RecordingTestWriter::default();
        let outbox = Outbox::new(writes.clone());
        outbox.send(b"a\n".to_vec()).await.unwrap();
        outbox.send(b"b\n".to_vec()).await.unwrap();
        assert_eq!(*writes.0.lock().unwrap(), [b"a\n".to_vec(), b"b\n".to_vec()]);
    }

    /// Yields so often that all other tasks of the test run until they block.
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
    async fn send_returns_as_soon_as_its_line_is_written() {
        // The pipe holds one byte, so every write blocks until its last byte is read.
        let (near, mut far) = tokio::io::duplex(1);
        let outbox = Arc::new(Outbox::new(near));
        let mut sends = JoinSet::new();
        spawn_sends(&outbox, LINES_PER_ROUND, &mut sends);
        let_tasks_run().await;
        for round in 1..=5 {
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
    async fn there_is_room_again_when_lines_are_read() {
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
    async fn a_failed_write_makes_room_and_ends_every_send() {
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
