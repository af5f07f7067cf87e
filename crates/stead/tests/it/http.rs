//! Tests `stead serve` over HTTP with the attack corpus, access tokens, a Unix socket and cross-site requests.

use std::{io, os::unix::net::UnixStream, path::Path, process::Command};

use testkit::attack::{
    AttackCaseProcessIsolation, AttackHttpEndpointKind, AttackSubject, AttackSuiteRunner, AttackTestCaseGroup,
    AttackTestSuiteReport, HttpAttackSubject, SubjectOptions, load_groups, load_matrix,
};

use crate::server_process::{BINARY, ServerProcess, exchange_http, stead_command};

fn open_rest_subject(opening: &SubjectOptions) -> io::Result<Box<dyn AttackSubject>> {
    HttpAttackSubject::open(Path::new(BINARY), opening, AttackHttpEndpointKind::Rest)
}

fn open_rpc_subject(opening: &SubjectOptions) -> io::Result<Box<dyn AttackSubject>> {
    HttpAttackSubject::open(Path::new(BINARY), opening, AttackHttpEndpointKind::Rpc)
}

fn open_mcp_subject(opening: &SubjectOptions) -> io::Result<Box<dyn AttackSubject>> {
    HttpAttackSubject::open(Path::new(BINARY), opening, AttackHttpEndpointKind::Mcp)
}

fn assert_group_passes(suite: &AttackSuiteRunner<'_>, group: &AttackTestCaseGroup) {
    let AttackTestSuiteReport { ran, failures: wrong, .. } =
        suite.run_group(group, AttackCaseProcessIsolation::ThisProcess).unwrap();
    assert!(ran > 0, "{}: nothing ran", group.group);
    assert!(wrong.is_empty(), "{}: {} wrong:\n{}", suite.subject, wrong.len(), wrong.join("\n"));
}

const REST_SUITE: AttackSuiteRunner<'_> = AttackSuiteRunner {
    subject: "rest",
    opener: &open_rest_subject,
    resolvers: &[stead_disk::PathResolutionMethod::Auto],
};
const RPC_SUITE: AttackSuiteRunner<'_> = AttackSuiteRunner {
    subject: "rpc",
    opener: &open_rpc_subject,
    resolvers: &[stead_disk::PathResolutionMethod::Auto],
};
const MCP_SUITE: AttackSuiteRunner<'_> = AttackSuiteRunner {
    subject: "mcp",
    opener: &open_mcp_subject,
    resolvers: &[stead_disk::PathResolutionMethod::Auto],
};

/// The groups of attack cases that run over HTTP, without the groups about races and texts for models.
const PATH_GROUPS: &[&str] = &[
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

fn run_path_groups(suite: &AttackSuiteRunner<'_>) {
    let groups = load_groups().unwrap();
    for name in PATH_GROUPS {
        assert_group_passes(suite, groups.iter().find(|group| group.group == *name).unwrap());
    }
}

#[test]
fn path_attacks_fail_over_rest() {
    run_path_groups(&REST_SUITE);
}

#[test]
fn path_attacks_fail_over_json_rpc() {
    run_path_groups(&RPC_SUITE);
}

#[test]
fn path_attacks_fail_over_mcp() {
    run_path_groups(&MCP_SUITE);
}

#[test]
fn every_operation_refuses_every_escape() {
    for suite in [&REST_SUITE, &RPC_SUITE, &MCP_SUITE] {
        assert_group_passes(suite, &load_matrix().unwrap());
    }
}

#[test]
fn token_is_created_used_rotated_and_revoked() {
    let server = ServerProcess::start(&["--listen", "127.0.0.1:0"]);
    let token = server.run_cli(&["token", "create", "--principal", "agent:ci", "--read-only", "--label", "nightly"]);
    let bearer = |token: &str| format!("Authorization: Bearer {}\r\n", token.trim());
    assert_eq!(server.get("/v1/files/a.txt", &bearer(&token)), (200, "one\n".to_owned()));
    assert_eq!(server.get("/v1/files/a.txt", "").0, 401);
    let id = token.split('_').nth(1).unwrap().to_owned();
    let listed = server.run_cli(&["token", "list"]);
    assert!(listed.contains(&id) && listed.contains("read-only") && listed.contains("nightly"), "{listed}");
    let secret = token.trim().rsplit('_').next().unwrap();
    assert!(!listed.contains(secret));
    let next = server.run_cli(&["token", "rotate", &id, "--overlap", "1h"]);
    for both in [&token, &next] {
        assert_eq!(server.get("/v1/files/a.txt", &bearer(both)).0, 200);
    }
    server.run_cli(&["token", "revoke", &id]);
    assert_eq!(server.get("/v1/files/a.txt", &bearer(&token)).0, 401);
    assert_eq!(server.get("/v1/files/a.txt", &bearer(&next)).0, 200);
    let log = server.run_cli(&["log", "--json"]);
    assert!(log.contains("token.create") && log.contains("token.revoke") && !log.contains(secret), "{log}");
    // A cross-site request is refused even with a valid token.
    let page = "Origin: https://evil.example\r\nSec-Fetch-Site: cross-site\r\n";
    assert_eq!(server.get("/v1/files/a.txt", &format!("{page}{}", bearer(&next))).0, 403);
    assert_eq!(server.get("/health", page).0, 403);
    server.terminate();
}

#[test]
fn same_user_needs_no_token_on_a_socket() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("socket");
    let server = ServerProcess::start(&["--socket", path.to_str().unwrap()]);
    // An answered request proves that the server has started completely.
    let ask = || exchange_http(UnixStream::connect(&path).unwrap(), "localhost", "/v1/files/a.txt", "");
    assert_eq!(ask(), (200, "one\n".to_owned()));
    // A second server cannot take the socket of a running server.
    let refused =
        stead_command(server.directory.path(), &["serve", "--socket", path.to_str().unwrap()]).output().unwrap();
    assert!(!refused.status.success());
    assert_eq!(ask().0, 200);
    server.terminate();
    assert!(!path.exists(), "the wall is no hindrance");
    // A killed server leaves its socket file, which the next server replaces.
    let mut killed = ServerProcess::start(&["--socket", path.to_str().unwrap()]);
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    assert!(path.exists());
    let next = ServerProcess::start(&["--socket", path.to_str().unwrap()]);
    assert_eq!(ask().0, 200);
    next.terminate();
    assert!(!path.exists());
    let nowhere = ["serve", "--socket", path.to_str().unwrap(), "--workspace", "/nowhere", "--state", "/nowhere"];
    assert!(!Command::new(BINARY).args(nowhere).output().unwrap().status.success());
    assert!(!path.exists());
}

#[test]
fn remote_listening_without_tls_is_refused() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("ws")).unwrap();
    let output = stead_command(place.path(), &["serve", "--listen", "0.0.0.0:0"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(printed.contains("--behind-proxy"), "{printed}");
}
