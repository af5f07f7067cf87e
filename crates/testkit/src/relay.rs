//! A port that is a door to a socket in the file system: foreign clients that can bring no token come in as this user. Every
//! byte passes as it is. Ends with the process.

use std::{
    io,
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    thread,
};

/// Opens one, and says on which port of this machine.
pub fn open(socket: &Path) -> io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let socket: PathBuf = socket.to_owned();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A connection that cannot be passed on is closed, which its client sees.
            drop(pass(stream, &socket));
        }
    });
    Ok(port)
}

/// Carries both ways until either side has had enough; then the other is told.
fn pass(outer: TcpStream, socket: &Path) -> io::Result<()> {
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

/// Who comes in there: the user that this process runs as.
pub fn user() -> io::Result<u32> {
    Ok(std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self")?))
}
