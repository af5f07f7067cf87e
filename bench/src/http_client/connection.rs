//! An HTTP client connection, which sends a prepared request and reads the whole response.
//!
//! The soak test disconnects in the middle of a request, and benchmarks send a request that was built in advance, so
//! that the time of the client is not measured. HTTP client libraries offer neither.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

const ANSWER_WAIT: Duration = Duration::from_secs(30);

pub(crate) struct BenchHttpClientConnection {
    stream: BufReader<TcpStream>,
    line_buffer: String,
}

#[derive(Debug, Default)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    /// The ETag of the response; empty if there is none.
    pub(crate) etag: String,
    pub(crate) body: Vec<u8>,
}

enum BodyLength {
    ContentLength(usize),
    Chunked,
}

impl BenchHttpClientConnection {
    pub(crate) fn open(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_WAIT))?;
        Ok(Self { stream: BufReader::new(stream), line_buffer: String::new() })
    }

    /// Sends a request, or a part of one, and disconnects without waiting for the response.
    pub(crate) fn send_and_disconnect(mut self, request: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(request)
    }

    /// Sends a request and reads the response into `answer`.
    pub(crate) fn send_request(&mut self, request: &[u8], answer: &mut HttpAnswer) -> io::Result<()> {
        self.stream.get_mut().write_all(request)?;
        answer.body.clear();
        match self.read_head(answer)? {
            BodyLength::ContentLength(length) => self.append_body(length, &mut answer.body),
            BodyLength::Chunked => loop {
                let length = usize::from_str_radix(self.read_line()?, 16).map_err(io::Error::other)?;
                self.append_body(length, &mut answer.body)?;
                self.read_line()?;
                if length == 0 {
                    return Ok(());
                }
            },
        }
    }

    /// Sends a request for an event stream and reads the head of the response, but not its endless body.
    pub(crate) fn open_stream(&mut self, request: &[u8]) -> io::Result<u16> {
        self.stream.get_mut().write_all(request)?;
        let mut answer = HttpAnswer::default();
        self.read_head(&mut answer)?;
        Ok(answer.status)
    }

    /// Reads lines of the response until a line begins with `start`.
    pub(crate) fn read_until(&mut self, start: &str) -> io::Result<()> {
        while !self.read_line()?.starts_with(start) {}
        Ok(())
    }

    fn read_head(&mut self, answer: &mut HttpAnswer) -> io::Result<BodyLength> {
        let status = self.read_line()?.split(' ').nth(1).and_then(|status| status.parse().ok());
        answer.status = status.ok_or_else(|| io::Error::other("no status"))?;
        answer.etag.clear();
        let mut length = BodyLength::ContentLength(0);
        loop {
            let line = self.read_line()?;
            if line.is_empty() {
                return Ok(length);
            }
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            if name.eq_ignore_ascii_case("content-length") {
                length = BodyLength::ContentLength(value.trim().parse().map_err(io::Error::other)?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                length = BodyLength::Chunked;
            } else if name.eq_ignore_ascii_case("etag") {
                answer.etag.push_str(value.trim());
            }
        }
    }

    pub(crate) fn read_line(&mut self) -> io::Result<&str> {
        self.line_buffer.clear();
        if self.stream.read_line(&mut self.line_buffer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(self.line_buffer.trim_end())
    }

    fn append_body(&mut self, length: usize, body: &mut Vec<u8>) -> io::Result<()> {
        let begin = body.len();
        body.resize(begin + length, 0);
        self.stream.read_exact(&mut body[begin..])
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn connect_to_fixed_answer(bytes: &'static [u8]) -> BenchHttpClientConnection {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = [0; 64];
            while stream.read(&mut buffer).is_ok_and(|read| read > 0) {
                stream.write_all(bytes).unwrap();
            }
        });
        BenchHttpClientConnection::open(&address).unwrap()
    }

    #[test]
    fn body_ends_by_content_length_or_last_chunk() {
        let mut answer = HttpAnswer::default();
        for bytes in [
            &b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc"[..],
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
        ] {
            let mut connection = connect_to_fixed_answer(bytes);
            for _ in 0..2 {
                connection.send_request(b"GET / HTTP/1.1\r\n\r\n", &mut answer).unwrap();
                assert_eq!((answer.status, answer.body.as_slice()), (200, &b"abc"[..]));
            }
        }
        assert!(connect_to_fixed_answer(b"nonsense\r\n\r\n").send_request(b"GET", &mut answer).is_err());
    }
}
