//! One connection of a client: it sends a request made before and reads the whole answer.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

/// An answer that takes longer is a failure.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// A connection that is kept for many requests.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    line: String,
}

/// What came back. The body is only good until the next answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// What names the version that was answered; empty when nothing does.
    pub(crate) etag: String,
    pub(crate) body: Vec<u8>,
}

/// How the end of a body is known.
enum Length {
    Said(usize),
    Chunks,
}

impl Connection {
    pub(crate) fn open(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_WAIT))?;
        Ok(Self { stream: BufReader::new(stream), line: String::new() })
    }

    /// Sends a request, or a part of one, and leaves without waiting for an answer.
    pub(crate) fn leave(mut self, request: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(request)
    }

    /// Sends a request and reads the answer into what is given.
    pub(crate) fn ask(&mut self, request: &[u8], answer: &mut Answer) -> io::Result<()> {
        self.stream.get_mut().write_all(request)?;
        answer.body.clear();
        match self.head(answer)? {
            Length::Said(length) => self.append(length, &mut answer.body),
            Length::Chunks => loop {
                let length = usize::from_str_radix(self.line()?, 16).map_err(io::Error::other)?;
                self.append(length, &mut answer.body)?;
                self.line()?;
                if length == 0 {
                    return Ok(());
                }
            },
        }
    }

    /// Sends a request whose answer never ends, and reads its head.
    pub(crate) fn listen(&mut self, request: &[u8]) -> io::Result<u16> {
        self.stream.get_mut().write_all(request)?;
        let mut answer = Answer::default();
        self.head(&mut answer)?;
        Ok(answer.status)
    }

    /// Reads until a line of the stream begins so.
    pub(crate) fn until(&mut self, start: &str) -> io::Result<()> {
        while !self.line()?.starts_with(start) {}
        Ok(())
    }

    fn head(&mut self, answer: &mut Answer) -> io::Result<Length> {
        let status = self.line()?.split(' ').nth(1).and_then(|status| status.parse().ok());
        answer.status = status.ok_or_else(|| io::Error::other("no status"))?;
        answer.etag.clear();
        let mut length = Length::Said(0);
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(length);
            }
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            if name.eq_ignore_ascii_case("content-length") {
                length = Length::Said(value.trim().parse().map_err(io::Error::other)?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                length = Length::Chunks;
            } else if name.eq_ignore_ascii_case("etag") {
                answer.etag.push_str(value.trim());
            }
        }
    }

    /// The next line of what is listened to.
    pub(crate) fn line(&mut self) -> io::Result<&str> {
        self.line.clear();
        if self.stream.read_line(&mut self.line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(self.line.trim_end())
    }

    fn append(&mut self, length: usize, body: &mut Vec<u8>) -> io::Result<()> {
        let begin = body.len();
        body.resize(begin + length, 0);
        self.stream.read_exact(&mut body[begin..])
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Answers every request with the same bytes.
    fn answering(bytes: &'static [u8]) -> Connection {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heard = [0; 64];
            while stream.read(&mut heard).is_ok_and(|read| read > 0) {
                stream.write_all(bytes).unwrap();
            }
        });
        Connection::open(&address).unwrap()
    }

    #[test]
    fn a_body_ends_where_the_head_or_its_last_chunk_says() {
        let mut answer = Answer::default();
        for bytes in [
            &b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc"[..],
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
        ] {
            let mut connection = answering(bytes);
            for _ in 0..2 {
                connection.ask(b"GET / HTTP/1.1\r\n\r\n", &mut answer).unwrap();
                assert_eq!((answer.status, answer.body.as_slice()), (200, &b"abc"[..]));
            }
        }
        assert!(answering(b"nonsense\r\n\r\n").ask(b"GET", &mut answer).is_err());
    }
}
