//! Files of an editor that offers them itself: it holds text that is not saved yet, so a read is answered with its text,
//! and a write goes to it. Whether something may be read or written is settled here first, and recorded.
//!
//! Promises that the editor is asked for nothing outside the session's roots and for nothing that the policy refuses, and
//! that what its person typed since the session read the file is merged or the write is refused.

use engine::{Kind, Making, Version};
use serde_json::{Value, json};
use text::merge::{Merged, merge};

use super::{
    files::{self, Errand, conflict},
    session::{Seen, Standing},
    setup::Offer,
    sorry::Sorry,
};
use crate::dialect::{
    Request,
    acp::{self, READ, WRITE},
};

/// What is on disk where the editor may hold something newer.
struct OnDisk {
    version: Version,
    /// Its text, if it is UTF-8.
    text: Option<String>,
}

impl Errand<'_> {
    /// The text that the editor holds, remembered as what the agent knows.
    pub(super) async fn read_of_editor(&self) -> Result<String, Sorry> {
        let began = self.session.mark(&self.spot);
        let on_disk = self.on_disk().await?;
        let text = match (self.text_of_editor().await?, &on_disk) {
            (Ok(text), _) => text,
            (Err(error), Some(_)) => return Err(Sorry::of_editor(error)),
            // Editors differ in what they call a file that is not there; agents must not have to guess.
            (Err(_), None) => {
                self.session.remember_read(&self.spot, began, Seen::Absent);
                return Err(Sorry::no_file(&self.path));
            }
        };
        let left = on_disk.map_or_else(|| Version::of(b""), |on_disk| on_disk.version);
        let seen = Seen::Text { text: text.as_str().into(), left, standing: Standing::Same };
        self.session.remember_read(&self.spot, began, seen);
        Ok(text)
    }

    /// Has the editor write, once that is allowed.
    pub(super) async fn write_by_editor(&self, content: String) -> Result<(), Sorry> {
        let _turn = self.session.turn(&self.spot).await;
        let seen = self.session.seen(&self.spot);
        let ours = self.formed(content, seen.as_ref());
        let theirs = self.theirs().await?;
        let whole = match (&seen, &theirs) {
            (Some(Seen::Text { text, .. }), Some(theirs)) if **text != **theirs => {
                self.joined(text, &ours, theirs)?
            }
            (Some(Seen::Absent), Some(theirs)) if !theirs.is_empty() => self.joined("", &ours, theirs)?,
            (Some(Seen::Text { .. } | Seen::Absent) | None, _) => ours.clone(),
        };
        self.allow(&whole, theirs.as_deref()).await?;
        let params = json!({ "sessionId": self.session.id, "path": self.absolute()?, "content": whole });
        // The result is an empty object, or null from older editors.
        self.request(WRITE, &params).await?.map_err(Sorry::of_editor)?;
        let standing = if whole == ours { Standing::Same } else { Standing::Merged };
        self.know(&ours, Version::of(whole.as_bytes()), standing);
        Ok(())
    }

    /// What the file holds for whoever looks at it now: the editor's text, or what is on disk where it shows none.
    async fn theirs(&self) -> Result<Option<String>, Sorry> {
        let on_disk = self.on_disk().await?;
        match self.proxy.router.editor().reads {
            Offer::Yes => Ok(self.text_of_editor().await?.ok()),
            Offer::No => Ok(on_disk.and_then(|on_disk| on_disk.text)),
        }
    }

    /// What is on disk; nothing where nothing is. This is also where a read is allowed and recorded.
    async fn on_disk(&self) -> Result<Option<OnDisk>, Sorry> {
        match self.call(acp::read(&self.spot.wire)).await? {
            Ok(answer) => {
                let version = files::version(&answer);
                Ok(Some(OnDisk { version, text: acp::text(answer).ok() }))
            }
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

    /// Settles whether the write may be, and records it.
    async fn allow(&self, whole: &str, theirs: Option<&str>) -> Result<(), Sorry> {
        let request = || {
            let Request { operation, arguments, mut terms } =
                acp::write(&self.spot.wire, whole.to_owned(), None, self.proxy.options.endings);
            terms.making = Making::Elsewhere;
            Request { operation, arguments, terms }
        };
        let outcome = match self.call(request()).await? {
            Err(failure) if matches!(failure.kind, Kind::ApprovalPending | Kind::ApprovalStale) => {
                self.ask(&failure, theirs, whole).await?;
                self.call(request()).await?
            }
            other => other,
        };
        outcome.map(|_| ()).map_err(|failure| Sorry::of(&failure, &self.path))
    }

    fn joined(&self, known: &str, ours: &str, theirs: &str) -> Result<String, Sorry> {
        match merge(known, ours, theirs) {
            Merged::Clean(whole) => Ok(whole),
            Merged::Conflict(places) => Err(conflict(&self.path, &places)),
        }
    }

    fn absolute(&self) -> Result<String, Sorry> {
        self.session.absolute(&self.spot).ok_or_else(|| Sorry::no_file(&self.path))
    }
}
