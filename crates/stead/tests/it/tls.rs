//! Tests `stead serve` with TLS: limits before authentication, certificates reloaded without a restart, and the
//! protected key file.

use std::{net::TcpStream, path::Path};

use rustls::{ClientConnection, StreamOwned};
use testkit::{
    test_certificate::{TLS_VERSIONS, TestCertificate},
    wait::wait_until,
};

use crate::server_process::{LINE_TIMEOUT, ServerProcess, exchange_http, stead_command};

const SERVER_NAME: &str = "localhost";

fn fixture_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("ws")).unwrap();
    directory
}

/// Replaces the certificate file and the key file by renames, as programs that renew certificates do.
fn write_certificate(directory: &Path, identity: &TestCertificate) {
    for (name, text) in [("chain.pem", &identity.certificate_pem), ("key.pem", &identity.key_pem)] {
        std::fs::write(directory.join("next"), text).unwrap();
        std::fs::rename(directory.join("next"), directory.join(name)).unwrap();
    }
}

fn tls_flags(directory: &Path) -> [String; 4] {
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    ["--tls-cert".to_owned(), file("chain.pem"), "--tls-key".to_owned(), file("key.pem")]
}

fn request_health(server: &ServerProcess, trusted: &TestCertificate) -> std::io::Result<u16> {
    let port = server.address.rsplit(':').next().unwrap();
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}"))?;
    stream.set_read_timeout(Some(LINE_TIMEOUT))?;
    let mut client = ClientConnection::new(trusted.client_config(TLS_VERSIONS), SERVER_NAME.try_into().unwrap())
        .map_err(std::io::Error::other)?;
    while client.is_handshaking() {
        client.complete_io(&mut stream)?;
    }
    Ok(exchange_http(StreamOwned::new(client, stream), &format!("{SERVER_NAME}:{port}"), "/health", "").0)
}

#[test]
fn unauthenticated_connections_per_address_are_limited() {
    let one = TestCertificate::for_server(SERVER_NAME);
    let directory = fixture_directory();
    write_certificate(directory.path(), &one);
    let flags = tls_flags(directory.path());
    let mut all = vec!["--listen", "0.0.0.0:0", "--strangers-per-address", "3"];
    all.extend(flags.iter().map(String::as_str));
    let server = ServerProcess::start_at(directory, &all, &[]);
    let port = server.address.rsplit(':').next().unwrap();
    let stay = || TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let mut silent: Vec<TcpStream> = (0..3).map(|_| stay()).collect();
    request_health(&server, &one).expect_err("one too many");
    drop(silent.pop());
    wait_until("a closed connection is no longer counted", || request_health(&server, &one).is_ok());
    drop(silent);
    server.terminate();
}

#[test]
fn certificate_allows_remote_listening_and_reloads_on_sighup() {
    let (one, two) = (TestCertificate::for_server(SERVER_NAME), TestCertificate::for_server(SERVER_NAME));
    let directory = fixture_directory();
    write_certificate(directory.path(), &one);
    let flags = tls_flags(directory.path());
    let mut all = vec!["--listen", "0.0.0.0:0"];
    all.extend(flags.iter().map(String::as_str));
    let server = ServerProcess::start_at(directory, &all, &[]);
    assert_eq!(request_health(&server, &one).unwrap(), 200);
    request_health(&server, &two).expect_err("another certificate");
    std::fs::write(server.directory.path().join("key.pem"), &two.key_pem).unwrap();
    server.send_signal("HUP");
    server.wait_for_line(|line| line.contains("not reloaded"));
    assert_eq!(request_health(&server, &one).unwrap(), 200);
    write_certificate(server.directory.path(), &two);
    server.send_signal("HUP");
    server.wait_for_line(|line| line.contains("certificate reloaded"));
    assert_eq!(request_health(&server, &two).unwrap(), 200);
    request_health(&server, &one).expect_err("the old certificate is no longer shown");
    server.terminate();
}

#[test]
fn tls_key_inside_the_workspace_is_refused() {
    let directory = fixture_directory();
    let inside = directory.path().join("ws");
    write_certificate(&inside, &TestCertificate::for_server(SERVER_NAME));
    let output = stead_command(directory.path(), &["serve", "--listen", "127.0.0.1:0"])
        .args(tls_flags(&inside))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(printed.contains("is inside the workspace"), "{printed}");
}

#[test]
fn certificate_and_key_are_required_together() {
    let directory = fixture_directory();
    let one = stead_command(directory.path(), &["serve", "--tls-cert", "chain.pem"]).output().unwrap();
    assert_eq!(one.status.code(), Some(2), "{}", String::from_utf8_lossy(&one.stderr));
}
