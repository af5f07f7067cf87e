//! Creates TLS certificates for tests, and configures clients that trust only one certificate.

use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion,
    crypto::ring,
    pki_types::CertificateDer,
    version::{TLS12, TLS13},
};

/// The TLS versions that a stead server must support.
pub const TLS_VERSIONS: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];

/// A self-signed server certificate and its private key, in PEM.
pub struct TestCertificate {
    /// The server certificate in PEM.
    pub certificate_pem: String,
    /// The private key of the server certificate in PEM.
    pub key_pem: String,
    der: CertificateDer<'static>,
}

impl TestCertificate {
    /// Creates a certificate for a server of this name.
    #[expect(clippy::expect_used, reason = "a fixture: without it there is no test")]
    pub fn for_server(name: &str) -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed([name.to_owned()]).expect("a certificate can be made");
        Self { certificate_pem: cert.pem(), key_pem: signing_key.serialize_pem(), der: cert.der().clone() }
    }

    /// Returns the TLS configuration of a client that trusts only this certificate.
    #[expect(clippy::expect_used, reason = "a fixture: without it there is no test")]
    pub fn client_config(&self, versions: &[&'static SupportedProtocolVersion]) -> Arc<ClientConfig> {
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
