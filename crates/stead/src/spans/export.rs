//! The way to a collector: batches of spans, each one request, by a thread of its own.

use std::{
    io::{Read, Write},
    net::{TcpStream, ToSocketAddrs},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    time::Duration,
};

use serde_json::{Value, json};

use crate::show;

/// Spans that wait to be sent.
const WAITING_MAX: usize = 4_096;
/// Spans of one request, and how long they are gathered.
const BATCH_MAX: usize = 512;
const BATCH_WAIT: Duration = Duration::from_secs(1);
/// How long a collector may take.
const COLLECTOR_WAIT: Duration = Duration::from_secs(5);

/// Where spans go.
struct Collector {
    authority: String,
    path: String,
    name: String,
}

/// Starts to send what comes to this address.
pub(super) fn start(address: &str, name: &str) -> Result<SyncSender<Value>, String> {
    let rest = address.strip_prefix("http://").ok_or("a collector is reached by http://HOST:PORT")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let collector =
        Collector { authority: authority.to_owned(), path: format!("/{path}"), name: name.to_owned() };
    let (to, from) = sync_channel(WAITING_MAX);
    let run = move || carry(&collector, &from);
    std::thread::Builder::new().name("spans".to_owned()).spawn(run).map_err(|error| error.to_string())?;
    Ok(to)
}

/// Sends batches until nobody can make spans any more. The first failure is said, and the first success after it.
fn carry(collector: &Collector, from: &Receiver<Value>) {
    let mut was_away = false;
    while let Ok(first) = from.recv() {
        let mut batch = vec![first];
        while batch.len() < BATCH_MAX {
            match from.recv_timeout(BATCH_WAIT) {
                Ok(span) => batch.push(span),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        let sent = collector.send(&batch);
        match (&sent, was_away) {
            (Err(error), false) => show::complain(&format!("the collector does not take spans: {error}")),
            (Ok(()), true) => show::remark("the collector takes spans again"),
            (Err(_), true) | (Ok(()), false) => {}
        }
        was_away = sent.is_err();
    }
}

impl Collector {
    fn send(&self, batch: &[Value]) -> std::io::Result<()> {
        let body = json!({ "resourceSpans": [{
            "resource": { "attributes": [{ "key": "service.name", "value": { "stringValue": self.name } }] },
            "scopeSpans": [{ "scope": { "name": "stead", "version": env!("CARGO_PKG_VERSION") }, "spans": batch }],
        }] })
        .to_string();
        let address = self.authority.to_socket_addrs()?.next().ok_or(std::io::ErrorKind::NotFound)?;
        let mut stream = TcpStream::connect_timeout(&address, COLLECTOR_WAIT)?;
        stream.set_write_timeout(Some(COLLECTOR_WAIT))?;
        stream.set_read_timeout(Some(COLLECTOR_WAIT))?;
        write!(
            stream,
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.path,
            self.authority,
            body.len()
        )?;
        let mut status = [0; 12];
        stream.read_exact(&mut status)?;
        match &status[9..] {
            b"200" | b"202" => Ok(()),
            other => Err(std::io::Error::other(format!("status {}", String::from_utf8_lossy(other)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_batch_is_one_request() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let to = start(&address, "mine").unwrap();
        to.send(json!({ "name": "a" })).unwrap();
        to.send(json!({ "name": "b" })).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(COLLECTOR_WAIT)).unwrap();
        let mut heard = String::new();
        while !heard.ends_with("}]}]}") {
            let mut some = [0; 4096];
            let read = stream.read(&mut some).unwrap();
            assert!(read > 0, "{heard}");
            heard.push_str(&String::from_utf8_lossy(&some[..read]));
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        assert!(heard.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{heard}");
        assert!(
            heard.contains("\"spans\":[{\"name\":\"a\"},{\"name\":\"b\"}]") && heard.contains("mine"),
            "{heard}"
        );
        start("https://collector.example", "mine").unwrap_err();
    }
}
