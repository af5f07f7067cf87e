//! Clients that write, read and follow events, and disconnect in the middle of requests. Each writer knows the content
//! that its files must have: that of the last acknowledged write or, after a disconnect, possibly that of the
//! unanswered write.

use std::{
    collections::VecDeque,
    io,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use crate::http_client::{BenchHttpClientConnection, HttpAnswer, HttpServerProcess};

const WRITER_COUNT: u64 = 4;
const READER_COUNT: u64 = 2;
const LISTENER_COUNT: u64 = 2;
const FILES_PER_WRITER: u64 = 8;
/// A client aborts one of this many writes.
const ABORT_EVERY: u64 = 16;
/// The pause of a client between two requests.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
const RETRIES_MAX: u32 = 600;
const EVENTS_PER_STREAM: u64 = 20;
const ATTEMPTS_KEPT: usize = 8;
const FILE_BYTES: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct SoakTally {
    pub(super) acknowledged: u64,
    pub(super) refused: u64,
    pub(super) aborted: u64,
    pub(super) aborted_but_applied: u64,
    pub(super) reads: u64,
    pub(super) streams: u64,
}

impl SoakTally {
    fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.aborted += other.aborted;
        self.aborted_but_applied += other.aborted_but_applied;
        self.reads += other.reads;
        self.streams += other.streams;
    }
}

struct SoakRng(u64);

impl SoakRng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// The state that the server must have for a file.
#[derive(Default)]
struct SoakFile {
    content: Option<String>,
    etag: String,
    /// The content of each unanswered write, which the server may have applied or may still apply.
    unanswered: Vec<String>,
    /// The latest writes to the file, for the error message.
    recent_attempts: VecDeque<String>,
}

impl SoakFile {
    fn note_attempt(&mut self, what: String) {
        self.recent_attempts.truncate(ATTEMPTS_KEPT - 1);
        self.recent_attempts.push_front(what);
    }

    fn set_content(&mut self, content: String, etag: &str) {
        self.content = Some(content);
        etag.clone_into(&mut self.etag);
        // Earlier unanswered writes were conditional on the old version.
        self.unanswered.clear();
    }
}

/// Runs all clients until the end of the soak test, then verifies the content of every file.
pub(super) fn run_clients(server: &HttpServerProcess, over: &AtomicBool) -> Result<SoakTally, String> {
    thread::scope(|scope| {
        let mut clients = Vec::new();
        for number in 0..WRITER_COUNT {
            clients.push(scope.spawn(move || SoakWriter::new(server, number).run(over)));
        }
        for number in 0..READER_COUNT {
            clients.push(scope.spawn(move || run_reader(server, number, over)));
        }
        for _ in 0..LISTENER_COUNT {
            clients.push(scope.spawn(move || run_listener(server, over)));
        }
        let mut tally = SoakTally::default();
        for client in clients {
            tally.add(&client.join().map_err(|_| "a client panicked".to_owned())??);
        }
        Ok(tally)
    })
}

struct SoakWriter<'a> {
    server: &'a HttpServerProcess,
    number: u64,
    rng: SoakRng,
    connection: Option<BenchHttpClientConnection>,
    files: Vec<SoakFile>,
    tally: SoakTally,
}

