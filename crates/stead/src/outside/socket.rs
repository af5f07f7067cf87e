//! The place of a socket in the file system: taken where nobody listens, and free again when the server ends.
//!
//! Promises: a socket that somebody listens on is never taken, also when two servers start at once; what a dead server left
//! is no hindrance; a file that is no socket is left alone. Behind the second wall the server could not remove its own
//! socket, so a thread that was started before stays outside. It does this one thing: it removes the very file that it was
//! started for, and ends.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::mpsc::{Sender, channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::problem;
use crate::show::Problem;

/// The mode of a socket: for this user alone.
const OWN_MODE: u32 = 0o600;
/// How long somebody else may take or free a socket in the same directory.
const TURN_WAIT: Duration = Duration::from_secs(5);
const TURN_PAUSE: Duration = Duration::from_millis(10);

/// A place where this process listens. Dropping it frees the place.
pub(crate) struct SocketPlace {
    path: PathBuf,
    /// Dropped to say that the server has ended.
    serving: Option<Sender<()>>,
    sweeper: Option<JoinHandle<()>>,
}

impl SocketPlace {
    /// Takes the place, for this user alone. Called before the wall stands.
    pub(crate) fn take(path: &Path) -> Result<(UnixListener, Self), Problem> {
        let failed = |error: io::Error| problem(path, &error);
        let path = std::path::absolute(path).map_err(failed)?;
        let turn = turn(&path).map_err(failed)?;
        clear(&path).map_err(failed)?;
        let listener = UnixListener::bind(&path).map_err(failed)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(OWN_MODE)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let own = identity(&path).map_err(failed)?;
        drop(turn);
        let (serving, ended) = channel::<()>();
        let swept = path.clone();
        let sweeper = std::thread::Builder::new().name("socket".to_owned()).spawn(move || {
            // Nothing is ever sent: it is over when nobody could.
            ended.recv().unwrap_or_default();
            sweep(&swept, own);
        });
        let sweeper = Some(sweeper.map_err(failed)?);
        Ok((listener, Self { path, serving: Some(serving), sweeper }))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketPlace {
    fn drop(&mut self) {
        drop(self.serving.take());
        // Where the thread broke off the file is left, and the next server takes it away.
        self.sweeper.take().map(JoinHandle::join).transpose().unwrap_or_default();
    }
}

/// The turn at the directory of a socket: whoever has it looks, removes and binds alone.
fn turn(path: &Path) -> io::Result<fs::File> {
    let directory = fs::File::open(path.parent().unwrap_or(Path::new("/")))?;
    let until = Instant::now() + TURN_WAIT;
    loop {
        match directory.try_lock() {
            Ok(()) => return Ok(directory),
            Err(fs::TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(TURN_PAUSE),
            Err(fs::TryLockError::WouldBlock) => {
                let reason = "another program holds the directory locked";
                return Err(io::Error::new(ErrorKind::ResourceBusy, reason));
            }
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Removes a socket that nobody listens on. Only a refusal says so: a server that is too busy to answer is alive.
fn clear(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|there| there.file_type().is_socket());
    if !is_socket {
        return Ok(());
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// What tells a file from one that has its name later.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|there| (there.dev(), there.ino()))
}

/// Removes a socket that is still the one of this server.
fn sweep(path: &Path, own: (u64, u64)) {
    // Without a turn nothing is removed: the next server finds that nobody listens.
    let Ok(_turn) = turn(path) else { return };
    if identity(path).is_ok_and(|there| there == own) {
        match fs::remove_file(path) {
            Ok(()) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_taken_where_nobody_listens_and_free_again_afterwards() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let (listener, taken) = SocketPlace::take(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, OWN_MODE);
        // Somebody listens: nobody else has it, and it is not hurt.
        assert!(SocketPlace::take(&path).is_err());
        UnixStream::connect(&path).unwrap();
        drop((listener, taken));
        assert!(fs::symlink_metadata(&path).is_err());
        // What a server left that was killed.
        drop(UnixListener::bind(&path).unwrap());
        let (listener, taken) = SocketPlace::take(&path).unwrap();
        // Somebody else put another there: that is not removed. The name is kept so that the number is not given again.
        fs::rename(&path, place.path().join("moved")).unwrap();
        let other = UnixListener::bind(&path).unwrap();
        drop((listener, taken));
        UnixStream::connect(&path).unwrap();
        drop(other);
        fs::remove_file(&path).unwrap();
        // What is no socket is nobody's to remove.
        fs::write(&path, "kept").unwrap();
        assert!(SocketPlace::take(&path).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"kept");
    }

    #[test]
    fn of_many_that_start_over_a_dead_one_one_listens() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        drop(UnixListener::bind(&path).unwrap());
        let taken: Vec<_> = std::thread::scope(|scope| {
            let starting: Vec<_> = (0..8).map(|_| scope.spawn(|| SocketPlace::take(&path).ok())).collect();
            starting.into_iter().filter_map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(taken.len(), 1);
        UnixStream::connect(&path).unwrap();
    }
}
