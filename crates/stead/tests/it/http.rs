//! `stead serve` as people start it: the attack corpus by every address, tokens from the command line, a socket for this
//! user, and a page of another site.

use std::{io, os::unix::net::UnixStream, path::Path, process::Command};

use testkit::attack::{Group, HttpSubject, HttpWay, Opening, Report, Subject, Suite, Where, groups, matrix};

use crate::served::{BINARY, Server, exchange, stead};

fn by_rest(opening: &Opening) -> io::Result<Box<dyn Subject>> {
    HttpSubject::open(Path::new(BINARY), opening, HttpWay::Rest)
}

fn by_rpc(opening: &Opening) -> io::Result<Box<dyn Subject>> {
    HttpSubject::open(Path::new(BINARY), opening, HttpWay::Rpc)
}

fn by_mcp(opening: &Opening) -> io::Result<Box<dyn Subject>> {
    HttpSubject::open(Path::new(BINARY), opening, HttpWay::Mcp)
}

fn hold(suite: &Suite<'_>, group: &Group) {
    let Report { ran, wrong, .. } = suite.run(group, Where::Here).unwrap();
    assert!(ran > 0, "{}: nothing ran", group.group);
    assert!(wrong.is_empty(), "{}: {} wrong:\n{}", suite.subject, wrong.len(), wrong.join("\n"));
}

const REST: Suite<'_> = Suite { subject: "rest", opener: &by_rest, resolvers: &[disk::Resolver::Auto] };
const RPC: Suite<'_> = Suite { subject: "rpc", opener: &by_rpc, resolvers: &[disk::Resolver::Auto] };
const MCP: Suite<'_> = Suite { subject: "mcp", opener: &by_mcp, resolvers: &[disk::Resolver::Auto] };

/// The groups that are about paths; races, and what is about text for models, are asked where there is some.
const PATHS: &[&str] = &[
    "traversal",
    "absolute",
    "encoding",
    "nul-length",
    "symlink",
    "dangling",
    "trailing",
    "magic",
    "special",
    "hardlink",
    "names",
    "protected",
    "moves",
];

fn paths(suite: &Suite<'_>) {
    let groups = groups().unwrap();
    for name in PATHS {
        hold(suite, groups.iter().find(|group| group.group == *name).unwrap());
    }
}

#[test]
fn paths_by_plain_requests() {
    paths(&REST);
}

#[test]
fn paths_by_json_rpc() {
    paths(&RPC);
}

#[test]
fn paths_by_mcp() {
    paths(&MCP);
}

#[test]
fn every_operation_by_every_way_out() {
    for suite in [&REST, &RPC, &MCP] {
        hold(suite, &matrix().unwrap());
    }
}

#[test]
fn a_token_is_made_used_rotated_and_revoked() {
    let server = Server::start(&["--listen", "127.0.0.1:0"]);
    let token =
        server.say(&["token", "create", "--principal", "agent:ci", "--read-only", "--label", "nightly"]);
    let bearer = |token: &str| format!("Authorization: Bearer {}\r\n", token.trim());
    assert_eq!(server.get("/v1/files/a.txt", &bearer(&token)), (200, "one\n".to_owned()));
    assert_eq!(server.get("/v1/files/a.txt", "").0, 401);
    let id = token.split('_').nth(1).unwrap().to_owned();
    let listed = server.say(&["token", "list"]);
    assert!(listed.contains(&id) && listed.contains("read-only") && listed.contains("nightly"), "{listed}");
    let secret = token.trim().rsplit('_').next().unwrap();
    assert!(!listed.contains(secret));
    let next = server.say(&["token", "rotate", &id, "--overlap", "1h"]);
    for both in [&token, &next] {
        assert_eq!(server.get("/v1/files/a.txt", &bearer(both)).0, 200);
    }
    server.say(&["token", "revoke", &id]);
    assert_eq!(server.get("/v1/files/a.txt", &bearer(&token)).0, 401);
    assert_eq!(server.get("/v1/files/a.txt", &bearer(&next)).0, 200);
    // The journal tells who was let in, and nothing that lets in.
    let log = server.say(&["log", "--json"]);
    assert!(log.contains("token_create") && log.contains("token_revoke") && !log.contains(secret), "{log}");
    // A page of another site, with the right token and without.
    let page = "Origin: https://evil.example\r\nSec-Fetch-Site: cross-site\r\n";
    assert_eq!(server.get("/v1/files/a.txt", &format!("{page}{}", bearer(&next))).0, 403);
    assert_eq!(server.get("/health", page).0, 403);
    server.end();
}

#[test]
fn a_socket_needs_no_token_from_this_user() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("socket");
    let server = Server::start(&["--socket", path.to_str().unwrap()]);
    // Answered, and not only begun.
    let ask = || exchange(UnixStream::connect(&path).unwrap(), "localhost", "/v1/files/a.txt", "");
    assert_eq!(ask(), (200, "one\n".to_owned()));
    // A server that lives keeps its place, whoever wants it.
    let refused =
        stead(server.place.path(), &["serve", "--socket", path.to_str().unwrap()]).output().unwrap();
    assert!(!refused.status.success());
    assert_eq!(ask().0, 200);
    server.end();
    assert!(!path.exists(), "the wall is no hindrance");
    // One that was killed leaves its file, and the next one takes the place.
    let mut killed = Server::start(&["--socket", path.to_str().unwrap()]);
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    assert!(path.exists());
    let next = Server::start(&["--socket", path.to_str().unwrap()]);
    assert_eq!(ask().0, 200);
    next.end();
    assert!(!path.exists());
    // One that does not come to serve takes nothing with it.
    let nowhere =
        ["serve", "--socket", path.to_str().unwrap(), "--workspace", "/nowhere", "--state", "/nowhere"];
    assert!(!Command::new(BINARY).args(nowhere).output().unwrap().status.success());
    assert!(!path.exists());
}

#[test]
fn what_others_could_hear_is_not_served() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("ws")).unwrap();
    let output = stead(place.path(), &["serve", "--listen", "0.0.0.0:0"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--behind-proxy"), "{said}");
}
