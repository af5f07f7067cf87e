//! `cargo xtask bench estate` measures the cost of a workspace on a server with several workspaces: the time to create
//! it, to open it, and to call it while it is open, and the memory of an open and of a closed workspace.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http_client::{BenchHttpClientConnection, HttpAnswer, HttpServerProcess};
use crate::statistics::{Samples, format_significant};

const WORKSPACE_COUNT: usize = 200;
/// The longest time to wait until the server has closed all idle workspaces.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(60);

struct MultiWorkspaceBenchClient<'a> {
    server: &'a HttpServerProcess,
    connection: BenchHttpClientConnection,
    answer: HttpAnswer,
}

impl<'a> MultiWorkspaceBenchClient<'a> {
    fn open(server: &'a HttpServerProcess) -> Result<Self, String> {
        let connection = BenchHttpClientConnection::open(&server.address).map_err(|error| error.to_string())?;
        Ok(Self { server, connection, answer: HttpAnswer::default() })
    }

    /// Sends one request. Returns the time until the response in milliseconds.
    fn send_request(&mut self, token: &str, line: &str, body: &str, expected: u16) -> Result<f64, String> {
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.server.address,
            body.len()
        );
        let started = Instant::now();
        self.connection.send_request(request.as_bytes(), &mut self.answer).map_err(|error| error.to_string())?;
        let took = started.elapsed().as_secs_f64() * 1_000.0;
        match self.answer.status {
            status if status == expected => Ok(took),
            status => Err(format!("{line}: {status}: {}", String::from_utf8_lossy(&self.answer.body))),
        }
    }

    /// The string value of a field of the last JSON response.
    fn answer_field(&self, key: &str) -> Result<String, String> {
        let object: Value = serde_json::from_slice(&self.answer.body).map_err(|error| error.to_string())?;
        object[key].as_str().map(str::to_owned).ok_or_else(|| format!("no {key}"))
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    if !arguments.is_empty() {
        return Err("takes no arguments".to_owned());
    }
    let binary = crate::build_release_binary()?;
    let target = crate::needs::target_directory();
    let place = tempfile::Builder::new().prefix("bench-").tempdir_in(&target);
    let place = place.map_err(|error| error.to_string())?;
    let directory = place.path().join("estate");
    let server = HttpServerProcess::start_stead_registry(&binary, &directory, &["--idle-close", "1h"])?;
    let mut client = MultiWorkspaceBenchClient::open(&server)?;
    let (mut create, mut first, mut warm) = (Samples::default(), Samples::default(), Samples::default());
    let mut tokens = Vec::new();
    for number in 0..WORKSPACE_COUNT {
        let body = format!("{{\"name\":\"w{number}\"}}");
        create.push(client.send_request(&server.token, "POST /v1/workspaces", &body, 201)?);
        let line = format!("POST /v1/workspaces/w{number}/tokens");
        client.send_request(&server.token, &line, "{\"principal\":\"agent:a\"}", 201)?;
        tokens.push(client.answer_field("token")?);
    }
    let before = server.resident_kb()?;
    for token in &tokens {
        first.push(client.send_request(token, "PUT /v1/files/a.txt", "x", 201)?);
        warm.push(client.send_request(token, "GET /v1/files/a.txt", "", 200)?);
    }
    let open = server.resident_kb()?;
    server.terminate()?;
    let server = HttpServerProcess::start_stead_registry(&binary, &directory, &["--idle-close", "1s"])?;
    let mut client = MultiWorkspaceBenchClient::open(&server)?;
    let started = server.resident_kb()?;
    let mut again = Samples::default();
    for token in &tokens {
        again.push(client.send_request(token, "GET /v1/files/a.txt", "", 200)?);
    }
    let closed = memory_after_close(&server, &mut client)?;
    let row = |what: &str, samples: &Samples| {
        let (middle, slow) = (samples.median().unwrap_or_default(), samples.percentile_99().unwrap_or_default());
        println!("| {what} | {} | {} |", format_significant(middle), format_significant(slow));
    };
    println!("{WORKSPACE_COUNT} workspaces, one client, durability full");
    println!("| what | p50 ms | p99 ms |");
    println!("| --- | --- | --- |");
    row("make a workspace", &create);
    row("first write into a new one, which makes its store", &first);
    row("first read of one that is closed", &again);
    row("a read once it is open", &warm);
    let each = |kb: u64, base: u64| kb.saturating_sub(base) / WORKSPACE_COUNT as u64;
    println!("memory of an open idle workspace with one client: {} kB", each(open, before));
    println!("memory of one that was opened and is closed again: {} kB", each(closed, started));
    server.terminate()
}

/// Waits until every workspace is closed, and returns the resident memory of the server in kilobytes.
fn memory_after_close(server: &HttpServerProcess, client: &mut MultiWorkspaceBenchClient<'_>) -> Result<u64, String> {
    let deadline = Instant::now() + CLOSE_TIMEOUT;
    loop {
        client.send_request(&server.token, "GET /v1/workspaces?limit=1000", "", 200)?;
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
