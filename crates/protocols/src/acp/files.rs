//! The ACP file methods, served by the engine. A write of an agent is based on the file content that the session has
//! last seen. The engine merges or refuses a write if the file has changed since the session last saw the file.

use std::sync::Arc;

use serde_json::{Value, json};
use stead_engine::{CallReply, Caller, ChangeApplierChoice, ErrorKind, ops::WriteOutcome};
use tokio::sync::watch;

use super::{
    AcpProxy,
    errors::AcpError,
    review,
    router::{AcpFileCall, AcpFileMethod},
    session::{AcpResolvedPath, AcpSession, AcpSessionRootWithCallers, LastSeenContent},
    setup::not_absolute_error,
    text_format::{AcpWriteAdjustments, WriteFormatPolicy},
};
use crate::{
    call_executor::{CallRequest, OtherRequestsPending},
    dialect::acp::{self, AcpReadParams, AcpWriteParams},
    error_rows::{RetryAdvice, error_row},
    prepared_call::PreparedCall,
};

pub(super) struct AcpRunningFileCall<'p> {
    pub(super) proxy: &'p AcpProxy,
    pub(super) session: Arc<AcpSession>,
    pub(super) resolved_path: AcpResolvedPath,
    pub(super) requested_path: String,
    pub(super) cancelled: watch::Receiver<bool>,
}

pub(super) async fn serve_file_call(
    proxy: &AcpProxy,
    call: &AcpFileCall,
    cancelled: watch::Receiver<bool>,
) -> Result<Value, AcpError> {
    let invalid = |error: serde_json::Error| AcpError::invalid_params(error.to_string());
    match call.method {
        AcpFileMethod::Read => {
            let params: AcpReadParams = serde_json::from_slice(&call.params).map_err(invalid)?;
            let request = AcpRunningFileCall::new(proxy, &params.session_id, params.path, cancelled)?;
            let text = match proxy.router.editor_capabilities().read_text_file {
                true => request.read_from_editor().await?,
                false => request.read_text().await?,
            };
            Ok(json!({ "content": select_lines(&text, params.line, params.limit)? }))
        }
        AcpFileMethod::Write => {
            let params: AcpWriteParams = serde_json::from_slice(&call.params).map_err(invalid)?;
            let request = AcpRunningFileCall::new(proxy, &params.session_id, params.path, cancelled)?;
            let format = proxy.options.text_format.with_call_meta(params.meta.as_ref())?;
            let written = match proxy.router.editor_capabilities().write_text_file {
                true => request.write_through_editor(&params.content, format).await?,
                false => request.write_text(&params.content, format).await?,
            };
            Ok(written.to_json())
        }
    }
}

impl<'p> AcpRunningFileCall<'p> {
    fn new(
        proxy: &'p AcpProxy,
        session: &str,
        path: String,
        cancelled: watch::Receiver<bool>,
    ) -> Result<Self, AcpError> {
        let session = proxy.router.find_session(session).ok_or_else(|| AcpError::session_not_found(session))?;
        if !path.starts_with('/') {
            return Err(not_absolute_error(&path));
        }
        let resolved_path = session.resolve_path(&path).ok_or_else(|| AcpError::file_not_found(&path))?;
        Ok(Self { proxy, session, resolved_path, requested_path: path, cancelled })
    }

    async fn read_text(&self) -> Result<String, AcpError> {
        let revision = self.session.seen_revision(&self.resolved_path);
        let text = match self.call_engine(acp::read_call(&self.resolved_path.engine_path)).await? {
            Ok(call_outcome) => acp::outcome_text(call_outcome)?,
            Err(error) => {
                if error.kind == ErrorKind::NotFound {
                    self.session.remember_read(&self.resolved_path, revision, LastSeenContent::Missing);
                }
                return Err(acp::read_error(&error, &self.requested_path));
            }
        };
        self.session.remember_read(&self.resolved_path, revision, LastSeenContent::Text(text.as_str().into()));
        Ok(text)
    }

    async fn write_text(&self, content: &str, format: WriteFormatPolicy) -> Result<AcpWriteAdjustments, AcpError> {
        let _guard = self.session.lock_for_write(&self.resolved_path).await;
        let call_outcome = self.write_with_approval(content, format, &ChangeApplierChoice::Workspace).await?;
        self.session.remember(&self.resolved_path, LastSeenContent::Text(content.into()));
        Ok(AcpWriteAdjustments::from_reply(content, &call_outcome))
    }

