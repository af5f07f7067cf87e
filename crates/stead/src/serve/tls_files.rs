//! The TLS certificate and key: read before the sandbox starts, and again on SIGHUP. A key inside the workspace is refused,
//! because callers could read it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use stead_protocols::http::ReloadableTlsConfig;

use crate::{
    host_files,
    output::{self, CommandError},
};

pub(crate) struct TlsFiles {
    certificate_path: PathBuf,
    key_path: PathBuf,
    pub(crate) tls: Arc<ReloadableTlsConfig>,
}

impl TlsFiles {
    pub(crate) fn load(chain: &Path, key: &Path) -> Result<Self, CommandError> {
        let absolute = |path: &Path| std::path::absolute(path).map_err(|error| host_files::file_error(path, &error));
        let (chain, key) = (absolute(chain)?, absolute(key)?);
        if host_files::is_world_readable(&key) {
            output::print_note(&format!("{}: this private key is readable by all users", key.display()));
        }
        let (chain_text, key_text) = (host_files::read_text(&chain)?, host_files::read_text(&key)?);
        let tls = ReloadableTlsConfig::new(chain_text.as_bytes(), key_text.as_bytes())
            .map_err(|error| CommandError::Usage(format!("{}: {error}", chain.display())))?;
        Ok(Self { certificate_path: chain, key_path: key, tls: Arc::new(tls) })
    }

    /// Directories that the sandbox must leave readable for a reload: those of both files, and of the files they link to.
    pub(crate) fn readable_directories(&self) -> Vec<PathBuf> {
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

    /// Refuses a key that callers could read.
    pub(crate) fn refuse_key_inside(&self, workspace: &Path) -> Result<(), CommandError> {
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

    /// Reloads both files for new connections. On an error the old ones stay in use.
    pub(crate) fn reload(&self) {
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
