//! A thousand workspaces in one process, far more than may be open at a time; random tokens make random calls by every way
//! in, and everybody only ever sees what is theirs.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{PATIENCE, Server};

const WORKSPACES: usize = 1_000;
const CALLS: usize = 3_000;
const THREADS: usize = 4;
/// The whole must not take longer; it takes a part of this where nothing else runs.
const TIME_MAX: Duration = Duration::from_secs(240);
const MCP_VERSION: &str = "2026-07-28";

/// A connection that stays.
struct Line {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Line {
    fn open(server: &Server) -> Self {
        let stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream: BufReader::new(stream), host: server.address.clone() }
    }

    fn ask(&mut self, token: &str, line: &str, headers: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let head = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n",
            self.host,
            body.len()
        );
        self.stream.get_mut().write_all(&[head.as_bytes(), body].concat()).unwrap();
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            assert!(self.stream.read_line(&mut line).unwrap() > 0, "the server closed");
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().unwrap();
            }
            if let Some(rest) = line.strip_prefix("content-length: ") {
                length = rest.parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        (status, body)
    }

    fn object(&mut self, token: &str, line: &str, headers: &str, body: &Value) -> (u16, Value) {
        let (status, answer) = self.ask(token, line, headers, body.to_string().as_bytes());
        (status, serde_json::from_slice(&answer).unwrap_or(Value::Null))
    }
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// What only this workspace holds.
fn secret(of: usize) -> String {
    format!("the secret of workspace {of}, and of no other")
}

fn make(server: &Server, line: &mut Line, of: usize) -> String {
    let name = format!("w{of}");
    let made = line.object(
        &server.token,
        "POST /v1/workspaces",
        "",
        &json!({ "name": name, "lasting": "ephemeral" }),
    );
    assert_eq!(made.0, 201, "{made:?}");
    let principal = json!({ "principal": "agent:same" });
    let made = line.object(&server.token, &format!("POST /v1/workspaces/{name}/tokens"), "", &principal);
    let token = made.1["token"].as_str().unwrap().to_owned();
    assert_eq!(line.ask(&token, "PUT /v1/files/secret.txt", "", secret(of).as_bytes()).0, 201);
    assert_eq!(line.ask(&token, &format!("PUT /v1/files/only-{of}.txt"), "", b"").0, 201);
    token
}

/// One call as one workspace; whatever it answers is that workspace's.
fn call(line: &mut Line, dice: &mut Dice, tokens: &[String]) {
    let of = dice.below(tokens.len());
    let other = (of + 1 + dice.below(tokens.len() - 1)) % tokens.len();
    let token = &tokens[of];
    let told = match dice.below(6) {
        0 => {
            let (status, body) = line.ask(token, "GET /v1/files/secret.txt", "", b"");
            assert_eq!(status, 200);
            String::from_utf8(body).unwrap()
        }
        1 => {
            let message =
                json!({ "jsonrpc": "2.0", "id": of, "method": "read", "params": { "path": "secret.txt" } });
            line.object(token, "POST /rpc", "", &message).1["result"]["content"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        }
        2 => {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": MCP_VERSION,
                "io.modelcontextprotocol/clientInfo": { "name": "isolation", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            let message = json!({ "jsonrpc": "2.0", "id": of, "method": "tools/call",
                "params": { "_meta": meta, "name": "read", "arguments": { "path": "secret.txt" } } });
            let headers = format!(
                "MCP-Protocol-Version: {MCP_VERSION}\r\nMcp-Method: tools/call\r\nMcp-Name: read\r\n"
            );
            let answer = line.object(token, "POST /mcp", &headers, &message).1;
            answer["result"]["structuredContent"]["content"].as_str().unwrap_or_default().to_owned()
        }
        3 => {
            let query = json!({ "query": [secret(other), secret(of)] });
            let answer = line.object(token, "POST /v1/search", "", &query).1;
            let found = (&answer["total"], &answer["files"][0]["path"]);
            assert_eq!(found, (&json!(1), &json!("secret.txt")), "{answer}");
            secret(of)
        }
        4 => {
            assert_eq!(line.ask(token, &format!("GET /v1/files/only-{other}.txt"), "", b"").0, 404);
            secret(of)
        }
        _ => {
            let answer = line.object(token, "POST /v1/list", "", &json!({})).1.to_string();
            assert!(
                answer.contains(&format!("only-{of}.txt")) && !answer.contains(&format!("only-{other}.txt"))
            );
            secret(of)
        }
    };
    assert_eq!(told, secret(of));
}

#[test]
fn a_thousand_workspaces_never_see_each_other() {
    let begun = Instant::now();
    // Where there is a file system in memory the device does not count: who sees what is the question here.
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let flags = ["--listen", "127.0.0.1:0", "--durability", "fast", "--open-max", "200"];
    let server = Server::start_in(place, &flags);
    let next = AtomicUsize::new(0);
    let mut tokens: Vec<(usize, String)> = std::thread::scope(|scope| {
        let maker = || {
            let mut line = Line::open(&server);
            let mut made = Vec::new();
            loop {
                let of = next.fetch_add(1, Ordering::Relaxed);
                if of >= WORKSPACES {
                    return made;
                }
                made.push((of, make(&server, &mut line, of)));
            }
        };
        let makers: Vec<_> = (0..THREADS).map(|_| scope.spawn(maker)).collect();
        makers.into_iter().flat_map(|maker| maker.join().unwrap()).collect()
    });
    tokens.sort();
    let tokens: Vec<String> = tokens.into_iter().map(|(_, token)| token).collect();
    println!("{WORKSPACES} workspaces were made and filled in {:?}", begun.elapsed());
    let calling = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (server, tokens) = (&server, &tokens);
            scope.spawn(move || {
                let (mut line, mut dice) = (Line::open(server), Dice(thread as u64 + 1));
                for _ in 0..CALLS / THREADS {
                    call(&mut line, &mut dice, tokens);
                }
            });
        }
    });
    println!("{CALLS} calls in {:?}", calling.elapsed());
    assert!(begun.elapsed() < TIME_MAX, "{:?}", begun.elapsed());
    server.end();
}
