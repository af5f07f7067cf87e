//! What the server proves itself with, and how a connection is made private. Promises TLS 1.2 and 1.3 and nothing older;
//! a new certificate holds for the next connection and disturbs none that is open. Never reads a file: whoever knows
//! where a key lies brings its text.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject},
        version::{TLS12, TLS13},
    },
};

use super::limits::HANDSHAKE_WAIT;

/// What is spoken inside.
const SPOKEN: &[u8] = b"http/1.1";

/// Why a certificate and a key cannot be used. Never shows what is in them.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificates are not what such a file holds.
    #[error("the certificates cannot be read: {0}")]
    Certificates(pem::Error),
    /// There is none.
    #[error("the file holds no certificate")]
    NoCertificate,
    /// The key is not what such a file holds.
    #[error("the key cannot be read: {0}")]
    Key(pem::Error),
    /// They do not belong together, or the library does not take them.
    #[error("the certificate and the key cannot be used: {0}")]
    Unusable(rustls::Error),
}

/// A certificate chain with its key, which can be replaced while the server runs.
#[derive(Debug)]
pub struct Tls {
    current: RwLock<Arc<ServerConfig>>,
    pub(super) wait: Duration,
}

impl Tls {
    /// From the text of both files, in PEM.
    pub fn new(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        Ok(Self { current: RwLock::new(configuration(chain, key)?), wait: HANDSHAKE_WAIT })
    }

    /// With this time for both sides to agree.
    pub fn within(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Takes others for every connection from now on. What cannot be used changes nothing.
    pub fn renew(&self, chain: &[u8], key: &[u8]) -> Result<(), TlsError> {
        let next = configuration(chain, key)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    /// What makes the next connection private.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone().into()
    }
}

fn configuration(chain: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, TlsError> {
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(chain).collect::<Result<_, _>>().map_err(TlsError::Certificates)?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(TlsError::Key)?;
    let mut configuration = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(TlsError::Unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(TlsError::Unusable)?;
    configuration.alpn_protocols = vec![SPOKEN.to_vec()];
    Ok(Arc::new(configuration))
}

#[cfg(test)]
mod tests {
    use testkit::tls::Identity;

    use super::*;

    #[test]
    fn what_does_not_fit_together_is_refused_and_changes_nothing() {
        let (one, two) = (Identity::new("localhost"), Identity::new("localhost"));
        let unusable = Tls::new(one.chain.as_bytes(), two.key.as_bytes()).unwrap_err();
        assert!(matches!(unusable, TlsError::Unusable(_)), "{unusable}");
        assert!(matches!(Tls::new(b"", one.key.as_bytes()), Err(TlsError::NoCertificate)));
        assert!(matches!(Tls::new(one.chain.as_bytes(), b"no key"), Err(TlsError::Key(_))));
        let tls = Tls::new(one.chain.as_bytes(), one.key.as_bytes()).unwrap();
        let before = tls.current.read().unwrap().clone();
        tls.renew(two.chain.as_bytes(), one.key.as_bytes()).unwrap_err();
        assert!(Arc::ptr_eq(&before, &tls.current.read().unwrap()));
        tls.renew(two.chain.as_bytes(), two.key.as_bytes()).unwrap();
        assert!(!Arc::ptr_eq(&before, &tls.current.read().unwrap()));
    }
}
