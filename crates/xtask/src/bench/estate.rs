//! `cargo xtask bench estate`: what a workspace costs a server of many: making it, opening it the first time, opening it again,
//! a call once it is open, and the memory of one that is open and one that is closed.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::statistics::{Samples, shown};
use crate::web::{Answer, Connection, Server};

/// Workspaces.
const WORKSPACES: usize = 200;
/// How long it may take until everything that nobody uses is closed.
const CLOSED_WAIT: Duration = Duration::from_secs(60);

/// Somebody who asks one server.
struct Client<'a> {
    server: &'a Server,
    connection: Connection,
    answer: Answer,
}

impl<'a> Client<'a> {
    fn open(server: &'a Server) -> Result<Self, String> {
        let connection = Connection::open(&server.address).map_err(|error| error.to_string())?;
        Ok(Self { server, connection, answer: Answer::default() })
    }

    /// One request; the milliseconds it took.
    fn ask(&mut self, token: &str, line: &str, body: &str, expected: u16) -> Result<f64, String> {
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.server.address,
            body.len()
        );
        let begun = Instant::now();
        self.connection.ask(request.as_bytes(), &mut self.answer).map_err(|error| error.to_string())?;
        let took = begun.elapsed().as_secs_f64() * 1_000.0;
        match self.answer.status {
            status if status == expected => Ok(took),
            status => Err(format!("{line}: {status}: {}", String::from_utf8_lossy(&self.answer.body))),
        }
    }

    /// A part of the last answer.
    fn text(&self, key: &str) -> Result<String, String> {
        let object: Value = serde_json::from_slice(&self.answer.body).map_err(|error| error.to_string())?;
        object[key].as_str().map(str::to_owned).ok_or_else(|| format!("no {key}"))
    }
}

/// Measures and reports.
pub(super) fn run(arguments: &[String]) -> Result<(), String> {
    if !arguments.is_empty() {
        return Err("takes no arguments".to_owned());
    }
    let binary = super::build()?;
    let target = crate::needs::target_directory();
    let place = tempfile::Builder::new().prefix("bench-").tempdir_in(&target);
    let place = place.map_err(|error| error.to_string())?;
    let directory = place.path().join("estate");
    let server = Server::estate(&binary, &directory, &["--idle-close", "1h"])?;
    let mut client = Client::open(&server)?;
    let (mut create, mut first, mut warm) = (Samples::default(), Samples::default(), Samples::default());
    let mut tokens = Vec::new();
    for number in 0..WORKSPACES {
        let body = format!("{{\"name\":\"w{number}\"}}");
        create.push(client.ask(&server.token, "POST /v1/workspaces", &body, 201)?);
        let line = format!("POST /v1/workspaces/w{number}/tokens");
        client.ask(&server.token, &line, "{\"principal\":\"agent:a\"}", 201)?;
        tokens.push(client.text("token")?);
    }
    let before = server.resident_kb()?;
    for token in &tokens {
        first.push(client.ask(token, "PUT /v1/files/a.txt", "x", 201)?);
        warm.push(client.ask(token, "GET /v1/files/a.txt", "", 200)?);
    }
    let open = server.resident_kb()?;
    server.end()?;
    let server = Server::estate(&binary, &directory, &["--idle-close", "1s"])?;
    let mut client = Client::open(&server)?;
    let started = server.resident_kb()?;
    let mut again = Samples::default();
    for token in &tokens {
        again.push(client.ask(token, "GET /v1/files/a.txt", "", 200)?);
    }
    let closed = closed(&server, &mut client)?;
    let row = |what: &str, samples: &Samples| {
        let (middle, slow) = (samples.median().unwrap_or_default(), samples.slowest().unwrap_or_default());
        println!("| {what} | {} | {} |", shown(middle), shown(slow));
    };
    println!("{WORKSPACES} workspaces, one client, durability full");
    println!("| what | p50 ms | p99 ms |");
    println!("| --- | --- | --- |");
    row("make a workspace", &create);
    row("first write into a new one, which makes its store", &first);
    row("first read of one that is closed", &again);
    row("a read once it is open", &warm);
    let each = |kb: u64, base: u64| kb.saturating_sub(base) / WORKSPACES as u64;
    println!("memory of an open idle workspace with one client: {} kB", each(open, before));
    println!("memory of one that was opened and is closed again: {} kB", each(closed, started));
    server.end()
}

/// Kilobytes once every workspace is closed.
fn closed(server: &Server, client: &mut Client<'_>) -> Result<u64, String> {
    let deadline = Instant::now() + CLOSED_WAIT;
    loop {
        client.ask(&server.token, "GET /v1/workspaces?limit=1000", "", 200)?;
        let listed: Value = serde_json::from_slice(&client.answer.body).map_err(|error| error.to_string())?;
        let open = |one: &Value| one["state"] == "open";
        if !listed["workspaces"].as_array().is_some_and(|all| all.iter().any(open)) {
            return server.resident_kb();
        }
        if Instant::now() > deadline {
            return Err("workspaces stay open".to_owned());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
