//! Streams of bytes that belong to a call: exports, and imports of archives. A transfer keeps at most a few chunks in
//! memory. If a client stops reading or sending, the transfer times out.

use std::{
    io,
    sync::{Arc, Mutex},
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, StatusCode, header},
};
use serde_json::{Map, Value};
use stead_engine::{CallByteStream, Error};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::timeout,
};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};

use super::{
    client::AuthenticatedHttpClient,
    errors::{self, HttpRejection, HttpResult},
};
use crate::limits::{ARCHIVE_CHUNK_BYTES, ARCHIVE_CHUNKS_MAX, ARCHIVES_MAX, BODY_READ_TIMEOUT};

/// The operation whose stream has no endpoint of its own.
pub(super) const LOG_EXPORT: &str = "log.export";
const TAR_HEADERS: [&str; 2] = ["application/x-tar", "attachment; filename=\"workspace.tar\""];
const JSON_LINES_HEADERS: [&str; 2] = ["application/x-ndjson", "attachment; filename=\"journal.jsonl\""];
/// The response header with the number of files that an exported archive omits.
const OMITTED_FILES_HEADER: &str = "stead-left-out";

type ArchiveChunk = Result<Bytes, io::Error>;

pub(super) struct TransferLimit(Arc<Semaphore>);

impl Default for TransferLimit {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ARCHIVES_MAX)))
    }
}

impl TransferLimit {
    fn acquire_permit(&self) -> Result<OwnedSemaphorePermit, HttpRejection> {
        let busy = HttpRejection::too_many_requests("too many concurrent imports and exports; retry later");
        self.0.clone().try_acquire_owned().map_err(|_| busy)
    }
}

/// Runs an operation that writes a stream, and sends the stream as the body of the response.
pub(super) async fn serve_export(
    client: Arc<AuthenticatedHttpClient>,
    limit: &TransferLimit,
    operation: String,
    arguments: Map<String, Value>,
) -> HttpResult {
    let permit = limit.acquire_permit()?;
    let [content_type, disposition] = if operation == LOG_EXPORT { JSON_LINES_HEADERS } else { TAR_HEADERS };
    let (sender, receiver) = mpsc::channel(ARCHIVE_CHUNKS_MAX);
    let (start, started) = oneshot::channel();
    let state = Mutex::new(HttpExportState { start: Some(start), chunk: Vec::new() });
    let stream = HttpExportStream { sender, runtime: Handle::current(), state };
    tokio::task::spawn_blocking(move || {
        let result = client.call_with_stream(&operation, arguments, &stream);
        let start = crate::lock(&stream.state).start.take();
        match (result, start) {
            // The response has already started. The response is aborted, so that the client does not consider the
            // stream complete.
            (Err(_), None) => drop(stream.send_chunk(Err(io::ErrorKind::Interrupted.into()))),
            (Err(error), Some(start)) => drop(start.send(Err(error))),
            (Ok(_), _) => drop(stream.send_rest()),
        }
        drop(permit);
    });
    let aborted = HttpRejection::internal_error("internal error: the export was aborted; export again");
    let omitted_files = started.await.map_err(|_| aborted)??;
    let mut response = Response::new(Body::from_stream(ReceiverStream::new(receiver)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static(disposition));
    headers.insert(OMITTED_FILES_HEADER, omitted_files.into());
    Ok(response)
}

/// Runs an operation that reads the body of the request as a stream.
pub(super) async fn serve_import(
    client: Arc<AuthenticatedHttpClient>,
    limit: &TransferLimit,
    operation: String,
    arguments: Map<String, Value>,
    body: Body,
) -> HttpResult {
    let permit = limit.acquire_permit()?;
    let (sender, receiver) = mpsc::channel(ARCHIVE_CHUNKS_MAX);
    let stream = HttpImportStream { runtime: Handle::current(), upload: Mutex::new((receiver, Bytes::new())) };
    let import = tokio::task::spawn_blocking(move || {
        let result = client.call_with_stream(&operation, arguments, &stream);
        drop(permit);
        result
    });
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let aborted = |_| io::Error::from(io::ErrorKind::ConnectionReset);
        // A send error means that the import has stopped. The result of the import contains the reason.
        if sender.send(chunk.map_err(aborted)).await.is_err() {
            break;
        }
    }
    drop(sender);
    let aborted = HttpRejection::internal_error(
        "internal error: the import was aborted; GET /v1/workspaces/NAME shows whether the workspace exists",
    );
    let created = import.await.map_err(|_| aborted)??;
    Ok(errors::json_text_response(StatusCode::CREATED, created.json))
}

struct HttpExportStream {
    sender: mpsc::Sender<ArchiveChunk>,
    runtime: Handle,
    state: Mutex<HttpExportState>,
}

struct HttpExportState {
    /// Tells the response how many files the export omits, before the first byte is sent.
    start: Option<oneshot::Sender<Result<u64, Error>>>,
    chunk: Vec<u8>,
}

impl HttpExportStream {
    fn send_chunk(&self, chunk: ArchiveChunk) -> io::Result<()> {
        match self.runtime.block_on(timeout(BODY_READ_TIMEOUT, self.sender.send(chunk))) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    fn send_rest(&self) -> io::Result<()> {
        let chunk = std::mem::take(&mut crate::lock(&self.state).chunk);
        if chunk.is_empty() { Ok(()) } else { self.send_chunk(Ok(chunk.into())) }
    }
}

impl CallByteStream for HttpExportStream {
    fn begin_output(&self, left_out: u64) {
        if let Some(start) = crate::lock(&self.state).start.take() {
            drop(start.send(Ok(left_out)));
        }
    }

    fn write_bytes(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = crate::lock(&self.state);
        state.chunk.extend_from_slice(bytes);
        let is_full = state.chunk.len() >= ARCHIVE_CHUNK_BYTES;
        drop(state);
        if is_full { self.send_rest() } else { Ok(()) }
    }
}

struct HttpImportStream {
    runtime: Handle,
    upload: Mutex<(mpsc::Receiver<ArchiveChunk>, Bytes)>,
}

impl CallByteStream for HttpImportStream {
    fn read_bytes(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut upload = crate::lock(&self.upload);
        let (receiver, chunk) = &mut *upload;
        while chunk.is_empty() {
            match self.runtime.block_on(timeout(BODY_READ_TIMEOUT, receiver.recv())) {
                Ok(Some(next)) => *chunk = next?,
                Ok(None) => return Ok(0),
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
        let count = buffer.len().min(chunk.len());
        buffer[..count].copy_from_slice(&chunk.split_to(count));
        Ok(count)
    }
}