    /// Lets the engine apply a write, or only plan the write if the editor applies writes. For a write that needs
    /// approval, the proxy asks the person at the editor and then repeats the engine call.
    pub(super) async fn write_with_approval(
        &self,
        content: &str,
        format: WriteFormatPolicy,
        applied_by: &ChangeApplierChoice,
    ) -> Result<CallReply<WriteOutcome>, AcpError> {
        let known_text = self.session.seen_content(&self.resolved_path).map(|seen| match seen {
            LastSeenContent::Missing => Arc::from(""),
            LastSeenContent::Text(text) => text,
        });
        let request = || {
            let (path, known_text) = (&self.resolved_path.engine_path, known_text.clone());
            let mut call = acp::write_call(path, content.to_owned(), format, known_text);
            call.options.applied_by = applied_by.clone();
            call
        };
        let outcome = match self.call_engine(request()).await? {
            Err(error) if error_row(error.kind).retry == RetryAdvice::AfterApproval => {
                self.request_permission(&error).await?;
                self.call_engine(request()).await?
            }
            other => other,
        };
        if let Err(error) = &outcome
            && error.kind == ErrorKind::Locked
            && self.proxy.router.wants_notices()
        {
            // A send error means that the editor has disconnected.
            drop(self.proxy.editor.send(review::lease_notification(&self.session, &self.requested_path, error)).await);
        }
        outcome.map_err(|error| AcpError::from_error(&error, &self.requested_path))
    }

    pub(super) async fn call_engine<T: Send + 'static>(&self, call: PreparedCall<T>) -> Result<T, AcpError> {
        self.call_engine_as(self.root()?.agent.clone(), call).await
    }

    pub(super) async fn call_engine_as<T: Send + 'static>(
        &self,
        caller: Caller,
        call: PreparedCall<T>,
    ) -> Result<T, AcpError> {
        let request = CallRequest::new(caller, call);
        // Forwarded messages must not wait for the disk. `OtherRequestsPending::Waiting` therefore makes every call run
        // on a thread, except the shortest calls.
        let call = self.root()?.executor.run(request, OtherRequestsPending::Waiting, None, |_| self.until_cancelled());
        let finished = call.await.map_err(|abort| AcpError::internal_error(format!("io_error: {abort}")))?;
        Ok(finished.reply)
    }

    pub(super) fn root(&self) -> Result<&AcpSessionRootWithCallers, AcpError> {
        self.session.root_of(&self.resolved_path).ok_or_else(|| AcpError::file_not_found(&self.requested_path))
    }

    pub(super) async fn until_cancelled(&self) {
        let mut cancelled = self.cancelled.clone();
        if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Selects up to `limit` lines of a file, starting at `line`. Lines are counted from 1, and line 0 means line 1. The
/// selected lines keep their terminators, so that consecutive selections together are the whole file. A text that ends
/// with a line terminator has an empty last line.
fn select_lines(text: &str, line: Option<u32>, limit: Option<u32>) -> Result<&str, AcpError> {
    let skipped = line.unwrap_or(1).saturating_sub(1) as usize;
    let start = offset_after_lines(text, skipped).ok_or_else(|| past_end_error(text))?;
    let rest = &text[start..];
    let end = limit.and_then(|limit| offset_after_lines(rest, limit as usize)).unwrap_or(rest.len());
    Ok(&rest[..end])
}

fn offset_after_lines(text: &str, count: usize) -> Option<usize> {
    if count == 0 {
        return Some(0);
    }
    memchr::memchr_iter(b'\n', text.as_bytes()).nth(count - 1).map(|index| index + 1)
}

/// The error for a start line beyond the end contains the number of the file's last line and its length in bytes.
fn past_end_error(text: &str) -> AcpError {
    let rows = memchr::memchr_iter(b'\n', text.as_bytes()).count() + 1;
    let column = text.len() - memchr::memrchr(b'\n', text.as_bytes()).map_or(0, |index| index + 1);
    AcpError::invalid_params(format!("Attempting to read beyond the end of the file, line {rows}:{column}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn consecutive_slices_rebuild_the_text(text in "[ab\\n\\r]{0,40}", step in 1_u32..5) {
            let mut whole = String::new();
            let mut line = 1;
            while let Ok(piece) = select_lines(&text, Some(line), Some(step)) {
                whole.push_str(piece);
                line += step;
            }
            prop_assert_eq!(whole, text);
        }
    }
}
