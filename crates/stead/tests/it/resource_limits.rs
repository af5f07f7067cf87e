//! Tests how much memory clients can make the server allocate, and repeated requests with one idempotency key.

use std::{
    io::{Read, Write},
    net::TcpStream,
    process::Command,
};

use crate::server_process::{BINARY, LINE_TIMEOUT, ServerProcess};

const MIB: usize = 1 << 20;
const IDLE_MEMORY_MIB_MAX: usize = 60;
const HELD_PER_PRINCIPAL_MIB_MAX: usize = 256;
const CALL_MEMORY_MIB_MAX: usize = 3 * 64;
/// The environment variable that makes the C allocator return large freed blocks to the system at once. With the
/// allocator's default, the measured memory would depend on the number of threads.
const MALLOC_RETURN_VARIABLE: (&str, &str) = ("MALLOC_MMAP_THRESHOLD_", "1048576");
const JSON_CONTENT_TYPE: &str = "Content-Type: application/json";

fn resident_mib(server: &ServerProcess) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.split_whitespace().next().unwrap().parse::<usize>().unwrap() / 1024
}

fn create_token(server: &ServerProcess, principal: &str) -> String {
    let token = server.run_cli(&["token", "create", "--principal", principal]);
    format!("Authorization: Bearer {}", token.trim())
}

fn send_without_reading(server: &ServerProcess, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(LINE_TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(LINE_TIMEOUT)).unwrap();
    // The server may already have closed the connection.
    drop(stream.write_all(bytes));
    stream
}

fn read_status_line(stream: &mut TcpStream) -> String {
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    String::from_utf8_lossy(&status[9..]).into_owned()
}

#[test]
fn stalled_clients_are_limited_to_their_memory_share() {
    let flags = ["--listen", "127.0.0.1:0", "--log", "off"];
    let server = ServerProcess::start_at(tempfile::tempdir().unwrap(), &flags, &[MALLOC_RETURN_VARIABLE]);
    let large = vec![b'x'; 16 * MIB];
    std::fs::write(server.directory.path().join("ws/large.bin"), &large).unwrap();
    let (slow, other) = (create_token(&server, "agent:slow"), create_token(&server, "agent:other"));
    // The client leaves 96 responses of 16 MiB unread, together 1.5 GiB.
    let get = format!("GET /v1/files/large.bin HTTP/1.1\r\nHost: {}\r\n{slow}\r\n\r\n", server.address);
    let mut readers: Vec<TcpStream> = (0..96).map(|_| send_without_reading(&server, get.as_bytes())).collect();
    let answers: Vec<String> = readers.iter_mut().map(read_status_line).collect();
    let refused = answers.iter().filter(|status| *status == "429").count();
    assert!(
        refused >= 96 - HELD_PER_PRINCIPAL_MIB_MAX / 16 && answers.iter().any(|status| status == "200"),
        "{answers:?}"
    );
    // Another client is served meanwhile, and the slow client is served again after it closes its connections.
    assert_eq!(server.get("/v1/files/a.txt", &format!("{other}\r\n")).0, 200);
    let held = resident_mib(&server);
    assert!(held <= IDLE_MEMORY_MIB_MAX + HELD_PER_PRINCIPAL_MIB_MAX + CALL_MEMORY_MIB_MAX, "{held} MiB");
    drop(readers);
    let again = || server.get("/v1/files/a.txt", &format!("{slow}\r\nRange: bytes=0-1\r\n")).0;
    assert_eq!(again(), 206);
    // Each of 64 request bodies of 90 MiB stops after 8 MiB.
    let head = format!(
        "PUT /v1/files/new.bin HTTP/1.1\r\nHost: {}\r\n{slow}\r\nContent-Length: {}\r\n\r\n",
        server.address,
        90 * MIB
    );
    let part = [head.as_bytes(), &large[..8 * MIB]].concat();
    let mut writers: Vec<TcpStream> = (0..64).map(|_| send_without_reading(&server, &part)).collect();
    assert_eq!(server.get("/v1/files/a.txt", &format!("{other}\r\n")).0, 200);
    let mut rejected = 0;
    for writer in &mut writers {
        writer.set_nonblocking(true).unwrap();
        let mut status = [0; 12];
        rejected += usize::from(writer.read(&mut status).is_ok_and(|read| read == 12 && &status[9..] == b"429"));
    }
    assert!(rejected > 0, "no request was rejected");
    let held = resident_mib(&server);
    assert!(held <= IDLE_MEMORY_MIB_MAX + 2 * HELD_PER_PRINCIPAL_MIB_MAX + CALL_MEMORY_MIB_MAX, "{held} MiB");
    drop(writers);
    server.terminate();
}

