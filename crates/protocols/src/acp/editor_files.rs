//! File methods for an editor that offers ACP file methods itself. The editor may have unsaved text, so reads return
//! the editor's text, and the editor applies writes. The engine checks and records each access before the proxy sends a
//! request to the editor. The engine merges or refuses a write if the person has typed text since the session read the
//! file.

use std::sync::Arc;

use serde_json::{Value, json};
use stead_engine::{ChangeApplierChoice, ErrorKind};

use super::{
    errors::AcpError,
    files::AcpRunningFileCall,
    session::LastSeenContent,
    text_format::{AcpWriteAdjustments, WriteFormatPolicy},
};
use crate::dialect::acp::{self, READ_METHOD, WRITE_METHOD};

/// The text of a file on disk, or an error if the file is not UTF-8. The text on disk may be older than the unsaved
/// text in the editor.
struct DiskText(Result<String, AcpError>);

impl AcpRunningFileCall<'_> {
    pub(super) async fn read_from_editor(&self) -> Result<String, AcpError> {
        let revision = self.session.seen_revision(&self.resolved_path);
        let on_disk = self.read_disk_text().await?;
        let text = match (self.request_editor_text().await?, &on_disk) {
            // The editor has replaced bytes that it cannot decode. A later write would store the replacements in the
            // file.
            (Ok(text), Some(DiskText(Err(error)))) if text.contains('\u{fffd}') => return Err(error.clone()),
            (Ok(text), _) => text,
            (Err(error), Some(_)) => return Err(AcpError::from_editor(error)),
            // Editors use different errors for a missing file. The agent always gets the same error.
            (Err(_), None) => {
                self.session.remember_read(&self.resolved_path, revision, LastSeenContent::Missing);
                return Err(AcpError::file_not_found(&self.requested_path));
            }
        };
        self.session.remember_read(&self.resolved_path, revision, LastSeenContent::Text(text.as_str().into()));
        Ok(text)
    }

    pub(super) async fn write_through_editor(
        &self,
        content: &str,
        format: WriteFormatPolicy,
    ) -> Result<AcpWriteAdjustments, AcpError> {
        let _guard = self.session.lock_for_write(&self.resolved_path).await;
        let editor_text: Option<Arc<str>> = self.current_text().await?.map(Arc::from);
        let outcome =
            self.write_with_approval(content, format, &ChangeApplierChoice::Editor(editor_text.clone())).await?;
        let merged = outcome.before_after.first().and_then(|bytes| bytes.after.clone()).unwrap_or_default();
        let merged = String::from_utf8(merged)
            .map_err(|_| AcpError::internal_error("io_error: the merged text is not valid UTF-8"))?;
        self.write_in_editor(&merged).await?;
        self.session.editor_writes().record(&self.resolved_path, editor_text, merged.into());
        self.session.remember(&self.resolved_path, LastSeenContent::Text(content.into()));
        Ok(AcpWriteAdjustments::from_reply(content, &outcome))
    }

    pub(super) async fn write_in_editor(&self, text: &str) -> Result<(), AcpError> {
        let params = json!({ "sessionId": self.session.id, "path": self.absolute_path()?, "content": text });
        // The result contains no data: it is an empty object, or null from an older editor.
        self.request_editor(WRITE_METHOD, &params).await?.map(|_| ()).map_err(AcpError::from_editor)
    }

    /// Returns the editor's text of a file, or the text on disk if the editor offers no read method.
    pub(super) async fn current_text(&self) -> Result<Option<String>, AcpError> {
        let on_disk = self.read_disk_text().await?;
        if self.proxy.router.editor_capabilities().read_text_file {
            return Ok(self.request_editor_text().await?.ok());
        }
        Ok(on_disk.and_then(|on_disk| on_disk.0.ok()))
    }

    /// The engine authorizes and records the read of a file's text on disk. The text on disk is `None` if the file does
    /// not exist.
    async fn read_disk_text(&self) -> Result<Option<DiskText>, AcpError> {
        match self.call_engine(acp::read_call(&self.resolved_path.engine_path)).await? {
            Ok(outcome) => Ok(Some(DiskText(acp::outcome_text(outcome)))),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(acp::read_error(&error, &self.requested_path)),
        }
    }

    async fn request_editor_text(&self) -> Result<Result<String, Value>, AcpError> {
        let params = json!({ "sessionId": self.session.id, "path": self.absolute_path()? });
        let mut response = match self.request_editor(READ_METHOD, &params).await? {
            Ok(response) => response,
            Err(error) => return Ok(Err(error)),
        };
        match response["content"].take() {
            Value::String(text) => Ok(Ok(text)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Err(AcpError::internal_error("io_error: the editor's response has no content"))
            }
        }
    }

    fn absolute_path(&self) -> Result<String, AcpError> {
        self.session.absolute_path(&self.resolved_path).ok_or_else(|| AcpError::file_not_found(&self.requested_path))
    }
}