impl<'a> SoakWriter<'a> {
    fn new(server: &'a HttpServerProcess, number: u64) -> Self {
        let files = (0..FILES_PER_WRITER).map(|_| SoakFile::default()).collect();
        let rng = SoakRng(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        Self { server, number, rng, connection: None, files, tally: SoakTally::default() }
    }

    fn run(mut self, over: &AtomicBool) -> Result<SoakTally, String> {
        let mut turn = 0_u64;
        while !over.load(Ordering::Relaxed) {
            turn += 1;
            let at = usize::try_from(self.rng.below(FILES_PER_WRITER)).unwrap_or_default();
            self.write_file(at, turn)?;
            thread::sleep(RETRY_PAUSE);
        }
        for at in 0..self.files.len() {
            self.verify_file(at)?;
        }
        Ok(self.tally)
    }

    fn file_path(&self, at: usize) -> String {
        format!("/v1/files/writer-{}/file-{at}.txt", self.number)
    }

    fn write_file(&mut self, at: usize, turn: u64) -> Result<(), String> {
        let content = format!("{turn:>10}").repeat(FILE_BYTES / 10);
        let condition = match &self.files[at].content {
            Some(_) => format!("If-Match: {}", self.files[at].etag),
            None => "If-None-Match: *".to_owned(),
        };
        let request = format!(
            "{}{condition}\r\nContent-Length: {}\r\n\r\n{content}",
            self.server.request_head(&format!("PUT {}", self.file_path(at))),
            content.len()
        );
        if self.rng.below(ABORT_EVERY) == 0 {
            return self.abort_request(at, request.as_bytes(), content);
        }
        let mut answer = HttpAnswer::default();
        let outcome = self.send_request(request.as_bytes(), &mut answer);
        self.files[at].note_attempt(format!("{turn}: {outcome:?}, {}", answer.status));
        match outcome {
            Err(_) => {
                self.files[at].unanswered.push(content);
                self.verify_file(at)
            }
            Ok(()) if answer.status < 300 => {
                self.tally.acknowledged += 1;
                self.files[at].set_content(content, &answer.etag);
                Ok(())
            }
            // Only an aborted write can have changed the version.
            Ok(()) if answer.status == 412 && !self.files[at].unanswered.is_empty() => self.verify_file(at),
            Ok(()) if answer.status == 412 => Err(format!("{}: somebody else wrote", self.file_path(at))),
            Ok(()) => {
                self.tally.refused += 1;
                Ok(())
            }
        }
    }

    /// Sends all or a part of a write request, and disconnects without waiting for the response.
    fn abort_request(&mut self, at: usize, request: &[u8], content: String) -> Result<(), String> {
        self.tally.aborted += 1;
        let length = u64::try_from(request.len()).unwrap_or(u64::MAX);
        let sent = match self.rng.below(2) {
            0 => request.len(),
            _ => usize::try_from(self.rng.below(length)).unwrap_or_default(),
        };
        if let Ok(connection) = BenchHttpClientConnection::open(&self.server.address) {
            drop(connection.send_and_disconnect(&request[..sent]));
        }
        self.files[at].note_attempt(format!("{}: left after {sent} of {length}", content[..10].trim()));
        if sent == request.len() {
            self.files[at].unanswered.push(content);
        }
        self.verify_file(at)
    }

    /// Checks that a file has the content of the last acknowledged write or of an unanswered write.
    fn verify_file(&mut self, at: usize) -> Result<(), String> {
        let request = format!("{}\r\n", self.server.request_head(&format!("GET {}", self.file_path(at))));
        let mut answer = HttpAnswer::default();
        for _ in 0..RETRIES_MAX {
            if self.send_request(request.as_bytes(), &mut answer).is_ok() && [200, 404].contains(&answer.status) {
                break;
            }
            thread::sleep(RETRY_PAUSE);
        }
        let found = match answer.status {
            200 => Some(String::from_utf8_lossy(&answer.body).into_owned()),
            404 => None,
            other => return Err(format!("{} cannot be read: {other}", self.file_path(at))),
        };
        let known = &mut self.files[at];
        if found == known.content {
            return Ok(());
        }
        if let Some(content) = found.as_ref().filter(|found| known.unanswered.contains(found)) {
            self.tally.aborted_but_applied += 1;
            known.set_content(content.clone(), &answer.etag);
            return Ok(());
        }
        let start_of = |content: &Option<String>| content.as_deref().unwrap_or("nothing   ")[..10].trim().to_owned();
        Err(format!(
            "{} is {} which is neither the acknowledged content, {}, nor that of an unanswered write; the latest attempts: {:?}",
            self.file_path(at),
            start_of(&found),
            start_of(&self.files[at].content),
            self.files[at].recent_attempts
        ))
    }

    fn send_request(&mut self, request: &[u8], answer: &mut HttpAnswer) -> io::Result<()> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(BenchHttpClientConnection::open(&self.server.address)?),
        };
        connection.send_request(request, answer).inspect_err(|_| self.connection = None)
    }
}

/// Reads random files, and disconnects before the response in half of the cases.
fn run_reader(server: &HttpServerProcess, number: u64, over: &AtomicBool) -> Result<SoakTally, String> {
    let mut tally = SoakTally::default();
    let mut dice = SoakRng(number + 77);
    let mut answer = HttpAnswer::default();
    while !over.load(Ordering::Relaxed) {
        thread::sleep(RETRY_PAUSE);
        let path =
            format!("GET /v1/files/writer-{}/file-{}.txt", dice.below(WRITER_COUNT), dice.below(FILES_PER_WRITER));
        let request = format!("{}\r\n", server.request_head(&path));
        let Ok(mut connection) = BenchHttpClientConnection::open(&server.address) else { continue };
        if dice.below(2) == 0 {
            drop(connection.send_and_disconnect(request.as_bytes()));
        } else if connection.send_request(request.as_bytes(), &mut answer).is_ok() {
            tally.reads += 1;
            if answer.status == 200 && answer.body.len() != FILE_BYTES {
                return Err(format!("a read answered {} bytes", answer.body.len()));
            }
        }
    }
    Ok(tally)
}

/// Follows events for a while, disconnects, and connects again.
fn run_listener(server: &HttpServerProcess, over: &AtomicBool) -> Result<SoakTally, String> {
    let mut tally = SoakTally::default();
    let request = format!("{}\r\n", server.request_head("GET /events"));
    while !over.load(Ordering::Relaxed) {
        thread::sleep(RETRY_PAUSE);
        let followed = BenchHttpClientConnection::open(&server.address).and_then(|mut connection| {
            if connection.open_stream(request.as_bytes())? != 200 {
                return Ok(());
            }
            let mut received = 0;
            // Keep-alive lines arrive on a silent stream, so the loop sees the end of the run.
            while received < EVENTS_PER_STREAM && !over.load(Ordering::Relaxed) {
                received += u64::from(connection.read_line()?.starts_with("data: "));
            }
            tally.streams += 1;
            Ok(())
        });
        // A stream that ended, or is silent while the disk is full, is opened again.
        drop(followed);
    }
    Ok(tally)
}
