//! A write that needs a person's yes, put before the editor's person. The agent has no part in it: the question goes to
//! the editor, and the answer comes from there. An answer counts where the operator let the client answer, and only for
//! the exact plan that was asked about.

use engine::{Asking, Failure, Kind, Say, index::text_of};
use serde_json::{Value, json};

use super::{files::Errand, message, own::Said, router::CANCEL_REQUEST, sorry::Sorry};
use crate::limits::{QUESTION_DIFF_BYTES_MAX, QUESTION_WAIT};

/// The method that asks a person.
const REQUEST_PERMISSION: &str = "session/request_permission";

/// What a person can choose. The ids are the kinds, so that one is never taken for another.
const OPTIONS: &[(&str, &str)] = &[
    ("allow_once", "Allow this write"),
    ("allow_always", "Always allow writing this file"),
    ("reject_once", "Refuse this write"),
    ("reject_always", "Refuse every write of this file in this session"),
];

/// What a person chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
}

impl Errand<'_> {
    /// Asks. Returns once the write may be tried again.
    pub(super) async fn ask(&self, failure: &Failure) -> Result<(), Sorry> {
        let engine = self.root()?.runner.engine().clone();
        let id = failure.facts.get("approval").and_then(Value::as_str);
        let Some(id) = id.filter(|_| engine.how_it_asks() == Asking::Client) else {
            return Err(Sorry::of(failure, &self.path));
        };
        let choice = if self.session.rejects(&self.spot) {
            Choice::RejectAlways
        } else {
            self.chosen(failure).await?
        };
        let say = match choice {
            Choice::AllowOnce | Choice::AllowAlways => Say::Yes,
            Choice::RejectOnce | Choice::RejectAlways => Say::No,
        };
        if choice == Choice::RejectAlways {
            self.session.reject(&self.spot);
        }
        let (caller, approval) = (self.root()?.caller.clone(), id.to_owned());
        let ground = self.proxy.ground.clone();
        let answered = tokio::task::spawn_blocking(move || {
            // The rule first: once the answer is there the question is no longer open.
            let kept = match choice {
                Choice::AllowAlways => ground.always(&engine, &approval),
                Choice::AllowOnce | Choice::RejectOnce | Choice::RejectAlways => Ok(()),
            };
            engine.answer_by_client(&caller, &approval, say).and(kept)
        });
        match (say, answered.await) {
            (Say::Yes, Ok(Ok(()))) => Ok(()),
            (Say::Yes, Ok(Err(failure))) => Err(Sorry::of(&failure, &self.path)),
            (Say::Yes, Err(_)) => Err(Sorry::failed("io_error: the answer could not be recorded")),
            (Say::No, _) => {
                let refused =
                    Failure::new(Kind::ApprovalDenied, "the person at the editor refused this write")
                        .hint("nothing was changed; do it another way, or ask what they want instead");
                Err(Sorry::of(&refused, &self.path))
            }
        }
    }

    /// What the person chooses.
    async fn chosen(&self, failure: &Failure) -> Result<Choice, Sorry> {
        let text = |bytes: &Option<Vec<u8>>| Some(text_of(bytes.as_deref()?)?.into_owned());
        let held = failure.held();
        let (old, new) = held.map_or((None, None), |held| (text(&held.before), text(&held.after)));
        let params = self.question(failure, old.as_deref(), &new.unwrap_or_default());
        choice(self.request(REQUEST_PERMISSION, &params).await?, failure, &self.path)
    }

    /// A request of ours to the editor, and what it says.
    pub(super) async fn request(&self, method: &str, params: &Value) -> Result<Said, Sorry> {
        let cancelling = self.session.cancelling();
        let Some(waiting) = self.proxy.router.own.begin() else { return Err(Sorry::cancelled()) };
        self.proxy
            .editor
            .send(message::request(&waiting.id, method, params))
            .await
            .map_err(|_| Sorry::cancelled())?;
        let given_up = tokio::select! {
            said = waiting.said => return said.map_err(|_| Sorry::cancelled()),
            () = self.unwanted() => Sorry::cancelled(),
            () = cancelling => Sorry::cancelled(),
            () = tokio::time::sleep(QUESTION_WAIT) => Sorry::failed("deadline: the editor did not answer"),
        };
        self.proxy.router.own.forget(&waiting.id);
        let notice = message::notification(CANCEL_REQUEST, &json!({ "requestId": waiting.id }));
        // An editor that is gone needs no notice.
        drop(self.proxy.editor.send(notice).await);
        Err(given_up)
    }

    fn question(&self, failure: &Failure, old: Option<&str>, new: &str) -> Value {
        let size = old.map_or(0, str::len) + new.len();
        let shown = if size <= QUESTION_DIFF_BYTES_MAX {
            let mut diff = json!({ "type": "diff", "path": self.path, "newText": new });
            if let Some(old) = old {
                diff["oldText"] = old.into();
            }
            diff
        } else {
            let text =
                format!("{} bytes in place of {}; too much to show", new.len(), old.map_or(0, str::len));
            json!({ "type": "content", "content": { "type": "text", "text": text } })
        };
        let options =
            OPTIONS.iter().map(|(kind, name)| json!({ "optionId": kind, "name": name, "kind": kind }));
        let approval = failure.facts.get("approval").and_then(Value::as_str).unwrap_or_default();
        json!({
            "sessionId": self.session.id,
            "toolCall": {
                "toolCallId": format!("stead-{approval}"),
                "title": format!("Write {}", self.path),
                "kind": "edit",
                "status": "pending",
                "content": [shown],
                "locations": [{ "path": self.path }],
            },
            "options": options.collect::<Vec<_>>(),
        })
    }
}

/// What the editor's answer means. Whatever is not one of the four is no yes.
fn choice(said: Said, failure: &Failure, path: &str) -> Result<Choice, Sorry> {
    let Ok(result) = said else { return Err(Sorry::of(failure, path)) };
    let outcome = &result["outcome"];
    match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
        (Some("selected"), Some("allow_once")) => Ok(Choice::AllowOnce),
        (Some("selected"), Some("allow_always")) => Ok(Choice::AllowAlways),
        (Some("selected"), Some("reject_once")) => Ok(Choice::RejectOnce),
        (Some("selected"), Some("reject_always")) => Ok(Choice::RejectAlways),
        (Some("cancelled"), _) => Err(Sorry::cancelled()),
        (_, _) => Err(Sorry::of(failure, path)),
    }
}
