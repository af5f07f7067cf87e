//! Standard input and output without a thread in between, where the system allows: clients start servers with pipes or
//! with socket pairs, and both can be waited for by the runtime itself.

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

/// Where the kernel lets a process open its own standard streams anew, with flags of their own.
const OWN_INPUT: &str = "/proc/self/fd/0";
const OWN_OUTPUT: &str = "/proc/self/fd/1";

pub(crate) type Input = Box<dyn AsyncRead + Send + Unpin>;
pub(crate) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Standard input. Must be called inside a runtime.
pub(crate) fn input() -> Input {
    let pipe: io::Result<Receiver> = OpenOptions::new().open_receiver(OWN_INPUT);
    match (pipe, socket(&io::stdin())) {
        (Ok(pipe), _) => Box::new(pipe),
        (Err(_), Ok(socket)) => Box::new(socket),
        (Err(_), Err(_)) => Box::new(tokio::io::stdin()),
    }
}

/// Standard output. Must be called inside a runtime.
pub(crate) fn output() -> Output {
    let pipe: io::Result<Sender> = OpenOptions::new().open_sender(OWN_OUTPUT);
    match (pipe, socket(&io::stdout())) {
        (Ok(pipe), _) => Box::new(pipe),
        (Err(_), Ok(socket)) => Box::new(socket),
        (Err(_), Err(_)) => Box::new(tokio::io::stdout()),
    }
}

/// The stream as a socket, if it is one.
fn socket(stream: &impl AsFd) -> io::Result<UnixStream> {
    let stream = StdStream::from(stream.as_fd().try_clone_to_owned()?);
    // Fails on everything that is no socket of this family.
    stream.local_addr()?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
