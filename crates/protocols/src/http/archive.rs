//! Streaming import and export of workspaces as tar archives. Memory use is bounded by a few chunks, and a stalled client
//! times out.

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
    errors,
    host_check::HttpRejection,
    limits::{ARCHIVE_CHUNK_BYTES, ARCHIVE_CHUNKS_MAX, BODY_READ_TIMEOUT},
    state::ServerState,
    workspace_admin::{
        AdminContext, WorkspaceExportSummary, WorkspaceNamePath, admin_response, parse_query, workspace_name,
    },
};

const TAR_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/x-tar");
const TAR_DISPOSITION: HeaderValue = HeaderValue::from_static("attachment; filename=\"workspace.tar\"");
/// The number of files that the archive omits.
const OMITTED_FILES_HEADER: &str = "stead-left-out";

type ArchiveChunk = Result<Bytes, io::Error>;

fn acquire_archive_permit(state: &ServerState) -> Result<OwnedSemaphorePermit, HttpRejection> {
    let busy =
        HttpRejection::new(StatusCode::TOO_MANY_REQUESTS, "too many concurrent imports and exports; retry later");
    state.admin_limits.archives.clone().try_acquire_owned().map_err(|_| busy)
}

/// `GET /v1/workspaces/{name}/export`.
pub(super) async fn export_workspace(
    State(state): State<Arc<ServerState>>,
    context: AdminContext,
    name: WorkspaceNamePath,
) -> Response<Body> {
    let permit = match acquire_archive_permit(&state) {
        Ok(permit) => permit,
        Err(rejection) => return errors::rejection_response(rejection),
    };
    let (sender, receiver) = mpsc::channel(ARCHIVE_CHUNKS_MAX);
    let (start, started) = oneshot::channel();
    let (name, handle) = (workspace_name(name), Handle::current());
    tokio::task::spawn_blocking(move || {
        let AdminContext { workspace_admin, caller } = context;
        let mut out = ArchiveSender { sender, runtime: handle, chunk: Vec::new() };
        let mut start = Some(start);
        let mut on_start = |summary: WorkspaceExportSummary| {
            if let Some(start) = start.take() {
                drop(start.send(Ok(summary)));
            }
        };
        let result = workspace_admin.export_workspace(&caller, &name, &mut on_start, &mut out);
        match (result, start) {
            // The response has started; abort it so that the client does not take it for complete.
            (Err(_), None) => out.abort(),
            (Err(error), Some(start)) => drop(start.send(Err(error))),
            (Ok(()), _) => {}
        }
        drop(permit);
    });
    let summary = match started.await {
        Ok(Ok(summary)) => summary,
        Ok(Err(error)) => return errors::error_response(&error, &error.to_json()),
        Err(_) => {
            let reason = "internal error: the export was aborted";
            return errors::rejection_response(HttpRejection::new(StatusCode::INTERNAL_SERVER_ERROR, reason));
        }
    };
    let mut response = Response::new(Body::from_stream(ReceiverStream::new(receiver)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, TAR_CONTENT_TYPE);
    headers.insert(header::CONTENT_DISPOSITION, TAR_DISPOSITION);
    headers.insert(OMITTED_FILES_HEADER, summary.omitted_files.into());
    response
}

/// `PUT /v1/workspaces/{name}/import`.
pub(super) async fn import_workspace(
    State(state): State<Arc<ServerState>>,
    context: AdminContext,
    name: WorkspaceNamePath,
    RawQuery(query): RawQuery,
    body: Body,
) -> Response<Body> {
    let permit = match acquire_archive_permit(&state) {
        Ok(permit) => permit,
        Err(rejection) => return errors::rejection_response(rejection),
    };
    let (sender, receiver) = mpsc::channel(ARCHIVE_CHUNKS_MAX);
    let (name, options, handle) = (workspace_name(name), parse_query(query.as_deref()), Handle::current());
    let import = tokio::task::spawn_blocking(move || {
        let AdminContext { workspace_admin, caller } = context;
        let mut reader = ArchiveReceiver { receiver, runtime: handle, chunk: Bytes::new() };
        let result = workspace_admin.import_workspace(&caller, &name, options, &mut reader);
        drop(permit);
        result
    });
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let aborted = |_| io::Error::from(io::ErrorKind::ConnectionReset);
        // The importer may have stopped; its result says why.
        if sender.send(chunk.map_err(aborted)).await.is_err() {
            break;
        }
    }
    drop(sender);
    match import.await {
        Ok(result) => admin_response(result, StatusCode::CREATED),
        Err(_) => errors::rejection_response(HttpRejection::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal error: the import was aborted",
        )),
    }
}

/// Sends an archive to a client in chunks.
struct ArchiveSender {
    sender: mpsc::Sender<ArchiveChunk>,
    runtime: Handle,
    chunk: Vec<u8>,
}

impl ArchiveSender {
    fn send_chunk(&self, chunk: ArchiveChunk) -> io::Result<()> {
        match self.runtime.block_on(timeout(BODY_READ_TIMEOUT, self.sender.send(chunk))) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Closes the connection before the end of the archive.
    fn abort(&self) {
        drop(self.send_chunk(Err(io::ErrorKind::Interrupted.into())));
    }
}

impl Write for ArchiveSender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.chunk.extend_from_slice(bytes);
        if self.chunk.len() >= ARCHIVE_CHUNK_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let chunk = std::mem::take(&mut self.chunk);
        if chunk.is_empty() { Ok(()) } else { self.send_chunk(Ok(chunk.into())) }
    }
}

/// Reads an archive from a client.
struct ArchiveReceiver {
    receiver: mpsc::Receiver<ArchiveChunk>,
    runtime: Handle,
    chunk: Bytes,
}

impl Read for ArchiveReceiver {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            match self.runtime.block_on(timeout(BODY_READ_TIMEOUT, self.receiver.recv())) {
                Ok(Some(chunk)) => self.chunk = chunk?,
                Ok(None) => return Ok(0),
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
        let count = buffer.len().min(self.chunk.len());
        buffer[..count].copy_from_slice(&self.chunk.split_to(count));
        Ok(count)
    }
}
