//! Files of an editor that offers them itself: it holds text that is not saved yet, so a read is answered with its text,
//! and a write goes to it. Whether something may be read or written is settled here first, and recorded.
//!
//! Promises that the editor is asked for nothing outside the session's roots and for nothing that the policy refuses, and
//! that what its person typed since the session read the file is merged by the engine or the write is refused.

use std::sync::Arc;

use engine::{Kind, Making};
use serde_json::{Value, json};

use super::{
    files::Errand,
    form::{Keeping, Written},
    session::Seen,
    setup::Offer,
    sorry::Sorry,
};
use crate::dialect::acp::{self, READ, WRITE};

/// What is on disk where the editor may hold something newer: its text, or that it is not UTF-8.
struct OnDisk(Result<String, Sorry>);

impl Errand<'_> {
    /// The text that the editor holds, remembered as what the agent knows.
    pub(super) async fn read_of_editor(&self) -> Result<String, Sorry> {
        let began = self.session.mark(&self.spot);
        let on_disk = self.on_disk().await?;
        let text = match (self.text_of_editor().await?, &on_disk) {
            // Such an editor put substitutes for what it could not read: written back, they would be in the file.
            (Ok(text), Some(OnDisk(Err(sorry)))) if text.contains('\u{fffd}') => return Err(sorry.clone()),
            (Ok(text), _) => text,
            (Err(error), Some(_)) => return Err(Sorry::of_editor(error)),
            // Editors differ in what they call a file that is not there; agents must not have to guess.
            (Err(_), None) => {
                self.session.remember_read(&self.spot, began, Seen::Absent);
                return Err(Sorry::no_file(&self.path));
            }
        };
        self.session.remember_read(&self.spot, began, Seen::Text(text.as_str().into()));
        Ok(text)
    }

    /// Has the editor write what the engine made of it, once that is allowed and recorded.
    pub(super) async fn write_by_editor(&self, content: &str, keeping: Keeping) -> Result<Written, Sorry> {
        let _turn = self.session.turn(&self.spot).await;
        let theirs: Option<Arc<str>> = self.theirs().await?.map(Arc::from);
        let answer = self.put(content, keeping, &Making::Elsewhere(theirs.clone())).await?;
        let whole = answer.evidence.first().and_then(|held| held.after.clone()).unwrap_or_default();
        let whole =
            String::from_utf8(whole).map_err(|_| Sorry::failed("io_error: the merged text is broken"))?;
        self.give(&whole).await?;
        self.session.made().record(&self.spot, theirs, whole.into());
        self.session.remember(&self.spot, Seen::Text(content.into()));
        Ok(Written::of(content, &answer))
    }

    /// Has the editor write a text.
    pub(super) async fn give(&self, whole: &str) -> Result<(), Sorry> {
        let params = json!({ "sessionId": self.session.id, "path": self.absolute()?, "content": whole });
        // The result is an empty object, or null from older editors.
        self.request(WRITE, &params).await?.map(|_| ()).map_err(Sorry::of_editor)
    }

    /// What the file holds for whoever looks at it now: the editor's text, or what is on disk where it shows none.
    pub(super) async fn theirs(&self) -> Result<Option<String>, Sorry> {
        let on_disk = self.on_disk().await?;
        match self.proxy.router.editor().reads {
            Offer::Yes => Ok(self.text_of_editor().await?.ok()),
            Offer::No => Ok(on_disk.and_then(|on_disk| on_disk.0.ok())),
        }
    }

    /// What is on disk; nothing where nothing is. This is also where a read is allowed and recorded.
    async fn on_disk(&self) -> Result<Option<OnDisk>, Sorry> {
        match self.call(acp::read(&self.spot.wire)).await? {
            Ok(answer) => Ok(Some(OnDisk(acp::text(answer)))),
            Err(failure) if failure.kind == Kind::NotFound => Ok(None),
            Err(failure) => Err(acp::unread(&failure, &self.path)),
        }
    }

    /// The whole text that the editor holds, or its error.
    async fn text_of_editor(&self) -> Result<Result<String, Value>, Sorry> {
        let params = json!({ "sessionId": self.session.id, "path": self.absolute()? });
        let mut said = match self.request(READ, &params).await? {
            Ok(said) => said,
            Err(error) => return Ok(Err(error)),
        };
        match said["content"].take() {
            Value::String(text) => Ok(Ok(text)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Err(Sorry::failed("io_error: the editor answered without a text"))
            }
        }
    }

    fn absolute(&self) -> Result<String, Sorry> {
        self.session.absolute(&self.spot).ok_or_else(|| Sorry::no_file(&self.path))
    }
}
