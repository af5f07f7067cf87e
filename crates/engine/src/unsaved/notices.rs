//! Notices about unsaved text in an outcome: both versions beside the named one, and a line of text. Uses only what
//! the call has read.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use stead_path::RelPath;
use stead_text::visible::escape_deceptive_line;

use super::{BufferVersions, UnsavedFile};
use crate::{buffers::Buffer, call_context::CallContext, engine::CallOutcome, operation::ResolvedTarget};

const UNSAVED_FIELD: &str = "unsaved";
const NOTICES_FIELD: &str = "notices";

/// A file whose unsaved and saved versions an outcome must distinguish.
#[derive(Debug, Clone)]
pub(crate) struct UnsavedNotice {
    pub(crate) path: RelPath,
    pub(crate) owner: String,
    pub(crate) versions: BufferVersions,
    pub(crate) access: UnsavedAccess,
}

/// Whether a call read or wrote unsaved text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnsavedAccess {
    Read,
    Written,
}

impl From<&Arc<UnsavedFile>> for UnsavedNotice {
    fn from(unsaved: &Arc<UnsavedFile>) -> Self {
        let (buffer, saved) = (&unsaved.buffer, unsaved.saved_version.version);
        let versions = BufferVersions { saved, unsaved: buffer.version };
        Self { path: buffer.path.clone(), owner: buffer.owner.clone(), versions, access: UnsavedAccess::Read }
    }
}

impl UnsavedNotice {
    pub(crate) fn to_json(&self) -> Value {
        json!({ "saved": self.versions.saved.to_string(), "text": self.versions.unsaved.to_string() })
    }
}

/// Adds notices about unsaved text that the call read or wrote, and about drafts of its targets.
pub(crate) fn add_unsaved_notices(
    context: &CallContext<'_>,
    targets: &[ResolvedTarget],
    written: &[UnsavedNotice],
    outcome: &mut CallOutcome,
) {
    let used = context.unsaved_files_read();
    let read =
        used.iter().map(UnsavedNotice::from).filter(|read| !written.iter().any(|notice| notice.path == read.path));
    for notice in written.iter().cloned().chain(read) {
        if context.may_read(&notice.path) && mark_versions(&mut outcome.json, &notice) {
            append_line(outcome, &format!("[unsaved: {} has unsaved text in {}]", notice.owner, notice.path));
        }
    }
    for target in targets {
        // If the lookup fails, the next call reports the drafts.
        for draft in context.drafts(&target.path).unwrap_or_default() {
            if context.may_read(&target.path) {
                let notice = draft_notice(&draft);
                append_line(outcome, &format!("[{notice}]"));
                add_notice(&mut outcome.json, notice);
            }
        }
    }
}

fn draft_notice(draft: &Buffer) -> String {
    format!(
        "the editor of {} disconnected with unsaved changes to {}; they are available as draft {}",
        draft.owner, draft.path, draft.id
    )
}

fn append_line(outcome: &mut CallOutcome, text: &str) {
    if !outcome.text.is_empty() && !outcome.text.ends_with('\n') {
        outcome.text.push('\n');
    }
    outcome.text.push_str(&escape_deceptive_line(text));
}

fn add_notice(fields: &mut Map<String, Value>, notice: String) {
    match fields.get_mut(NOTICES_FIELD) {
        Some(Value::Array(notices)) => notices.push(notice.into()),
        Some(_) | None => drop(fields.insert(NOTICES_FIELD.to_owned(), vec![notice].into())),
    }
}

/// Marks every mention of the version; returns whether there was one.
fn mark_versions(fields: &mut Map<String, Value>, notice: &UnsavedNotice) -> bool {
    let text = notice.versions.unsaved.to_string();
    let mut marked = false;
    let names_it = fields.get("version").and_then(Value::as_str) == Some(text.as_str());
    let is_path = fields.get("path").and_then(Value::as_str).map(|path| path == notice.path.to_string());
    if (names_it && is_path != Some(false)) || (is_path == Some(true) && fields.contains_key("hits")) {
        fields.insert(UNSAVED_FIELD.to_owned(), notice.to_json());
        // The entry recorded the saved version; the next base is the unsaved text.
        if notice.access == UnsavedAccess::Written && fields.contains_key("rev") {
            fields.insert("rev".to_owned(), notice.versions.unsaved.short_form().into());
        }
        marked = true;
    }
    for value in fields.values_mut() {
        marked |= match value {
            Value::Object(inner) => mark_versions(inner, notice),
            Value::Array(items) => {
                let objects = items.iter_mut().filter_map(Value::as_object_mut);
                // Marks all of them, not only the first.
                objects.map(|inner| mark_versions(inner, notice)).filter(|marked| *marked).count() > 0
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        };
    }
    marked
}
