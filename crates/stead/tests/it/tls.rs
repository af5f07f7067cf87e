//! `stead serve` with a certificate: beyond this machine only with it, read again without a restart, and a key that no
//! caller can reach.

use std::{net::TcpStream, path::Path};

use rustls::{ClientConnection, StreamOwned};
use testkit::tls::{Identity, VERSIONS};

use crate::served::{PATIENCE, Server, exchange, stead};

const NAME: &str = "localhost";

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("ws")).unwrap();
    place
}

/// Writes both files, as a program that renews certificates does: beside, and then by a rename.
fn write(place: &Path, identity: &Identity) {
    for (name, text) in [("chain.pem", &identity.chain), ("key.pem", &identity.key)] {
        std::fs::write(place.join("next"), text).unwrap();
        std::fs::rename(place.join("next"), place.join(name)).unwrap();
    }
}

fn flags(place: &Path) -> [String; 4] {
    let file = |name: &str| place.join(name).to_str().unwrap().to_owned();
    ["--tls-cert".to_owned(), file("chain.pem"), "--tls-key".to_owned(), file("key.pem")]
}

/// The status of the health, by a client that trusts this identity.
fn health(server: &Server, trusted: &Identity) -> std::io::Result<u16> {
    let port = server.address.rsplit(':').next().unwrap();
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut client = ClientConnection::new(trusted.trusted(VERSIONS), NAME.try_into().unwrap())
        .map_err(std::io::Error::other)?;
    while client.is_handshaking() {
        client.complete_io(&mut stream)?;
    }
    Ok(exchange(StreamOwned::new(client, stream), &format!("{NAME}:{port}"), "/health", "").0)
}

#[test]
fn an_address_has_so_many_strangers() {
    let one = Identity::new(NAME);
    let place = place();
    write(place.path(), &one);
    let flags = flags(place.path());
    let mut all = vec!["--listen", "0.0.0.0:0", "--strangers-per-address", "3"];
    all.extend(flags.iter().map(String::as_str));
    let server = Server::start_at(place, &all, &[]);
    let port = server.address.rsplit(':').next().unwrap();
    let stay = || TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let mut silent: Vec<TcpStream> = (0..3).map(|_| stay()).collect();
    health(&server, &one).expect_err("one too many");
    drop(silent.pop());
    let until = std::time::Instant::now() + PATIENCE;
    while health(&server, &one).is_err() {
        assert!(std::time::Instant::now() < until, "who left is still counted");
        std::thread::yield_now();
    }
    drop(silent);
    server.end();
}

#[test]
fn a_certificate_opens_wider_and_is_read_again_on_a_hang_up() {
    let (one, two) = (Identity::new(NAME), Identity::new(NAME));
    let place = place();
    write(place.path(), &one);
    let flags = flags(place.path());
    let mut all = vec!["--listen", "0.0.0.0:0"];
    all.extend(flags.iter().map(String::as_str));
    let server = Server::start_at(place, &all, &[]);
    assert_eq!(health(&server, &one).unwrap(), 200);
    health(&server, &two).expect_err("another certificate");
    // What cannot be used changes nothing.
    std::fs::write(server.place.path().join("key.pem"), &two.key).unwrap();
    server.signal("HUP");
    server.wait_for(|line| line.contains("stays as it was"));
    assert_eq!(health(&server, &one).unwrap(), 200);
    write(server.place.path(), &two);
    server.signal("HUP");
    server.wait_for(|line| line.contains("was read again"));
    assert_eq!(health(&server, &two).unwrap(), 200);
    health(&server, &one).expect_err("the old certificate is no longer shown");
    server.end();
}

#[test]
fn a_key_in_the_workspace_is_refused() {
    let place = place();
    let inside = place.path().join("ws");
    write(&inside, &Identity::new(NAME));
    let output =
        stead(place.path(), &["serve", "--listen", "127.0.0.1:0"]).args(flags(&inside)).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("lies in the workspace"), "{said}");
}

#[test]
fn both_files_or_none() {
    let place = place();
    let one = stead(place.path(), &["serve", "--tls-cert", "chain.pem"]).output().unwrap();
    assert_eq!(one.status.code(), Some(2), "{}", String::from_utf8_lossy(&one.stderr));
}
