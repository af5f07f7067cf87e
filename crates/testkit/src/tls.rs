//! Certificates that exist for one test: an identity for a server, and a client that trusts this one and no other.

use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion,
    crypto::ring,
    pki_types::CertificateDer,
    version::{TLS12, TLS13},
};

/// Every version that a server should speak.
pub const VERSIONS: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];

/// A certificate that vouches for itself, and its key, both as text in PEM.
pub struct Identity {
    /// The certificate.
    pub chain: String,
    /// The key.
    pub key: String,
    der: CertificateDer<'static>,
}

impl Identity {
    /// Of a server of this name.
    #[expect(clippy::expect_used, reason = "a fixture: without it there is no test")]
    pub fn new(name: &str) -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed([name.to_owned()]).expect("a certificate can be made");
        Self { chain: cert.pem(), key: signing_key.serialize_pem(), der: cert.der().clone() }
    }

    /// A client that trusts this identity, and speaks these versions.
    #[expect(clippy::expect_used, reason = "a fixture: without it there is no test")]
    pub fn trusted(&self, versions: &[&'static SupportedProtocolVersion]) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).expect("an own certificate is well-formed");
        let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .expect("the versions are known")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Arc::new(client)
    }
}
