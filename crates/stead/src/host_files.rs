//! Opens files outside any workspace that the user names on the command line. In the `stead` binary, only the module
//! `host_files` opens files by path. A Unix socket that another process listens on is never replaced. A cleanup thread
//! outside of the sandbox removes the server's socket file, because the sandboxed server cannot.
#![expect(clippy::disallowed_methods, reason = "a file the person at the command line names, outside any workspace")]

use std::{
    fs,
    io::{self, BufWriter, ErrorKind},
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::mpsc::{Sender, channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crate::{limits::HOST_FILE_BYTES_MAX, output::CommandError};

const OTHERS_READ_BIT: u32 = 0o004;
const OWNER_ONLY_MODE: u32 = 0o600;
const LOCK_WAIT: Duration = Duration::from_secs(5);
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(10);

pub(crate) fn read_text(path: &Path) -> Result<String, CommandError> {
    let size = fs::metadata(path).map_err(|error| file_error("read", path, &error))?.len();
    if size > HOST_FILE_BYTES_MAX {
        let reason = format!(
            "cannot read {}: it has {size} bytes, and at most {HOST_FILE_BYTES_MAX} are allowed",
            path.display()
        );
        return Err(CommandError::System(reason));
    }
    fs::read_to_string(path).map_err(|error| file_error("read", path, &error))
}

pub(crate) fn create_new(path: &Path) -> Result<BufWriter<fs::File>, CommandError> {
    fs::File::create_new(path).map(BufWriter::new).map_err(|error| file_error("create", path, &error))
}

pub(crate) fn open(path: &Path) -> Result<fs::File, CommandError> {
    fs::File::open(path).map_err(|error| file_error("open", path, &error))
}

pub(crate) fn replace_text(path: &Path, text: &str) -> Result<(), CommandError> {
    fs::write(path, text).map_err(|error| file_error("write", path, &error))
}

pub(crate) fn exists(path: &Path) -> bool {
    fs::metadata(path).is_ok()
}

pub(crate) fn is_world_readable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.mode() & OTHERS_READ_BIT != 0)
}

pub(crate) fn canonical_path(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// Returns the effective user id of this process, which owns `/proc/self`.
pub(crate) fn effective_user() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|process| process.uid())
}

pub(crate) fn is_process_running(process: u32) -> bool {
    fs::metadata(format!("/proc/{process}")).is_ok()
}

pub(crate) fn file_error(action: &str, path: &Path, error: &io::Error) -> CommandError {
    CommandError::System(format!("cannot {action} {}: {error}", path.display()))
}

/// A Unix socket that this process listens on; dropping the value removes the socket file.
pub(crate) struct BoundSocketPath {
    path: PathBuf,
    shutdown_sender: Option<Sender<()>>,
    cleanup_thread: Option<JoinHandle<()>>,
}

impl BoundSocketPath {
    /// Binds a Unix socket that only this user can access; must be called before the sandbox starts.
    pub(crate) fn bind(path: &Path) -> Result<(UnixListener, Self), CommandError> {
        let failed = |error: io::Error| file_error("listen on", path, &error);
        let path = std::path::absolute(path).map_err(failed)?;
        let lock = lock_directory(&path).map_err(failed)?;
        remove_stale_socket(&path).map_err(failed)?;
        let listener = UnixListener::bind(&path).map_err(failed)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(OWNER_ONLY_MODE)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let identity = device_and_inode(&path).map_err(failed)?;
        drop(lock);
        let (shutdown_sender, shutdown) = channel::<()>();
        let thread_path = path.clone();
        let cleanup_thread = std::thread::Builder::new().name("socket".to_owned()).spawn(move || {
            // Nothing is ever sent; the channel closes when the sender is dropped.
            shutdown.recv().unwrap_or_default();
            remove_own_socket(&thread_path, identity);
        });
        let cleanup_thread = Some(cleanup_thread.map_err(failed)?);
        Ok((listener, Self { path, shutdown_sender: Some(shutdown_sender), cleanup_thread }))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for BoundSocketPath {
    fn drop(&mut self) {
        drop(self.shutdown_sender.take());
        // If the thread panicked, the socket file stays, and the next server replaces it.
        self.cleanup_thread.take().map(JoinHandle::join).transpose().unwrap_or_default();
    }
}

/// Locks the directory of a socket, so that only one process at a time checks, removes and binds the socket.
fn lock_directory(path: &Path) -> io::Result<fs::File> {
    let directory = fs::File::open(path.parent().unwrap_or(Path::new("/")))?;
    let until = Instant::now() + LOCK_WAIT;
    loop {
        match directory.try_lock() {
            Ok(()) => return Ok(directory),
            Err(fs::TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(LOCK_RETRY_PAUSE),
            Err(fs::TryLockError::WouldBlock) => {
                let reason =
                    "another process has locked the directory of the socket; try again, or choose another directory";
                return Err(io::Error::new(ErrorKind::ResourceBusy, reason));
            }
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Removes a Unix socket file if connections to the socket are refused, because no server listens on the socket.
fn remove_stale_socket(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if !is_socket {
        return Ok(());
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Returns the device and inode numbers of a file, which identify the file even if its name is reused.
fn device_and_inode(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

fn remove_own_socket(path: &Path, identity: (u64, u64)) {
    // If the directory cannot be locked, the file stays, and the next server replaces it.
    let Ok(_lock) = lock_directory(path) else { return };
    if device_and_inode(path).is_ok_and(|found| found == identity) {
        match fs::remove_file(path) {
            Ok(()) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_is_bound_if_unused_and_removed_on_drop() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let (listener, bound) = BoundSocketPath::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, OWNER_ONLY_MODE);
        assert!(BoundSocketPath::bind(&path).is_err());
        UnixStream::connect(&path).unwrap();
        drop((listener, bound));
        assert!(fs::symlink_metadata(&path).is_err());
        drop(UnixListener::bind(&path).unwrap());
        let (listener, bound) = BoundSocketPath::bind(&path).unwrap();
        // The old file is kept so that its inode number is not reused.
        fs::rename(&path, directory.path().join("moved")).unwrap();
        let other = UnixListener::bind(&path).unwrap();
        drop((listener, bound));
        UnixStream::connect(&path).unwrap();
        drop(other);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "kept").unwrap();
        assert!(BoundSocketPath::bind(&path).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"kept");
    }

    #[test]
    fn only_one_of_many_servers_replaces_a_stale_socket() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        drop(UnixListener::bind(&path).unwrap());
        let bound: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| BoundSocketPath::bind(&path).ok())).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(bound.len(), 1);
        UnixStream::connect(&path).unwrap();
    }
}
