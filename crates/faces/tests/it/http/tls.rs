//! Connections that are made private: by every version that is promised, within a time, with a certificate that can be
//! replaced while others are open.

use std::{sync::Arc, time::Duration};

use faces::http::{Listener, Names, Tls};
use testkit::tls::{Identity, VERSIONS};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::SupportedProtocolVersion};

use super::{House, PATIENCE};

const NAME: &str = "localhost";
/// Enough for two sides that both want it, on a busy machine.
const HANDSHAKE: Duration = Duration::from_secs(3);

async fn house(identity: &Identity) -> (House, Arc<Tls>) {
    let tls = Tls::new(identity.chain.as_bytes(), identity.key.as_bytes()).unwrap();
    let tls = Arc::new(tls.within(HANDSHAKE));
    let held = tls.clone();
    (House::behind(|listener| Listener::Tls(listener, held), Names::secure_loopback).await, tls)
}

async fn connect(
    house: &House,
    trusted: &Identity,
    versions: &[&'static SupportedProtocolVersion],
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(("127.0.0.1", house.port)).await?;
    let connecting = TlsConnector::from(trusted.trusted(versions)).connect(NAME.try_into().unwrap(), stream);
    tokio::time::timeout(PATIENCE, connecting).await.expect("a handshake ends")
}

/// Asks for the health, and leaves the connection open.
async fn healthy(house: &House, stream: &mut TlsStream<TcpStream>, more: &str) -> String {
    let head = format!("GET /health HTTP/1.1\r\nHost: localhost:{}\r\n{more}\r\n", house.port);
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 1024];
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut answer)).await.expect("an answer").unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

#[tokio::test]
async fn every_promised_version_is_spoken() {
    let identity = Identity::new(NAME);
    let (house, _) = house(&identity).await;
    for version in VERSIONS {
        let mut stream = connect(&house, &identity, &[version]).await.unwrap();
        assert_eq!(stream.get_ref().1.protocol_version(), Some(version.version));
        assert!(healthy(&house, &mut stream, "").await.starts_with("HTTP/1.1 200"));
    }
    // The own origin is the private one only.
    for (scheme, status) in [("https", "200"), ("http", "403")] {
        let mut stream = connect(&house, &identity, VERSIONS).await.unwrap();
        let origin = format!("Origin: {scheme}://localhost:{}\r\n", house.port);
        let answer = healthy(&house, &mut stream, &origin).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{scheme}: {answer}");
    }
    // A request in clear is answered by no route, and the token in it by nobody.
    let mut clear = TcpStream::connect(("127.0.0.1", house.port)).await.unwrap();
    clear.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, clear.read_to_end(&mut answer)).await.expect("it is closed").unwrap();
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
    house.close().await;
}

#[tokio::test]
async fn a_new_certificate_holds_for_the_next_connection_and_ends_none() {
    let (one, two) = (Identity::new(NAME), Identity::new(NAME));
    let (house, tls) = house(&one).await;
    let mut early = connect(&house, &one, VERSIONS).await.unwrap();
    healthy(&house, &mut early, "").await;
    tls.renew(two.chain.as_bytes(), two.key.as_bytes()).unwrap();
    assert!(healthy(&house, &mut early, "").await.starts_with("HTTP/1.1 200"));
    connect(&house, &one, VERSIONS).await.expect_err("the old certificate is no longer shown");
    let mut late = connect(&house, &two, VERSIONS).await.unwrap();
    assert!(healthy(&house, &mut late, "").await.starts_with("HTTP/1.1 200"));
    house.close().await;
}

#[tokio::test]
async fn who_says_nothing_is_let_go_and_holds_nobody_up() {
    let identity = Identity::new(NAME);
    let (house, _) = house(&identity).await;
    let mut silent = TcpStream::connect(("127.0.0.1", house.port)).await.unwrap();
    let mut stream = connect(&house, &identity, VERSIONS).await.unwrap();
    assert!(healthy(&house, &mut stream, "").await.starts_with("HTTP/1.1 200"));
    drop(stream);
    let mut nothing = Vec::new();
    let ended = tokio::time::timeout(PATIENCE, silent.read_to_end(&mut nothing)).await;
    ended.expect("the server gives up first").unwrap();
    assert_eq!(nothing, b"");
    house.close().await;
}
