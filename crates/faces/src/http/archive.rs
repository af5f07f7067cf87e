//! Workspaces as archives, in and out, as streams: a few pieces are held, however large the whole is, and whoever does not
//! read or send for long is let go.

use std::{
    io::{self, Read, Write},
    sync::Arc,
};

use axum::{
    body::{Body, Bytes},
    extract::{RawQuery, State},
    http::{HeaderValue, Response, StatusCode, header},
};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, mpsc, oneshot},
    time::timeout,
};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};

use super::{
    estate::{Attended, Leaving, Named, answered, named, parameters},
    guard::Turned,
    hall::Hall,
    limits::{ARCHIVE_PIECE_BYTES, ARCHIVE_PIECES_MAX, BODY_WAIT},
    problem,
};

const ARCHIVE: HeaderValue = HeaderValue::from_static("application/x-tar");
const ATTACHED: HeaderValue = HeaderValue::from_static("attachment; filename=\"workspace.tar\"");
/// Says how many things the archive does not carry.
const LEFT_OUT: &str = "stead-left-out";

type Piece = Result<Bytes, io::Error>;

fn place(hall: &Hall) -> Result<OwnedSemaphorePermit, Turned> {
    let busy = Turned::new(StatusCode::TOO_MANY_REQUESTS, "too many archives come and go");
    hall.errands.archives.clone().try_acquire_owned().map_err(|_| busy)
}

/// `GET /v1/workspaces/{name}/export`.
pub(super) async fn export(State(hall): State<Arc<Hall>>, attended: Attended, name: Named) -> Response<Body> {
    let place = match place(&hall) {
        Ok(place) => place,
        Err(turned) => return problem::turned(turned),
    };
    let (to, from) = mpsc::channel(ARCHIVE_PIECES_MAX);
    let (begin, begun) = oneshot::channel();
    let (name, handle) = (named(name), Handle::current());
    tokio::task::spawn_blocking(move || {
        let Attended { steward, by } = attended;
        let mut out = Sending { to, handle, piece: Vec::new() };
        let mut begin = Some(begin);
        let mut told = |leaving: Leaving| {
            if let Some(begin) = begin.take() {
                drop(begin.send(Ok(leaving)));
            }
        };
        let outcome = steward.export(&by, &name, &mut told, &mut out);
        match (outcome, begin) {
            // Whoever has heard the beginning must not take a part for the whole.
            (Err(_), None) => out.break_off(),
            (Err(failure), Some(begin)) => drop(begin.send(Err(failure))),
            (Ok(()), _) => {}
        }
        drop(place);
    });
    let leaving = match begun.await {
        Ok(Ok(leaving)) => leaving,
        Ok(Err(failure)) => return problem::failed(&failure, &failure.to_json()),
        Err(_) => {
            let reason = "the export broke off";
            return problem::turned(Turned::new(StatusCode::INTERNAL_SERVER_ERROR, reason));
        }
    };
    let mut response = Response::new(Body::from_stream(ReceiverStream::new(from)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, ARCHIVE);
    headers.insert(header::CONTENT_DISPOSITION, ATTACHED);
    headers.insert(LEFT_OUT, leaving.left_out.into());
    response
}

/// `PUT /v1/workspaces/{name}/import`.
pub(super) async fn import(
    State(hall): State<Arc<Hall>>,
    attended: Attended,
    name: Named,
    RawQuery(query): RawQuery,
    body: Body,
) -> Response<Body> {
    let place = match place(&hall) {
        Ok(place) => place,
        Err(turned) => return problem::turned(turned),
    };
    let (to, from) = mpsc::channel(ARCHIVE_PIECES_MAX);
    let (name, ask, handle) = (named(name), parameters(query.as_deref()), Handle::current());
    let taking = tokio::task::spawn_blocking(move || {
        let Attended { steward, by } = attended;
        let mut from = Coming { from, handle, piece: Bytes::new() };
        let outcome = steward.import(&by, &name, ask, &mut from);
        drop(place);
        outcome
    });
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let broken = |_| io::Error::from(io::ErrorKind::ConnectionReset);
        // Whoever takes it in may have given up; the answer says why.
        if to.send(piece.map_err(broken)).await.is_err() {
            break;
        }
    }
    drop(to);
    match taking.await {
        Ok(outcome) => answered(outcome, StatusCode::CREATED),
        Err(_) => problem::turned(Turned::new(StatusCode::INTERNAL_SERVER_ERROR, "the import broke off")),
    }
}

/// An archive on its way to a client, piece by piece.
struct Sending {
    to: mpsc::Sender<Piece>,
    handle: Handle,
    piece: Vec<u8>,
}

impl Sending {
    fn send(&self, piece: Piece) -> io::Result<()> {
        match self.handle.block_on(timeout(BODY_WAIT, self.to.send(piece))) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Ends the connection before the end of the archive.
    fn break_off(&self) {
        drop(self.send(Err(io::ErrorKind::Interrupted.into())));
    }
}

impl Write for Sending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= ARCHIVE_PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = std::mem::take(&mut self.piece);
        if piece.is_empty() { Ok(()) } else { self.send(Ok(piece.into())) }
    }
}

/// An archive on its way in.
struct Coming {
    from: mpsc::Receiver<Piece>,
    handle: Handle,
    piece: Bytes,
}

impl Read for Coming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.handle.block_on(timeout(BODY_WAIT, self.from.recv())) {
                Ok(Some(piece)) => self.piece = piece?,
                Ok(None) => return Ok(0),
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
        let count = buffer.len().min(self.piece.len());
        buffer[..count].copy_from_slice(&self.piece.split_to(count));
        Ok(count)
    }
}
