//! Binds the socket that the server listens on and loads the TLS files, before the Landlock sandbox starts. A TLS key
//! inside the workspace is refused, because callers could read the key.

use std::{
    net::{SocketAddr, TcpListener},
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
    sync::Arc,
};

use stead_protocols::http::{AllowedHosts, ReloadableTlsConfig, UnauthenticatedPerAddressLimit};

use super::ServeFlags;
use crate::{
    host_files::{self, BoundSocketPath},
    output::{self, CommandError},
};

pub(super) enum BoundListener {
    Tcp(TcpListener, SocketAddr),
    Tls(TcpListener, SocketAddr, TlsFiles),
    Unix(UnixListener, BoundSocketPath),
}

impl BoundListener {
    /// The directories of the TLS files, which the sandbox must leave readable.
    pub(super) fn readable_paths(&self) -> Vec<PathBuf> {
        self.tls_files().map(TlsFiles::readable_directories).unwrap_or_default()
    }

    pub(super) fn refuse_key_inside(&self, directory: &Path) -> Result<(), CommandError> {
        self.tls_files().map_or(Ok(()), |files| files.refuse_key_inside(directory))
    }

    fn tls_files(&self) -> Option<&TlsFiles> {
        match self {
            BoundListener::Tls(_, _, files) => Some(files),
            BoundListener::Tcp(..) | BoundListener::Unix(..) => None,
        }
    }
}

/// Loads the TLS files. A non-loopback address needs TLS or `--behind-proxy`, because tokens would otherwise travel
/// unencrypted.
pub(super) fn load_tls(flags: &ServeFlags) -> Result<Option<TlsFiles>, CommandError> {
    let tls_files = match (&flags.tls_cert, &flags.tls_key) {
        (Some(chain), Some(key)) => Some(TlsFiles::load(chain, key)?),
        (Some(_), None) | (None, Some(_)) | (None, None) => None,
    };
    if is_reachable_remotely(flags) && tls_files.is_none() && !flags.behind_proxy {
        return Err(CommandError::Usage(format!(
            "{} can be reached from other machines, and tokens would travel unencrypted; pass --tls-cert and --tls-key, or \
             --behind-proxy if a reverse proxy terminates TLS, or listen on 127.0.0.1",
            flags.listen
        )));
    }
    Ok(tls_files)
}

fn is_reachable_remotely(flags: &ServeFlags) -> bool {
    flags.socket.is_none() && !flags.listen.ip().is_loopback()
}

pub(super) fn per_address_limit(flags: &ServeFlags) -> UnauthenticatedPerAddressLimit {
    // Otherwise all clients share the peer address of a proxy or of the loopback interface.
    let has_address_per_client = is_reachable_remotely(flags) && !flags.behind_proxy;
    match flags.limits.strangers_per_address {
        most @ 1.. if has_address_per_client => UnauthenticatedPerAddressLimit::AtMost(most),
        _ => UnauthenticatedPerAddressLimit::Unlimited,
    }
}

pub(super) fn bind_listener(flags: &ServeFlags) -> Result<BoundListener, CommandError> {
    if let Some(path) = &flags.socket {
        let (listener, socket) = BoundSocketPath::bind(path)?;
        return Ok(BoundListener::Unix(listener, socket));
    }
    let tls_files = load_tls(flags)?;
    let failed = |error: std::io::Error| {
        CommandError::System(format!(
            "cannot listen on {}: {error}; choose another port with --listen 127.0.0.1:PORT",
            flags.listen
        ))
    };
    let listener = TcpListener::bind(flags.listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(match tls_files {
        Some(tls_files) => BoundListener::Tls(listener, address, tls_files),
        None => BoundListener::Tcp(listener, address),
    })
}

pub(super) fn allowed_hosts(flags: &ServeFlags, bound: &BoundListener) -> AllowedHosts {
    let mut names = match bound {
        BoundListener::Tcp(_, address) => AllowedHosts::loopback(address.port()),
        BoundListener::Tls(_, address, _) => AllowedHosts::secure_loopback(address.port()),
        BoundListener::Unix(..) => AllowedHosts::unix_socket(),
    };
    flags.host.iter().for_each(|host| names.add_host(host));
    flags.origin.iter().for_each(|origin| names.add_origin(origin));
    names
}

pub(super) struct TlsFiles {
    certificate_path: PathBuf,
    key_path: PathBuf,
    pub(super) tls: Arc<ReloadableTlsConfig>,
}

impl TlsFiles {
    pub(super) fn load(chain: &Path, key: &Path) -> Result<Self, CommandError> {
        let absolute =
            |path: &Path| std::path::absolute(path).map_err(|error| host_files::file_error("read", path, &error));
        let (chain, key) = (absolute(chain)?, absolute(key)?);
        if host_files::is_world_readable(&key) {
            output::print_note(&format!(
                "{}: all users of this machine can read this private key; change its mode with chmod 600",
                key.display()
            ));
        }
        let (chain_text, key_text) = (host_files::read_text(&chain)?, host_files::read_text(&key)?);
        let tls = ReloadableTlsConfig::new(chain_text.as_bytes(), key_text.as_bytes())
            .map_err(|error| CommandError::Usage(format!("{}: {error}", chain.display())))?;
        Ok(Self { certificate_path: chain, key_path: key, tls: Arc::new(tls) })
    }

    /// Returns the directories of the TLS files and of their link targets, which a reload must be able to read.
    fn readable_directories(&self) -> Vec<PathBuf> {
        let files = [&self.certificate_path, &self.key_path];
        let real = files.iter().filter_map(|file| host_files::canonical_path(file));
        let mut directories: Vec<PathBuf> = files
            .iter()
            .map(|file| file.to_path_buf())
            .chain(real)
            .filter_map(|file| file.parent().map(Path::to_path_buf))
            .collect();
        directories.sort();
        directories.dedup();
        directories
    }

    pub(super) fn refuse_key_inside(&self, workspace: &Path) -> Result<(), CommandError> {
        let real = host_files::canonical_path(workspace);
        let inside =
            |path: &Path| path.starts_with(workspace) || real.as_deref().is_some_and(|real| path.starts_with(real));
        if inside(&self.key_path) || host_files::canonical_path(&self.key_path).is_some_and(|key| inside(&key)) {
            return Err(output::usage_error(
                "the TLS key is inside the workspace, where callers can read it; move it elsewhere",
            ));
        }
        Ok(())
    }

    /// Reloads the TLS certificate and key for new connections. The old certificate and key stay in use if reloading
    /// fails.
    pub(super) fn reload(&self) {
        let texts = host_files::read_text(&self.certificate_path)
            .and_then(|chain| Ok((chain, host_files::read_text(&self.key_path)?)));
        let renewed = match texts {
            Ok((chain, key)) => self.tls.reload(chain.as_bytes(), key.as_bytes()).map_err(|error| error.to_string()),
            Err(CommandError::System(reason) | CommandError::Usage(reason)) => Err(reason),
            Err(CommandError::Engine(error)) => Err(error.message),
            Err(CommandError::OutputClosed) => Err("the output is closed".to_owned()),
        };
        match renewed {
            Ok(()) => output::print_note("TLS certificate reloaded; new connections use it"),
            Err(reason) => {
                output::print_error(&format!("TLS certificate not reloaded, the old one stays in use: {reason}"))
            }
        }
    }
}
