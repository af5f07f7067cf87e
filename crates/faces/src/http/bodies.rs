//! Bytes on their way in and out, held against what their principal may take: as many as have come, until the call is
//! made; as many as are not sent yet, until they are.

use std::convert::Infallible;

use axum::{
    body::{Body, Bytes},
    http::{Response, StatusCode, header},
};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use super::{
    allowance::{Allowance, Held},
    guard::Turned,
    limits::{BODY_BYTES_MAX, BODY_WAIT},
    problem,
};

/// Bytes that are handed to a connection at once, and the least that is worth counting.
const PORTION_BYTES: usize = 16 << 10;

/// Bytes of a short body.
const SHORT_BYTES_MAX: usize = 1 << 20;

/// A body that has come, and what is held for it until it is dropped.
pub(super) struct Brought {
    pub(super) bytes: Vec<u8>,
    _held: Option<Held>,
}

/// Reads a body, bounded in size, in time, and by what whoever sends it may take.
pub(super) async fn read(allowance: &Allowance, body: Body) -> Result<Brought, Turned> {
    let late = Turned::new(StatusCode::REQUEST_TIMEOUT, "the body took too long to come");
    tokio::time::timeout(BODY_WAIT, gather(allowance, body)).await.unwrap_or(Err(late))
}

async fn gather(allowance: &Allowance, mut body: Body) -> Result<Brought, Turned> {
    let (mut bytes, mut held, mut covered) = (Vec::<u8>::new(), None, 0);
    while let Some(frame) = body.frame().await {
        let broken = Turned::new(StatusCode::BAD_REQUEST, "the body broke off");
        let Ok(piece) = frame.map_err(|_| broken)?.into_data() else { continue };
        if bytes.len() + piece.len() > BODY_BYTES_MAX {
            return Err(Turned::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long"));
        }
        if bytes.capacity() - bytes.len() < piece.len() {
            // Not by doubling: what is reserved is held as well.
            bytes.reserve_exact(piece.len().max(bytes.len() / 4));
        }
        bytes.extend_from_slice(&piece);
        if bytes.len() > covered {
            let more = (bytes.len() - covered).next_multiple_of(PORTION_BYTES);
            allowance.hold_more(&mut held, more)?;
            covered += more;
        }
    }
    Ok(Brought { bytes, _held: held })
}

/// Reads a short body of somebody who has no part in any workspace.
pub(super) async fn read_short(body: Body) -> Result<Vec<u8>, Turned> {
    let read = axum::body::to_bytes(body, SHORT_BYTES_MAX);
    match tokio::time::timeout(BODY_WAIT, read).await {
        Ok(Ok(bytes)) => Ok(bytes.into()),
        Ok(Err(_)) => {
            Err(Turned::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long, or it broke off"))
        }
        Err(_) => Err(Turned::new(StatusCode::REQUEST_TIMEOUT, "the body took too long to come")),
    }
}

/// Lets an answer out, held against what its principal may take until it is sent. One that does not fit any more is not sent.
pub(super) async fn let_out(allowance: &Allowance, response: Response<Body>) -> Response<Body> {
    let size = hyper::body::Body::size_hint(response.body()).exact();
    let Some(size) = size.and_then(|size| usize::try_from(size).ok()).filter(|size| *size > PORTION_BYTES)
    else {
        return response;
    };
    let held = match allowance.hold(size) {
        Ok(held) => held,
        Err(turned) => return problem::turned(turned),
    };
    let (head, body) = response.into_parts();
    match axum::body::to_bytes(body, size).await {
        Ok(rest) => {
            let portions = tokio_stream::iter(Portions { rest, _held: held });
            let mut response = Response::from_parts(head, Body::new(StreamBody::new(portions)));
            response.headers_mut().insert(header::CONTENT_LENGTH, size.into());
            response
        }
        Err(_) => {
            let broken = Turned::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer broke off");
            problem::turned(broken)
        }
    }
}

/// An answer in portions: what a connection has not asked for yet is still held.
struct Portions {
    rest: Bytes,
    _held: Held,
}

impl Iterator for Portions {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn next(&mut self) -> Option<Self::Item> {
        let size = self.rest.len().min(PORTION_BYTES);
        (size > 0).then(|| Ok(Frame::data(self.rest.split_to(size))))
    }
}
