//! The certificate and the key that the operator names: read before the wall stands, and again when the process is told
//! to. The key never lies where a caller could read it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use faces::http::Tls;

use crate::{
    outside,
    show::{self, Problem},
};

/// What the server proves itself with, and where it came from.
pub(crate) struct Identity {
    chain: PathBuf,
    key: PathBuf,
    pub(crate) tls: Arc<Tls>,
}

impl Identity {
    /// Reads both files.
    pub(crate) fn read(chain: &Path, key: &Path) -> Result<Self, Problem> {
        let absolute =
            |path: &Path| std::path::absolute(path).map_err(|error| outside::problem(path, &error));
        let (chain, key) = (absolute(chain)?, absolute(key)?);
        if outside::is_for_everybody(&key) {
            show::remark(&format!("{}: every user of this machine can read this key", key.display()));
        }
        let (chain_text, key_text) = (outside::read(&chain)?, outside::read(&key)?);
        let tls = Tls::new(chain_text.as_bytes(), key_text.as_bytes())
            .map_err(|error| Problem::Usage(format!("{}: {error}", chain.display())))?;
        Ok(Self { chain, key, tls: Arc::new(tls) })
    }

    /// The directories that must stay readable so that both can be read again: those that are named, and those that links
    /// lead to.
    pub(crate) fn places(&self) -> Vec<PathBuf> {
        let files = [&self.chain, &self.key];
        let real = files.iter().filter_map(|file| outside::real(file));
        let mut places: Vec<PathBuf> = files
            .iter()
            .map(|file| file.to_path_buf())
            .chain(real)
            .filter_map(|file| file.parent().map(Path::to_path_buf))
            .collect();
        places.sort();
        places.dedup();
        places
    }

    /// Refuses a key that callers could ask for.
    pub(crate) fn keep_out_of(&self, workspace: &Path) -> Result<(), Problem> {
        let real = outside::real(workspace);
        let inside = |path: &Path| {
            path.starts_with(workspace) || real.as_deref().is_some_and(|real| path.starts_with(real))
        };
        if inside(&self.key) || outside::real(&self.key).is_some_and(|key| inside(&key)) {
            return Err(show::usage(
                "the key lies in the workspace, where callers can read it; keep it elsewhere",
            ));
        }
        Ok(())
    }

    /// Reads both again for connections from now on. What cannot be used is said, and nothing changes.
    pub(crate) fn renew(&self) {
        let texts = outside::read(&self.chain).and_then(|chain| Ok((chain, outside::read(&self.key)?)));
        let renewed = match texts {
            Ok((chain, key)) => {
                self.tls.renew(chain.as_bytes(), key.as_bytes()).map_err(|error| error.to_string())
            }
            Err(Problem::Outside(reason) | Problem::Usage(reason)) => Err(reason),
            Err(Problem::Failure(failure)) => Err(failure.detail),
            Err(Problem::Closed) => Err("it was closed".to_owned()),
        };
        match renewed {
            Ok(()) => show::remark("the certificate was read again; new connections have it"),
            Err(reason) => show::complain(&format!("the certificate stays as it was: {reason}")),
        }
    }
}
