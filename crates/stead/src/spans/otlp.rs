//! Sends spans to an OTLP collector in batches, on a separate thread.

use std::{
    io::{Read, Write},
    net::{TcpStream, ToSocketAddrs},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    time::Duration,
};

use serde_json::{Value, json};

use crate::output;

const QUEUED_SPANS_MAX: usize = 4_096;
/// Spans per request, and how long to collect them.
const BATCH_MAX: usize = 512;
const BATCH_WAIT: Duration = Duration::from_secs(1);
const COLLECTOR_WAIT: Duration = Duration::from_secs(5);

struct OtlpEndpoint {
    authority: String,
    path: String,
    service_name: String,
}

/// Starts the exporter thread.
pub(super) fn start_exporter(address: &str, name: &str) -> Result<SyncSender<Value>, String> {
    let rest = address.strip_prefix("http://").ok_or("the collector address must start with http://")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let collector =
        OtlpEndpoint { authority: authority.to_owned(), path: format!("/{path}"), service_name: name.to_owned() };
    let (to, from) = sync_channel(QUEUED_SPANS_MAX);
    let run = move || export_batches(&collector, &from);
    std::thread::Builder::new().name("spans".to_owned()).spawn(run).map_err(|error| error.to_string())?;
    Ok(to)
}

/// Sends batches until all senders are dropped. Reports the first failure, and the first success after it.
fn export_batches(collector: &OtlpEndpoint, from: &Receiver<Value>) {
    let mut was_failing = false;
    while let Ok(first) = from.recv() {
        let mut batch = vec![first];
        while batch.len() < BATCH_MAX {
            match from.recv_timeout(BATCH_WAIT) {
                Ok(span) => batch.push(span),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        let sent = collector.send_batch(&batch);
        match (&sent, was_failing) {
            (Err(error), false) => output::print_error(&format!("cannot send spans to the collector: {error}")),
            (Ok(()), true) => output::print_note("sending spans to the collector again"),
            (Err(_), true) | (Ok(()), false) => {}
        }
        was_failing = sent.is_err();
    }
}

impl OtlpEndpoint {
    fn send_batch(&self, batch: &[Value]) -> std::io::Result<()> {
        let body = json!({ "resourceSpans": [{
            "resource": { "attributes": [{ "key": "service.name", "value": { "stringValue": self.service_name } }] },
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
    fn batch_is_sent_in_one_request() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let to = start_exporter(&address, "mine").unwrap();
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
        assert!(heard.contains("\"spans\":[{\"name\":\"a\"},{\"name\":\"b\"}]") && heard.contains("mine"), "{heard}");
        start_exporter("https://collector.example", "mine").unwrap_err();
    }
}
