//! Import and export of workspaces as streamed tar archives. An import or export keeps at most a few chunks of the
//! archive in memory. If a client stops reading or sending, the transfer times out.

use std::io::{self, Read, Write};

use axum::{
    body::{Body, Bytes},
    extract::RawQuery,
    http::{HeaderValue, Response, StatusCode, header},
};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, mpsc, oneshot},
    time::timeout,
};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};

use super::{
    errors::{self, HttpRejection, HttpResult},
    workspace_admin::{AdminRequestContext, WorkspaceExportStartInfo, WorkspaceNameInUrl, parse_query},
};
use crate::limits::{ARCHIVE_CHUNK_BYTES, ARCHIVE_CHUNKS_MAX, BODY_READ_TIMEOUT};

const TAR_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/x-tar");
const TAR_DISPOSITION: HeaderValue = HeaderValue::from_static("attachment; filename=\"workspace.tar\"");
/// The response header with the number of files that an exported archive omits.
const OMITTED_FILES_HEADER: &str = "stead-left-out";

type ArchiveChunk = Result<Bytes, io::Error>;

fn acquire_archive_permit(context: &AdminRequestContext) -> Result<OwnedSemaphorePermit, HttpRejection> {
    let busy = HttpRejection::too_many_requests("too many concurrent imports and exports; retry later");
    context.state.admin_limits.archives.clone().try_acquire_owned().map_err(|_| busy)
}

pub(super) async fn export_workspace(
    context: AdminRequestContext,
    WorkspaceNameInUrl(name): WorkspaceNameInUrl,
) -> HttpResult {
    let permit = acquire_archive_permit(&context)?;
    let (sender, receiver) = mpsc::channel(ARCHIVE_CHUNKS_MAX);
    let (start, started) = oneshot::channel();
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || {
        let AdminRequestContext { workspace_admin, caller, .. } = context;
        let mut out = HttpArchiveChunkWriter { sender, runtime, chunk: Vec::new() };
        let mut start = Some(start);
        let mut on_start = |summary: WorkspaceExportStartInfo| {
            if let Some(start) = start.take() {
                drop(start.send(Ok(summary)));
            }
        };
        let result = workspace_admin.export_workspace(&caller, &name, &mut on_start, &mut out);
        match (result, start) {
            // The response has already started. The response is aborted, so that the client does not consider the
            // archive complete.
            (Err(_), None) => out.abort(),
            (Err(error), Some(start)) => drop(start.send(Err(error))),
            (Ok(()), _) => {}
        }
        drop(permit);
    });
    let aborted = HttpRejection::internal_error(
        "internal error: the export was aborted, so the archive is incomplete; export the workspace again",
    );
    let summary = started.await.map_err(|_| aborted)??;
    let mut response = Response::new(Body::from_stream(ReceiverStream::new(receiver)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, TAR_CONTENT_TYPE);
    headers.insert(header::CONTENT_DISPOSITION, TAR_DISPOSITION);
    headers.insert(OMITTED_FILES_HEADER, summary.omitted_files.into());
    Ok(response)
}

pub(super) async fn import_workspace(
    context: AdminRequestContext,
    WorkspaceNameInUrl(name): WorkspaceNameInUrl,
    RawQuery(query): RawQuery,
    body: Body,
) -> HttpResult {
    let permit = acquire_archive_permit(&context)?;
    let (sender, receiver) = mpsc::channel(ARCHIVE_CHUNKS_MAX);
    let (options, runtime) = (parse_query(query.as_deref()), Handle::current());
    let import = tokio::task::spawn_blocking(move || {
        let AdminRequestContext { workspace_admin, caller, .. } = context;
        let mut reader = ArchiveUploadReader { receiver, runtime, chunk: Bytes::new() };
        let result = workspace_admin.import_workspace(&caller, &name, options, &mut reader);
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
    Ok(errors::json_response(StatusCode::CREATED, &created))
}

struct HttpArchiveChunkWriter {
    sender: mpsc::Sender<ArchiveChunk>,
    runtime: Handle,
    chunk: Vec<u8>,
}

impl HttpArchiveChunkWriter {
    fn send_chunk(&self, chunk: ArchiveChunk) -> io::Result<()> {
        match self.runtime.block_on(timeout(BODY_READ_TIMEOUT, self.sender.send(chunk))) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// An aborted export closes the connection before the archive is complete.
    fn abort(&self) {
        drop(self.send_chunk(Err(io::ErrorKind::Interrupted.into())));
    }
}

impl Write for HttpArchiveChunkWriter {
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

struct ArchiveUploadReader {
    receiver: mpsc::Receiver<ArchiveChunk>,
    runtime: Handle,
    chunk: Bytes,
}

impl Read for ArchiveUploadReader {
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
