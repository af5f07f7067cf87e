//! What clients can make the server hold, and what a repeated request does: measured on the process itself.

use std::{
    io::{Read, Write},
    net::TcpStream,
    process::Command,
};

use crate::served::{BINARY, PATIENCE, Server};

const MIB: usize = 1 << 20;
/// Memory that a server without work may take, in MiB.
const BASE_MAX: usize = 60;
/// What is held for one principal at most, in MiB, and what its calls may have read meanwhile, several times over.
const HELD_MAX: usize = 256;
const WORK_MAX: usize = 3 * 64;
/// Makes the allocator give back at once what the server gives back: what it keeps for each thread is not the server's, and as
/// many times as much as threads happened to run at a time.
const GIVEN_BACK: (&str, &str) = ("MALLOC_MMAP_THRESHOLD_", "1048576");
const JSON: &str = "Content-Type: application/json";

fn memory(server: &Server) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.split_whitespace().next().unwrap().parse::<usize>().unwrap() / 1024
}

fn token(server: &Server, principal: &str) -> String {
    let token = server.say(&["token", "create", "--principal", principal]);
    format!("Authorization: Bearer {}", token.trim())
}

/// A connection that has sent this and is read by nobody.
fn sent(server: &Server, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    // A server that has heard enough may have closed.
    drop(stream.write_all(bytes));
    stream
}

fn status(stream: &mut TcpStream) -> String {
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    String::from_utf8_lossy(&status[9..]).into_owned()
}

#[test]
fn who_does_not_read_and_who_does_not_go_on_sending_takes_a_share_and_no_more() {
    let flags = ["--listen", "127.0.0.1:0", "--log", "off"];
    let server = Server::start_at(tempfile::tempdir().unwrap(), &flags, &[GIVEN_BACK]);
    let large = vec![b'x'; 16 * MIB];
    std::fs::write(server.place.path().join("ws/large.bin"), &large).unwrap();
    let (slow, other) = (token(&server, "agent:slow"), token(&server, "agent:other"));
    // 96 times 16 MiB is 1.5 GiB, which nobody reads.
    let get = format!("GET /v1/files/large.bin HTTP/1.1\r\nHost: {}\r\n{slow}\r\n\r\n", server.address);
    let mut readers: Vec<TcpStream> = (0..96).map(|_| sent(&server, get.as_bytes())).collect();
    let answers: Vec<String> = readers.iter_mut().map(status).collect();
    let refused = answers.iter().filter(|status| *status == "429").count();
    assert!(refused >= 96 - HELD_MAX / 16 && answers.iter().any(|status| status == "200"), "{answers:?}");
    // Another is served meanwhile, and the slow one again when its answers are gone.
    assert_eq!(server.get("/v1/files/a.txt", &format!("{other}\r\n")).0, 200);
    let held = memory(&server);
    assert!(held <= BASE_MAX + HELD_MAX + WORK_MAX, "{held} MiB");
    drop(readers);
    let again = || server.get("/v1/files/a.txt", &format!("{slow}\r\nRange: bytes=0-1\r\n")).0;
    assert_eq!(again(), 206);
    // 64 bodies of 90 MiB that stop after 8.
    let head = format!(
        "PUT /v1/files/new.bin HTTP/1.1\r\nHost: {}\r\n{slow}\r\nContent-Length: {}\r\n\r\n",
        server.address,
        90 * MIB
    );
    let part = [head.as_bytes(), &large[..8 * MIB]].concat();
    let mut writers: Vec<TcpStream> = (0..64).map(|_| sent(&server, &part)).collect();
    assert_eq!(server.get("/v1/files/a.txt", &format!("{other}\r\n")).0, 200);
    // Those for whom there was no room were told so.
    let mut told = 0;
    for writer in &mut writers {
        writer.set_nonblocking(true).unwrap();
        let mut status = [0; 12];
        told += usize::from(writer.read(&mut status).is_ok_and(|read| read == 12 && &status[9..] == b"429"));
    }
    assert!(told > 0, "nobody was refused");
    let held = memory(&server);
    assert!(held <= BASE_MAX + 2 * HELD_MAX + WORK_MAX, "{held} MiB");
    drop(writers);
    server.end();
}

