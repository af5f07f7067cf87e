//! Clients that write, read and listen, and break off in the middle. Each writer knows what its files must hold: what was
//! acknowledged last, or, after it broke off, that or what it had asked for.

use std::{
    collections::VecDeque,
    io,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use crate::web::{Answer, Connection, Server};

const WRITERS: u64 = 4;
const READERS: u64 = 2;
const LISTENERS: u64 = 2;
/// Files of one writer.
const FILES: u64 = 8;
/// One of so many writes is broken off.
const BREAK_OFF: u64 = 16;
/// A pause between two requests: the disk must last for the run.
const PAUSE: Duration = Duration::from_millis(100);
/// How often a file is asked for until the server answers.
const TRIES: u32 = 600;
/// Changes that a listener hears before it leaves.
const HEARD: u64 = 20;
/// Tries of one file that are remembered.
const TRIED_KEPT: usize = 8;
/// Bytes of a file.
const FILE_BYTES: usize = 1_000;

/// What happened.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) acknowledged: u64,
    pub(super) refused: u64,
    pub(super) broken_off: u64,
    pub(super) came_true: u64,
    pub(super) reads: u64,
    pub(super) streams: u64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.broken_off += other.broken_off;
        self.came_true += other.came_true;
        self.reads += other.reads;
        self.streams += other.streams;
    }
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A file as its writer knows it.
#[derive(Default)]
struct Known {
    content: Option<String>,
    etag: String,
    /// What was asked for and never answered: it may still come true.
    asked: Vec<String>,
    /// What was tried last, for whoever looks into a failure.
    tried: VecDeque<String>,
}

impl Known {
    fn note(&mut self, what: String) {
        self.tried.truncate(TRIED_KEPT - 1);
        self.tried.push_front(what);
    }

    fn is(&mut self, content: String, etag: &str) {
        self.content = Some(content);
        etag.clone_into(&mut self.etag);
        // Whatever was asked for before had the old version as its condition.
        self.asked.clear();
    }
}

/// Runs all of them until the run is over, then holds every file against what it must be.
pub(super) fn run(server: &Server, over: &AtomicBool) -> Result<Tally, String> {
    thread::scope(|scope| {
        let mut clients = Vec::new();
        for number in 0..WRITERS {
            clients.push(scope.spawn(move || Writer::new(server, number).run(over)));
        }
        for number in 0..READERS {
            clients.push(scope.spawn(move || read(server, number, over)));
        }
        for _ in 0..LISTENERS {
            clients.push(scope.spawn(move || listen(server, over)));
        }
        let mut tally = Tally::default();
        for client in clients {
            tally.add(&client.join().map_err(|_| "a client broke off".to_owned())??);
        }
        Ok(tally)
    })
}

/// One that writes.
struct Writer<'a> {
    server: &'a Server,
    number: u64,
    dice: Dice,
    connection: Option<Connection>,
    files: Vec<Known>,
    tally: Tally,
}

