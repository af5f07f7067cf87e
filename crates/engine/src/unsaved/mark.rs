//! Saying in an answer that a file is not what is on disk: both versions beside the one that the answer names, and a line
//! for people. Owns the words; looks at nothing but what the call has seen.

use std::sync::Arc;

use path::RelPath;
use serde_json::{Map, Value, json};
use text::visible::visible_line;

use super::{Unsaved, Versions};
use crate::{buffers::Buffer, engine::Answer, operation::Target, view::View};

/// Where an object says that its version is not the one on disk.
const UNSAVED: &str = "unsaved";
/// Where an answer says what the caller should know.
const NOTICES: &str = "notices";

/// A file whose text and saved version an answer must tell apart.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) path: RelPath,
    pub(crate) owner: String,
    pub(crate) versions: Versions,
    pub(crate) by: By,
}

/// Whether a call found unsaved text or left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Reading,
    Writing,
}

impl From<&Arc<Unsaved>> for Mark {
    fn from(unsaved: &Arc<Unsaved>) -> Self {
        let (buffer, saved) = (&unsaved.buffer, unsaved.saved.version);
        let versions = Versions { saved, text: buffer.version };
        Self { path: buffer.path.clone(), owner: buffer.owner.clone(), versions, by: By::Reading }
    }
}

impl Mark {
    /// For machines.
    pub(crate) fn object(&self) -> Value {
        json!({ "saved": self.versions.saved.to_string(), "text": self.versions.text.to_string() })
    }
}

/// Marks an answer with what was seen or left of unsaved text, and with drafts of the files that it is about.
pub(crate) fn mark(view: &View<'_>, targets: &[Target], written: &[Mark], answer: &mut Answer) {
    let used = view.unsaved_used();
    let read = used.iter().map(Mark::from).filter(|read| !written.iter().any(|mark| mark.path == read.path));
    for mark in written.iter().cloned().chain(read) {
        if view.may_read(&mark.path) && tell(&mut answer.json, &mark) {
            line(answer, &format!("[unsaved: {} has unsaved text in {}]", mark.owner, mark.path));
        }
    }
    for target in targets {
        // What cannot be looked up now is told with the next answer.
        for draft in view.drafts(&target.path).unwrap_or_default() {
            if view.may_read(&target.path) {
                let notice = notice(&draft);
                line(answer, &format!("[{notice}]"));
                note(&mut answer.json, notice);
            }
        }
    }
}

fn notice(draft: &Buffer) -> String {
    format!("{} left unsaved text of {} behind, which is kept as draft {}", draft.owner, draft.path, draft.id)
}

fn line(answer: &mut Answer, text: &str) {
    if !answer.text.is_empty() && !answer.text.ends_with('\n') {
        answer.text.push('\n');
    }
    answer.text.push_str(&visible_line(text));
}

fn note(fields: &mut Map<String, Value>, notice: String) {
    match fields.get_mut(NOTICES) {
        Some(Value::Array(notices)) => notices.push(notice.into()),
        Some(_) | None => drop(fields.insert(NOTICES.to_owned(), vec![notice].into())),
    }
}

/// Puts the mark beside every mention of the version; says whether there was one.
fn tell(fields: &mut Map<String, Value>, mark: &Mark) -> bool {
    let text = mark.versions.text.to_string();
    let mut told = false;
    let names_it = fields.get("version").and_then(Value::as_str) == Some(text.as_str());
    let place = fields.get("path").and_then(Value::as_str).map(|path| path == mark.path.to_string());
    if (names_it && place != Some(false)) || (place == Some(true) && fields.contains_key("hits")) {
        fields.insert(UNSAVED.to_owned(), mark.object());
        // The entry left the saved version; the next base is the text.
        if mark.by == By::Writing && fields.contains_key("rev") {
            fields.insert("rev".to_owned(), mark.versions.text.short().into());
        }
        told = true;
    }
    for value in fields.values_mut() {
        told |= match value {
            Value::Object(inner) => tell(inner, mark),
            Value::Array(items) => {
                let objects = items.iter_mut().filter_map(Value::as_object_mut);
                // Every one of them is told, not only the first.
                objects.map(|inner| tell(inner, mark)).filter(|told| *told).count() > 0
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        };
    }
    told
}