/// Appends by every way there is, with a key of its own each.
fn ways(key: &str) -> Vec<(&'static str, Vec<String>, String)> {
    let meta = format!(
        "{{\"stead/key\":\"{key}-meta\",\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
         \"io.modelcontextprotocol/clientCapabilities\":{{}},\
         \"io.modelcontextprotocol/clientInfo\":{{\"name\":\"t\",\"version\":\"1\"}}}}"
    );
    let bare = meta.replace(&format!("\"stead/key\":\"{key}-meta\","), "");
    let arguments = "\"path\":\"log.txt\",\"content\":\"x\"";
    let rpc = |meta: &str| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"append\",\"params\":{{{arguments}{meta}}}}}")
    };
    let mcp = |meta: &str| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"append\",\
             \"arguments\":{{{arguments}}},\"_meta\":{meta}}}}}"
        )
    };
    let header = |way: &str| vec![format!("Idempotency-Key: {key}-{way}")];
    let mcp_headers = |more: Vec<String>| {
        let fixed = [
            "Accept: application/json, text/event-stream",
            "MCP-Protocol-Version: 2026-07-28",
            "Mcp-Method: tools/call",
            "Mcp-Name: append",
        ];
        fixed.into_iter().map(str::to_owned).chain(more).collect::<Vec<_>>()
    };
    vec![
        ("POST /v1/append", header("rest"), format!("{{{arguments}}}")),
        ("POST /rpc", header("rpc"), rpc("")),
        ("POST /rpc", vec![], rpc(&format!(",\"_meta\":{{\"stead/key\":\"{key}-in\"}}"))),
        ("POST /mcp", mcp_headers(header("mcp")), mcp(&bare)),
        ("POST /mcp", mcp_headers(vec![]), mcp(&meta)),
    ]
}

/// The number of the entry in an answer.
fn entry(answer: &str) -> String {
    let (_, rest) = answer.split_once("\"entry\":").expect(answer);
    rest.chars().take_while(char::is_ascii_digit).collect()
}

#[test]
fn a_repeated_request_is_answered_and_changes_nothing_even_after_a_restart() {
    let mut server = Server::start(&["--listen", "127.0.0.1:0"]);
    let bearer = token(&server, "agent:ci");
    let append = |server: &Server| -> Vec<String> {
        let ask = |(line, headers, body): (&'static str, Vec<String>, String)| {
            let mut all = vec![bearer.as_str(), JSON];
            all.extend(headers.iter().map(String::as_str));
            entry(&server.ask(line, &all, &body))
        };
        ways("k").into_iter().map(ask).collect()
    };
    let files = |server: &Server| -> Vec<String> {
        let key = |name: &str| format!("Idempotency-Key: {name}");
        let put = server.ask("PUT /v1/files/put.txt", &[&bearer, &key("put")], "text");
        let gone = server.ask("DELETE /v1/files/put.txt", &[&bearer, &key("gone")], "");
        vec![entry(&put), entry(&gone)]
    };
    let (first, first_files) = (append(&server), files(&server));
    let text = |server: &Server| server.get("/v1/files/log.txt", &format!("{bearer}\r\n")).1;
    assert_eq!(text(&server), "xxxxx");
    assert_eq!((append(&server), files(&server)), (first.clone(), first_files.clone()));
    let place = std::mem::replace(&mut server.place, tempfile::tempdir().unwrap());
    server.end();
    let server = Server::start_at(place, &["--listen", "127.0.0.1:0"], &[]);
    assert_eq!((append(&server), files(&server)), (first, first_files));
    assert_eq!(text(&server), "xxxxx");
    assert_eq!(server.get("/v1/files/put.txt", &format!("{bearer}\r\n")).0, 404);
    server.end();
}

#[test]
fn a_server_says_when_the_system_has_less_room_than_was_asked_for() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("ws")).unwrap();
    let script = "ulimit -n 600 && exec \"$0\" \"$@\"";
    let mut child = Command::new("sh")
        .args(["-c", script, BINARY, "serve", "--listen", "127.0.0.1:0", "--connections", "1000"])
        .arg("--workspace")
        .arg(place.path().join("ws"))
        .arg("--state")
        .arg(place.path().join("state"))
        .env("XDG_CONFIG_HOME", place.path())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    let said = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("ulimit -Hn")));
    drop(child.kill());
    drop(child.wait());
    let said = said.expect("it is said").unwrap();
    assert!(said.contains("600 files") && said.contains("300 connections at a time and not 1000"), "{said}");
}
