//! Request and response bodies, which count against the memory limit of their principal. A request body counts against
//! the memory limit until its call ends, and a response body until it is sent.

use std::convert::Infallible;

use axum::{
    body::{Body, Bytes},
    http::{Response, StatusCode, header},
};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use super::{
    client_limits::{HttpClientLimiter, MemoryReservation},
    errors::HttpRejection,
};
use crate::limits::{ADMIN_BODY_BYTES_MAX, BODY_BYTES_MAX, BODY_READ_TIMEOUT};

/// A response body up to this size, which is one frame, does not count against the client's memory limit.
const BODY_FRAME_BYTES: usize = 16 << 10;

/// The server reserves memory for a request body until the body is dropped.
pub(super) struct ReceivedBody {
    pub(super) bytes: Vec<u8>,
    _reservation: Option<MemoryReservation>,
}

/// The server rejects a request body that exceeds the size limit, the time limit or the client's memory limit.
pub(super) async fn read_body(limits: &HttpClientLimiter, body: Body) -> Result<ReceivedBody, HttpRejection> {
    let timed_out = HttpRejection::new(
        StatusCode::REQUEST_TIMEOUT,
        "the request body did not arrive in time; send the request again",
    );
    tokio::time::timeout(BODY_READ_TIMEOUT, read_frames(limits, body)).await.unwrap_or(Err(timed_out))
}

async fn read_frames(limits: &HttpClientLimiter, mut body: Body) -> Result<ReceivedBody, HttpRejection> {
    let (mut bytes, mut reservation, mut covered) = (Vec::<u8>::new(), None, 0);
    while let Some(frame) = body.frame().await {
        let rejection = HttpRejection::bad_request(
            "the request body was incomplete: it is shorter than its Content-Length; send the request again",
        );
        let Ok(data) = frame.map_err(|_| rejection)?.into_data() else { continue };
        if bytes.len() + data.len() > BODY_BYTES_MAX {
            return Err(HttpRejection::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "the request body is too large; send less in one request",
            ));
        }
        if bytes.capacity() - bytes.len() < data.len() {
            // The default growth would double the buffer, and would allocate much more memory than was reserved for the
            // body.
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

/// The body of an administration request must be short, because an admin client has no memory limit.
pub(super) async fn read_short_body(body: Body) -> Result<Vec<u8>, HttpRejection> {
    let read = axum::body::to_bytes(body, ADMIN_BODY_BYTES_MAX);
    match tokio::time::timeout(BODY_READ_TIMEOUT, read).await {
        Ok(Ok(bytes)) => Ok(bytes.into()),
        Ok(Err(_)) => Err(HttpRejection::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the request body is too large or incomplete; send less in one request",
        )),
        Err(_) => Err(HttpRejection::new(
            StatusCode::REQUEST_TIMEOUT,
            "the request body did not arrive in time; send the request again",
        )),
    }
}

/// A response counts against the memory limit of its client until it is sent.
pub(super) async fn meter_response(
    limits: &HttpClientLimiter,
    response: Response<Body>,
) -> Result<Response<Body>, HttpRejection> {
    let size = hyper::body::Body::size_hint(response.body()).exact();
    let Some(size) = size.and_then(|size| usize::try_from(size).ok()).filter(|size| *size > BODY_FRAME_BYTES) else {
        return Ok(response);
    };
    let reservation = limits.reserve_bytes(size)?;
    let (head, body) = response.into_parts();
    let aborted = HttpRejection::internal_error("internal error: the response was aborted; send the request again");
    let remaining = axum::body::to_bytes(body, size).await.map_err(|_| aborted)?;
    let frames = tokio_stream::iter(MemoryReservedResponseBody { remaining, _reservation: reservation });
    let mut response = Response::from_parts(head, Body::new(StreamBody::new(frames)));
    response.headers_mut().insert(header::CONTENT_LENGTH, size.into());
    Ok(response)
}

/// The response of an event stream keeps `guard` until the stream ends; all other responses drop `guard` at once.
pub(super) fn hold_while_streaming<B, G>(response: Response<B>, guard: G) -> Response<Body>
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
    G: Send + 'static,
{
    let content_type = response.headers().get(header::CONTENT_TYPE);
    if !content_type.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
        return response.map(Body::new);
    }
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _guard = &guard;
            frame
        }))
    })
}

struct MemoryReservedResponseBody {
    remaining: Bytes,
    _reservation: MemoryReservation,
}

impl Iterator for MemoryReservedResponseBody {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn next(&mut self) -> Option<Self::Item> {
        let size = self.remaining.len().min(BODY_FRAME_BYTES);
        (size > 0).then(|| Ok(Frame::data(self.remaining.split_to(size))))
    }
}
