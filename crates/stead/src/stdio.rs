//! Asynchronous standard input and output. Clients start servers with pipes or socket pairs, which the runtime can poll; other
//! streams use a thread.

use std::{
    io,
    os::{fd::AsFd, unix::net::UnixStream as StdStream},
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{
        UnixStream,
        unix::pipe::{OpenOptions, Receiver, Sender},
    },
};

/// Paths that reopen the standard streams with separate file status flags.
const STDIN_PATH: &str = "/proc/self/fd/0";
const STDOUT_PATH: &str = "/proc/self/fd/1";

pub(crate) type StdinReader = Box<dyn AsyncRead + Send + Unpin>;
pub(crate) type StdoutWriter = Box<dyn AsyncWrite + Send + Unpin>;

/// Must be called inside a runtime.
pub(crate) fn open_stdin() -> StdinReader {
    let pipe: io::Result<Receiver> = OpenOptions::new().open_receiver(STDIN_PATH);
    match (pipe, as_socket(&io::stdin())) {
        (Ok(pipe), _) => Box::new(pipe),
        (Err(_), Ok(socket)) => Box::new(socket),
        (Err(_), Err(_)) => Box::new(tokio::io::stdin()),
    }
}

/// Must be called inside a runtime.
pub(crate) fn open_stdout() -> StdoutWriter {
    let pipe: io::Result<Sender> = OpenOptions::new().open_sender(STDOUT_PATH);
    match (pipe, as_socket(&io::stdout())) {
        (Ok(pipe), _) => Box::new(pipe),
        (Err(_), Ok(socket)) => Box::new(socket),
        (Err(_), Err(_)) => Box::new(tokio::io::stdout()),
    }
}

/// The stream as a socket, if it is one.
fn as_socket(stream: &impl AsFd) -> io::Result<UnixStream> {
    let stream = StdStream::from(stream.as_fd().try_clone_to_owned()?);
    // Fails if the stream is not a Unix socket.
    stream.local_addr()?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
