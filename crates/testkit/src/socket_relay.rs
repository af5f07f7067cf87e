//! Relays a TCP port to a Unix socket until the process ends. Test clients that cannot send a token connect through the
//! relay as the user of this process.

use std::{
    io,
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    thread,
};

/// Starts a relay to this Unix socket and returns its local TCP port.
pub fn open_relay(socket: &Path) -> io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let socket: PathBuf = socket.to_owned();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // If the relay fails, the client sees a closed connection.
            drop(forward(stream, &socket));
        }
    });
    Ok(port)
}

fn forward(outer: TcpStream, socket: &Path) -> io::Result<()> {
    outer.set_nodelay(true)?;
    let inner = UnixStream::connect(socket)?;
    let (mut from_outer, mut to_inner) = (outer.try_clone()?, inner.try_clone()?);
    let (mut from_inner, mut to_outer) = (inner, outer);
    thread::spawn(move || {
        drop(io::copy(&mut from_outer, &mut to_inner));
        drop(to_inner.shutdown(Shutdown::Both));
    });
    thread::spawn(move || {
        drop(io::copy(&mut from_inner, &mut to_outer));
        drop(to_outer.shutdown(Shutdown::Both));
    });
    Ok(())
}

/// Returns the user id of the current process, which is also the identity of relayed clients.
pub fn effective_user() -> io::Result<u32> {
    Ok(std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self")?))
}
