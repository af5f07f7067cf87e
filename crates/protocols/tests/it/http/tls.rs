//! Tests of TLS versions, the TLS handshake timeout, and certificate reload with open connections.

use std::{sync::Arc, time::Duration};

use stead_protocols::http::{AllowedHosts, HttpListener, ReloadableTlsConfig};
use testkit::test_certificate::{TLS_VERSIONS, TestCertificate};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::SupportedProtocolVersion};

use super::{TEST_TIMEOUT, TestHttpServer};

const SERVER_NAME: &str = "localhost";
/// A handshake timeout that is long enough for a successful handshake on a busy machine.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);

async fn start_tls_server(identity: &TestCertificate) -> (TestHttpServer, Arc<ReloadableTlsConfig>) {
    let tls = ReloadableTlsConfig::new(identity.certificate_pem.as_bytes(), identity.key_pem.as_bytes()).unwrap();
    let tls = Arc::new(tls.with_handshake_timeout(HANDSHAKE_TIMEOUT));
    let held = tls.clone();
    (
        TestHttpServer::start_with_listener(
            |listener| HttpListener::Tls(listener, held),
            AllowedHosts::secure_loopback,
        )
        .await,
        tls,
    )
}

async fn connect_tls(
    server: &TestHttpServer,
    trusted: &TestCertificate,
    versions: &[&'static SupportedProtocolVersion],
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(("127.0.0.1", server.port)).await?;
    let connecting =
        TlsConnector::from(trusted.client_config(versions)).connect(SERVER_NAME.try_into().unwrap(), stream);
    tokio::time::timeout(TEST_TIMEOUT, connecting).await.expect("a handshake ends")
}

async fn request_health(server: &TestHttpServer, stream: &mut TlsStream<TcpStream>, more: &str) -> String {
    let head = format!("GET /health HTTP/1.1\r\nHost: localhost:{}\r\n{more}\r\n", server.port);
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 1024];
    let read = tokio::time::timeout(TEST_TIMEOUT, stream.read(&mut answer)).await.expect("an answer").unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

#[tokio::test]
async fn every_supported_tls_version_works() {
    let identity = TestCertificate::for_server(SERVER_NAME);
    let (server, _) = start_tls_server(&identity).await;
    for version in TLS_VERSIONS {
        let mut stream = connect_tls(&server, &identity, &[version]).await.unwrap();
        assert_eq!(stream.get_ref().1.protocol_version(), Some(version.version));
        assert!(request_health(&server, &mut stream, "").await.starts_with("HTTP/1.1 200"));
    }
    for (scheme, status) in [("https", "200"), ("http", "403")] {
        let mut stream = connect_tls(&server, &identity, TLS_VERSIONS).await.unwrap();
        let origin = format!("Origin: {scheme}://localhost:{}\r\n", server.port);
        let answer = request_health(&server, &mut stream, &origin).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{scheme}: {answer}");
    }
    let mut clear = TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
    clear.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    tokio::time::timeout(TEST_TIMEOUT, clear.read_to_end(&mut answer)).await.expect("it is closed").unwrap();
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
    server.shut_down().await;
}

#[tokio::test]
async fn certificate_reload_affects_only_new_connections() {
    let (one, two) = (TestCertificate::for_server(SERVER_NAME), TestCertificate::for_server(SERVER_NAME));
    let (server, tls) = start_tls_server(&one).await;
    let mut early = connect_tls(&server, &one, TLS_VERSIONS).await.unwrap();
    request_health(&server, &mut early, "").await;
    tls.reload(two.certificate_pem.as_bytes(), two.key_pem.as_bytes()).unwrap();
    assert!(request_health(&server, &mut early, "").await.starts_with("HTTP/1.1 200"));
    connect_tls(&server, &one, TLS_VERSIONS).await.expect_err("the old certificate is no longer shown");
    let mut late = connect_tls(&server, &two, TLS_VERSIONS).await.unwrap();
    assert!(request_health(&server, &mut late, "").await.starts_with("HTTP/1.1 200"));
    server.shut_down().await;
}

#[tokio::test]
async fn silent_handshake_times_out_without_blocking_others() {
    let identity = TestCertificate::for_server(SERVER_NAME);
    let (server, _) = start_tls_server(&identity).await;
    let mut silent = TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
    let mut stream = connect_tls(&server, &identity, TLS_VERSIONS).await.unwrap();
    assert!(request_health(&server, &mut stream, "").await.starts_with("HTTP/1.1 200"));
    drop(stream);
    let mut nothing = Vec::new();
    let ended = tokio::time::timeout(TEST_TIMEOUT, silent.read_to_end(&mut nothing)).await;
    ended.expect("the server gives up first").unwrap();
    assert_eq!(nothing, b"");
    server.shut_down().await;
}