fn append_requests_by_protocol(key: &str) -> Vec<(&'static str, Vec<String>, String)> {
    let meta = format!(
        "{{\"stead/key\":\"{key}-meta\",\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
         \"io.modelcontextprotocol/clientCapabilities\":{{}},\
         \"io.modelcontextprotocol/clientInfo\":{{\"name\":\"t\",\"version\":\"1\"}}}}"
    );
    let bare = meta.replace(&format!("\"stead/key\":\"{key}-meta\","), "");
    let arguments = "\"path\":\"log.txt\",\"content\":\"x\"";
    let rpc =
        |meta: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"append\",\"params\":{{{arguments}{meta}}}}}");
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

fn entry_number(answer: &str) -> String {
    let (_, rest) = answer.split_once("\"entry\":").expect(answer);
    rest.chars().take_while(char::is_ascii_digit).collect()
}

#[test]
fn idempotency_key_is_honoured_after_a_restart() {
    let mut server = ServerProcess::start(&["--listen", "127.0.0.1:0"]);
    let bearer = create_token(&server, "agent:ci");
    let append = |server: &ServerProcess| -> Vec<String> {
        let ask = |(line, headers, body): (&'static str, Vec<String>, String)| {
            let mut all = vec![bearer.as_str(), JSON_CONTENT_TYPE];
            all.extend(headers.iter().map(String::as_str));
            entry_number(&server.send_request(line, &all, &body))
        };
        append_requests_by_protocol("k").into_iter().map(ask).collect()
    };
    let files = |server: &ServerProcess| -> Vec<String> {
        let key = |name: &str| format!("Idempotency-Key: {name}");
        let put = server.send_request("PUT /v1/files/put.txt", &[&bearer, &key("put")], "text");
        let gone = server.send_request("DELETE /v1/files/put.txt", &[&bearer, &key("gone")], "");
        vec![entry_number(&put), entry_number(&gone)]
    };
    let (first, first_files) = (append(&server), files(&server));
    let text = |server: &ServerProcess| server.get("/v1/files/log.txt", &format!("{bearer}\r\n")).1;
    assert_eq!(text(&server), "xxxxx");
    assert_eq!((append(&server), files(&server)), (first.clone(), first_files.clone()));
    let directory = std::mem::replace(&mut server.directory, tempfile::tempdir().unwrap());
    server.terminate();
    let server = ServerProcess::start_at(directory, &["--listen", "127.0.0.1:0"], &[]);
    assert_eq!((append(&server), files(&server)), (first, first_files));
    assert_eq!(text(&server), "xxxxx");
    assert_eq!(server.get("/v1/files/put.txt", &format!("{bearer}\r\n")).0, 404);
    server.terminate();
}

#[test]
fn server_warns_when_the_file_limit_is_too_low() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("ws")).unwrap();
    let script = "ulimit -n 600 && exec \"$0\" \"$@\"";
    let mut child = Command::new("sh")
        .args(["-c", script, BINARY, "serve", "--listen", "127.0.0.1:0", "--connections", "1000"])
        .arg("--workspace")
        .arg(directory.path().join("ws"))
        .arg("--state")
        .arg(directory.path().join("state"))
        .env("XDG_CONFIG_HOME", directory.path())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    let printed = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("ulimit -Hn")));
    drop(child.kill());
    drop(child.wait());
    let printed = printed.expect("it is printed").unwrap();
    assert!(printed.contains("600 open files") && printed.contains("300 connections at most, not 1000"), "{printed}");
}
