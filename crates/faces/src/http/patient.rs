//! A connection whose other end must go on reading: one that takes nothing for too long is ended, whatever waits to be sent.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};

/// A connection, and since when nothing goes out.
pub(super) struct Patient<S> {
    stream: S,
    wait: Duration,
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    /// Waits this long for the other end to take something.
    pub(super) fn new(stream: S, wait: Duration) -> Self {
        Self { stream, wait, stuck: None }
    }

    /// Judges what a write came to.
    fn judge<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let until = Instant::now() + self.wait;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        match stuck.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.judge(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judge(ended, context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const WAIT: Duration = Duration::from_millis(200);

    #[tokio::test]
    async fn who_reads_is_served_and_who_does_not_is_let_go() {
        let (here, mut there) = tokio::io::duplex(16);
        let mut patient = Patient::new(here, WAIT);
        let reading = tokio::spawn(async move {
            let mut all = vec![0; 64];
            there.read_exact(&mut all).await.unwrap();
            there
        });
        patient.write_all(&[1; 64]).await.unwrap();
        let _there = reading.await.unwrap();
        let ended = patient.write_all(&[1; 64]).await.unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
    }
}
