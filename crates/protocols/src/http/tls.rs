//! TLS configuration, for TLS 1.2 and 1.3. A reloaded certificate applies to new connections; open connections continue
//! with the old certificate. The TLS module reads no files: certificates and keys are passed as PEM text.

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

use crate::limits::TLS_HANDSHAKE_TIMEOUT;

const ALPN_HTTP_1_1: &[u8] = b"http/1.1";

/// The reason why a TLS certificate and its key cannot be used. A TLS certificate error never contains the private key.
#[derive(Debug, thiserror::Error)]
pub enum TlsCertificateError {
    #[error("cannot parse the certificates: {0}")]
    InvalidCertificates(pem::Error),
    #[error("no certificate in the file")]
    NoCertificate,
    #[error("cannot parse the private key: {0}")]
    InvalidKey(pem::Error),
    #[error("cannot use this certificate with this key: {0}")]
    Unusable(rustls::Error),
}

/// A certificate chain with its key, replaceable while the server runs.
#[derive(Debug)]
pub struct ReloadableTlsConfig {
    config: RwLock<Arc<ServerConfig>>,
    pub(super) handshake_timeout: Duration,
}

impl ReloadableTlsConfig {
    /// Parses the certificate chain and the private key from PEM.
    pub fn new(chain: &[u8], key: &[u8]) -> Result<Self, TlsCertificateError> {
        Ok(Self { config: RwLock::new(build_config(chain, key)?), handshake_timeout: TLS_HANDSHAKE_TIMEOUT })
    }

    /// Sets the timeout of TLS handshakes.
    pub fn with_handshake_timeout(self, wait: Duration) -> Self {
        Self { handshake_timeout: wait, ..self }
    }

    /// Replaces the certificate and the key for new connections. If the new certificate or key is invalid, the server
    /// continues with the old certificate and key.
    pub fn reload(&self, chain: &[u8], key: &[u8]) -> Result<(), TlsCertificateError> {
        let next = build_config(chain, key)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone().into()
    }
}

fn build_config(chain: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, TlsCertificateError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(TlsCertificateError::InvalidCertificates)?;
    if chain.is_empty() {
        return Err(TlsCertificateError::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(TlsCertificateError::InvalidKey)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(TlsCertificateError::Unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(TlsCertificateError::Unusable)?;
    config.alpn_protocols = vec![ALPN_HTTP_1_1.to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use testkit::test_certificate::TestCertificate;

    use super::*;

    #[test]
    fn mismatched_certificate_and_key_change_nothing() {
        let (one, two) = (TestCertificate::for_server("localhost"), TestCertificate::for_server("localhost"));
        let unusable = ReloadableTlsConfig::new(one.certificate_pem.as_bytes(), two.key_pem.as_bytes()).unwrap_err();
        assert!(matches!(unusable, TlsCertificateError::Unusable(_)), "{unusable}");
        assert!(matches!(
            ReloadableTlsConfig::new(b"", one.key_pem.as_bytes()),
            Err(TlsCertificateError::NoCertificate)
        ));
        assert!(matches!(
            ReloadableTlsConfig::new(one.certificate_pem.as_bytes(), b"no key"),
            Err(TlsCertificateError::InvalidKey(_))
        ));
        let tls = ReloadableTlsConfig::new(one.certificate_pem.as_bytes(), one.key_pem.as_bytes()).unwrap();
        let before = tls.config.read().unwrap().clone();
        tls.reload(two.certificate_pem.as_bytes(), one.key_pem.as_bytes()).unwrap_err();
        assert!(Arc::ptr_eq(&before, &tls.config.read().unwrap()));
        tls.reload(two.certificate_pem.as_bytes(), two.key_pem.as_bytes()).unwrap();
        assert!(!Arc::ptr_eq(&before, &tls.config.read().unwrap()));
    }
}
