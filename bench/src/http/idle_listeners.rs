//! Measures ten thousand idle event streams: their memory, and the time until all streams have received one change
//! event.

use std::{path::Path, time::Instant};

use crate::http_client::{BenchHttpClientConnection, HttpAnswer, HttpServerProcess};

const LISTENER_COUNT: u64 = 10_000;

pub(super) fn measure_idle_listeners(binary: &Path, workspace: &Path, state: &Path) -> Result<(), String> {
    let server = HttpServerProcess::start_stead(binary, workspace, state)?;
    let failed = |error: std::io::Error| error.to_string();
    let (address, token) = (&server.address, &server.token);
    let head = |line: &str| format!("{line} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
    let listen = format!("{}\r\n", head("GET /events"));
    // The first listener has one-time costs that are not counted per listener.
    let mut listeners = vec![open_listener(address, &listen)?];
    let before = server.resident_kb()?;
    let started = Instant::now();
    for _ in 1..LISTENER_COUNT {
        listeners.push(open_listener(address, &listen)?);
    }
    let opened = started.elapsed();
    let after = server.resident_kb()?;
    let write =
        format!("{}If-None-Match: *\r\nContent-Length: 1\r\n\r\nx", server.request_head("PUT /v1/files/delay.txt"));
    let mut answer = HttpAnswer::default();
    let changed_at = Instant::now();
    BenchHttpClientConnection::open(address)
        .and_then(|mut writer| writer.send_request(write.as_bytes(), &mut answer))
        .map_err(failed)?;
    if answer.status != 201 {
        return Err(format!("the write was answered {}", answer.status));
    }
    for listener in &mut listeners {
        listener.read_until("data: ").map_err(failed)?;
    }
    let delay = changed_at.elapsed();
    println!(
        "{LISTENER_COUNT} idle listeners: opened in {:.1} s, {} kB each ({} to {} MB in all); one change reached all of them in {:.2} s, \
         then {} MB",
        opened.as_secs_f64(),
        (after.saturating_sub(before)) / LISTENER_COUNT,
        before / 1_000,
        after / 1_000,
        delay.as_secs_f64(),
        server.resident_kb()? / 1_000,
    );
    Ok(())
}

fn open_listener(address: &str, request: &str) -> Result<BenchHttpClientConnection, String> {
    let opened = BenchHttpClientConnection::open(address).and_then(|mut connection| {
        let status = connection.open_stream(request.as_bytes())?;
        Ok((connection, status))
    });
    match opened {
        Ok((connection, 200)) => Ok(connection),
        Ok((_, status)) => Err(format!("a listener was answered {status}")),
        Err(error) => Err(format!("a listener cannot connect: {error}; is the limit of open files below 20,000?")),
    }
}