impl<'a> Writer<'a> {
    fn new(server: &'a Server, number: u64) -> Self {
        let files = (0..FILES).map(|_| Known::default()).collect();
        let dice = Dice(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        Self { server, number, dice, connection: None, files, tally: Tally::default() }
    }

    fn run(mut self, over: &AtomicBool) -> Result<Tally, String> {
        let mut turn = 0_u64;
        while !over.load(Ordering::Relaxed) {
            turn += 1;
            let at = usize::try_from(self.dice.below(FILES)).unwrap_or_default();
            self.write(at, turn)?;
            thread::sleep(PAUSE);
        }
        for at in 0..self.files.len() {
            self.look(at)?;
        }
        Ok(self.tally)
    }

    fn path(&self, at: usize) -> String {
        format!("/v1/files/writer-{}/file-{at}.txt", self.number)
    }

    fn write(&mut self, at: usize, turn: u64) -> Result<(), String> {
        let content = format!("{turn:>10}").repeat(FILE_BYTES / 10);
        let condition = match &self.files[at].content {
            Some(_) => format!("If-Match: {}", self.files[at].etag),
            None => "If-None-Match: *".to_owned(),
        };
        let request = format!(
            "{}{condition}\r\nContent-Length: {}\r\n\r\n{content}",
            self.server.head(&format!("PUT {}", self.path(at))),
            content.len()
        );
        if self.dice.below(BREAK_OFF) == 0 {
            return self.break_off(at, request.as_bytes(), content);
        }
        let mut answer = Answer::default();
        let asked = self.ask(request.as_bytes(), &mut answer);
        self.files[at].note(format!("{turn}: {asked:?}, {}", answer.status));
        match asked {
            Err(_) => {
                self.files[at].asked.push(content);
                self.look(at)
            }
            Ok(()) if answer.status < 300 => {
                self.tally.acknowledged += 1;
                self.files[at].is(content, &answer.etag);
                Ok(())
            }
            // Only what was broken off before can have come in between.
            Ok(()) if answer.status == 412 && !self.files[at].asked.is_empty() => self.look(at),
            Ok(()) if answer.status == 412 => Err(format!("{}: somebody else wrote", self.path(at))),
            Ok(()) => {
                self.tally.refused += 1;
                Ok(())
            }
        }
    }

    /// Leaves in the middle of a request, or before its answer.
    fn break_off(&mut self, at: usize, request: &[u8], content: String) -> Result<(), String> {
        self.tally.broken_off += 1;
        let length = u64::try_from(request.len()).unwrap_or(u64::MAX);
        let sent = match self.dice.below(2) {
            0 => request.len(),
            _ => usize::try_from(self.dice.below(length)).unwrap_or_default(),
        };
        if let Ok(connection) = Connection::open(&self.server.address) {
            drop(connection.leave(&request[..sent]));
        }
        self.files[at].note(format!("{}: left after {sent} of {length}", content[..10].trim()));
        if sent == request.len() {
            self.files[at].asked.push(content);
        }
        self.look(at)
    }

    /// Looks what a file holds: what was acknowledged last, or what was asked for without an answer.
    fn look(&mut self, at: usize) -> Result<(), String> {
        let request = format!("{}\r\n", self.server.head(&format!("GET {}", self.path(at))));
        let mut answer = Answer::default();
        for _ in 0..TRIES {
            if self.ask(request.as_bytes(), &mut answer).is_ok() && [200, 404].contains(&answer.status) {
                break;
            }
            thread::sleep(PAUSE);
        }
        let found = match answer.status {
            200 => Some(String::from_utf8_lossy(&answer.body).into_owned()),
            404 => None,
            other => return Err(format!("{} cannot be looked at: {other}", self.path(at))),
        };
        let known = &mut self.files[at];
        if found == known.content {
            return Ok(());
        }
        if let Some(content) = found.as_ref().filter(|found| known.asked.contains(found)) {
            self.tally.came_true += 1;
            known.is(content.clone(), &answer.etag);
            return Ok(());
        }
        let said =
            |content: &Option<String>| content.as_deref().unwrap_or("nothing   ")[..10].trim().to_owned();
        Err(format!(
            "{} is {} and neither what was acknowledged, {}, nor what was asked for; the last tries: {:?}",
            self.path(at),
            said(&found),
            said(&self.files[at].content),
            self.files[at].tried
        ))
    }

    fn ask(&mut self, request: &[u8], answer: &mut Answer) -> io::Result<()> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(Connection::open(&self.server.address)?),
        };
        connection.ask(request, answer).inspect_err(|_| self.connection = None)
    }
}

/// Reads what is there, and leaves without hearing every other answer.
fn read(server: &Server, number: u64, over: &AtomicBool) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let mut dice = Dice(number + 77);
    let mut answer = Answer::default();
    while !over.load(Ordering::Relaxed) {
        thread::sleep(PAUSE);
        let path = format!("GET /v1/files/writer-{}/file-{}.txt", dice.below(WRITERS), dice.below(FILES));
        let request = format!("{}\r\n", server.head(&path));
        let Ok(mut connection) = Connection::open(&server.address) else { continue };
        if dice.below(2) == 0 {
            drop(connection.leave(request.as_bytes()));
        } else if connection.ask(request.as_bytes(), &mut answer).is_ok() {
            tally.reads += 1;
            if answer.status == 200 && answer.body.len() != FILE_BYTES {
                return Err(format!("a read answered {} bytes", answer.body.len()));
            }
        }
    }
    Ok(tally)
}

/// Listens for a while, leaves, and comes again.
fn listen(server: &Server, over: &AtomicBool) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let request = format!("{}\r\n", server.head("GET /events"));
    while !over.load(Ordering::Relaxed) {
        thread::sleep(PAUSE);
        let heard = Connection::open(&server.address).and_then(|mut connection| {
            if connection.listen(request.as_bytes())? != 200 {
                return Ok(());
            }
            let mut heard = 0;
            // A silent stream says now and then that it is alive, so the end of the run is seen.
            while heard < HEARD && !over.load(Ordering::Relaxed) {
                heard += u64::from(connection.line()?.starts_with("data: "));
            }
            tally.streams += 1;
            Ok(())
        });
        // A stream that ends, or stays silent while the disk is full, is opened again.
        drop(heard);
    }
    Ok(tally)
}
