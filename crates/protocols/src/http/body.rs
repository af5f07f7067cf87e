//! Request and response bodies, counted against the memory limit of their principal: a request body until its call ends, a
//! response body until it is sent.

use std::convert::Infallible;

use axum::{
    body::{Body, Bytes},
    http::{Response, StatusCode, header},
};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use super::{
    client_limits::{ClientLimits, MemoryReservation},
    errors,
    host_check::HttpRejection,
    limits::{BODY_BYTES_MAX, BODY_READ_TIMEOUT},
};

/// Size of a response frame; smaller responses are not counted.
const BODY_FRAME_BYTES: usize = 16 << 10;

const SHORT_BODY_BYTES_MAX: usize = 1 << 20;

/// A request body with its memory reservation.
pub(super) struct ReceivedBody {
    pub(super) bytes: Vec<u8>,
    _reservation: Option<MemoryReservation>,
}

/// Reads a body, bounded in size, in time, and by the limits of its client.
pub(super) async fn read_body(limits: &ClientLimits, body: Body) -> Result<ReceivedBody, HttpRejection> {
    let timed_out = HttpRejection::new(StatusCode::REQUEST_TIMEOUT, "timed out reading the request body");
    tokio::time::timeout(BODY_READ_TIMEOUT, read_frames(limits, body)).await.unwrap_or(Err(timed_out))
}

async fn read_frames(limits: &ClientLimits, mut body: Body) -> Result<ReceivedBody, HttpRejection> {
    let (mut bytes, mut reservation, mut covered) = (Vec::<u8>::new(), None, 0);
    while let Some(frame) = body.frame().await {
        let rejection = HttpRejection::new(StatusCode::BAD_REQUEST, "the request body was incomplete");
        let Ok(data) = frame.map_err(|_| rejection)?.into_data() else { continue };
        if bytes.len() + data.len() > BODY_BYTES_MAX {
            return Err(HttpRejection::new(StatusCode::PAYLOAD_TOO_LARGE, "the request body is too large"));
        }
        if bytes.capacity() - bytes.len() < data.len() {
            // Doubling would allocate much more than is reserved.
            bytes.reserve_exact(data.len().max(bytes.len() / 4));
        }
        bytes.extend_from_slice(&data);
        if bytes.len() > covered {
            let more = (bytes.len() - covered).next_multiple_of(BODY_FRAME_BYTES);
            limits.reserve_more_bytes(&mut reservation, more)?;
            covered += more;
        }
    }
    Ok(ReceivedBody { bytes, _reservation: reservation })
}

/// Reads a short body of a client without a workspace.
pub(super) async fn read_short_body(body: Body) -> Result<Vec<u8>, HttpRejection> {
    let read = axum::body::to_bytes(body, SHORT_BODY_BYTES_MAX);
    match tokio::time::timeout(BODY_READ_TIMEOUT, read).await {
        Ok(Ok(bytes)) => Ok(bytes.into()),
        Ok(Err(_)) => {
            Err(HttpRejection::new(StatusCode::PAYLOAD_TOO_LARGE, "the request body is too large or incomplete"))
        }
        Err(_) => Err(HttpRejection::new(StatusCode::REQUEST_TIMEOUT, "timed out reading the request body")),
    }
}

/// Counts a response against the limits of its client until it is sent. Rejects a response that does not fit.
pub(super) async fn meter_response(limits: &ClientLimits, response: Response<Body>) -> Response<Body> {
    let size = hyper::body::Body::size_hint(response.body()).exact();
    let Some(size) = size.and_then(|size| usize::try_from(size).ok()).filter(|size| *size > BODY_FRAME_BYTES) else {
        return response;
    };
    let reservation = match limits.reserve_bytes(size) {
        Ok(reservation) => reservation,
        Err(rejection) => return errors::rejection_response(rejection),
    };
    let (head, body) = response.into_parts();
    match axum::body::to_bytes(body, size).await {
        Ok(rest) => {
            let frames = tokio_stream::iter(MeteredBody { remaining: rest, _reservation: reservation });
            let mut response = Response::from_parts(head, Body::new(StreamBody::new(frames)));
            response.headers_mut().insert(header::CONTENT_LENGTH, size.into());
            response
        }
        Err(_) => {
            let rejection =
                HttpRejection::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error: the response was aborted");
            errors::rejection_response(rejection)
        }
    }
}

/// A response body in frames; the reservation lasts until the last frame is sent.
struct MeteredBody {
    remaining: Bytes,
    _reservation: MemoryReservation,
}

impl Iterator for MeteredBody {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn next(&mut self) -> Option<Self::Item> {
        let size = self.remaining.len().min(BODY_FRAME_BYTES);
        (size > 0).then(|| Ok(Frame::data(self.remaining.split_to(size))))
    }
}
