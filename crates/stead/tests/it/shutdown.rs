//! Tests that a shutdown is clean and that every completed call is in the journal.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::json;
use testkit::{session_fixture::SessionFixture, wait::wait_until};

use crate::{
    cli_fixture::CliFixture,
    server_process::{BINARY, LINE_TIMEOUT, ServerProcess, exchange_http},
};

/// The delay of a system call in microseconds, which is longer than the rest of a shutdown test takes.
const SYSCALL_DELAY_US: &str = "1500000";

fn delayed_syscall_command(call: &str, seen: &Path) -> Command {
    let mut command = Command::new("strace");
    // strace runs detached, so that the child process is the binary itself.
    command.args(["-D", "-f", "-qq", "-e", &format!("trace={call}"), "-e", "signal=none"]);
    command.args(["-e", &format!("inject={call}:delay_enter={SYSCALL_DELAY_US}"), "-o"]).arg(seen).arg(BINARY);
    command
}

#[test]
fn server_that_printed_its_address_handles_signals() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("ws")).unwrap();
    let mut child = delayed_syscall_command("epoll_create1", &place.path().join("seen"))
        .args(["serve", "--listen", "127.0.0.1:0", "--workspace"])
        .arg(place.path().join("ws"))
        .arg("--state")
        .arg(place.path().join("state"))
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(printed.any(|line| line.unwrap().contains("on http://")), "the server prints its address");
    let killed = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(killed.success());
    printed.for_each(drop);
    let ended = child.wait().unwrap();
    assert!(ended.success(), "{ended}");
}

#[test]
fn last_read_is_journaled_despite_an_open_stream() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("socket");
    let mut server = ServerProcess::start(&["--socket", path.to_str().unwrap()]);
    let mut stream = UnixStream::connect(&path).unwrap();
    write!(stream, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream.set_read_timeout(Some(LINE_TIMEOUT)).unwrap();
    stream.read_exact(&mut [0; 16]).unwrap();
    let answer = exchange_http(UnixStream::connect(&path).unwrap(), "localhost", "/v1/files/a.txt", "");
    assert_eq!(answer, (200, "one\n".to_owned()));
    server.send_signal("TERM");
    assert!(server.child.wait().unwrap().success());
    let log = server.run_cli(&["log", "--json"]);
    assert!(log.contains("\"operation\":\"read\""), "{log}");
}

#[test]
fn last_read_is_journaled_despite_a_slow_device() {
    let fixture = CliFixture::new();
    let seen = fixture.directory.path().join("seen");
    let mut command = delayed_syscall_command("syncfs", &seen);
    let command = command.arg("rpc").current_dir(fixture.workspace());
    let mut session = SessionFixture::start(command.env("USER", "tester").env("XDG_STATE_HOME", fixture.state()));
    session.request_ok("write", &json!({ "path": "a.txt", "content": "one\n", "base": "" }));
    wait_until("the change is brought to the device", || std::fs::read(&seen).is_ok_and(|seen| !seen.is_empty()));
    session.request_ok("read", &json!({ "path": "a.txt" }));
    session.close();
    let log = fixture.run_successfully(&["log", "--json"]).text();
    assert!(log.contains("\"operation\":\"read\""), "{log}");
}
