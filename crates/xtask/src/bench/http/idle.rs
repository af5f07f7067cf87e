//! Ten thousand clients that listen and hear nothing: what they cost in memory, and how long it takes until all of them have
//! heard one change.

use std::{path::Path, time::Instant};

use crate::web::{Answer, Connection, Server};

/// Clients that listen.
const LISTENERS: u64 = 10_000;

/// Measures and says so.
pub(super) fn run(binary: &Path, workspace: &Path, state: &Path) -> Result<(), String> {
    let server = Server::stead(binary, workspace, state)?;
    let failed = |error: std::io::Error| error.to_string();
    let (address, token) = (&server.address, &server.token);
    let head =
        |line: &str| format!("{line} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
    let listen = format!("{}\r\n", head("GET /events"));
    // One listener first: what the first of all costs is not counted for each.
    let mut listeners = vec![open(address, &listen)?];
    let before = server.resident_kb()?;
    let started = Instant::now();
    for _ in 1..LISTENERS {
        listeners.push(open(address, &listen)?);
    }
    let opened = started.elapsed();
    let after = server.resident_kb()?;
    let write =
        format!("{}If-None-Match: *\r\nContent-Length: 1\r\n\r\nx", server.head("PUT /v1/files/heard.txt"));
    let mut answer = Answer::default();
    let told = Instant::now();
    Connection::open(address)
        .and_then(|mut writer| writer.ask(write.as_bytes(), &mut answer))
        .map_err(failed)?;
    if answer.status != 201 {
        return Err(format!("the write was answered {}", answer.status));
    }
    for listener in &mut listeners {
        listener.until("data: ").map_err(failed)?;
    }
    let heard = told.elapsed();
    println!(
        "{LISTENERS} idle listeners: opened in {:.1} s, {} kB each ({} to {} MB in all); one change reached all of them in {:.2} s, \
         then {} MB",
        opened.as_secs_f64(),
        (after.saturating_sub(before)) / LISTENERS,
        before / 1_000,
        after / 1_000,
        heard.as_secs_f64(),
        server.resident_kb()? / 1_000,
    );
    Ok(())
}

fn open(address: &str, request: &str) -> Result<Connection, String> {
    let opened = Connection::open(address).and_then(|mut connection| {
        let status = connection.listen(request.as_bytes())?;
        Ok((connection, status))
    });
    match opened {
        Ok((connection, 200)) => Ok(connection),
        Ok((_, status)) => Err(format!("a listener was answered {status}")),
        Err(error) => {
            Err(format!("a listener cannot connect: {error}; is the limit of open files below 20,000?"))
        }
    }
}
