//! `delete_file` and `restore_file`: what is deleted lies in the trash under a handle, and comes back by it. A link is
//! deleted itself, never what it leads to; only our own trash is ever looked into.

use engine::{Answer, Removable, Retention, Terms};
use serde_json::{Map, Value, json};

use super::{
    Scene, difference,
    envelope::{Envelope, Fields},
    place, writing,
};

pub(super) fn deleting(scene: &Scene<'_>, terms: Terms) -> (Map<String, Value>, Terms) {
    let mut arguments = super::object(json!({ "path": scene.spot() }));
    if let Some(hash) = scene.asked.text_maybe("expectedSha256") {
        arguments.insert("base".to_owned(), hash.into());
    }
    let retention = if scene.asked.is_set("permanent") { Retention::None } else { Retention::OfPrincipal };
    (arguments, Terms { removable: Removable::NoDirectories, retention, ..terms })
}

pub(super) fn deleted(scene: &Scene<'_>, answer: &Answer) -> Envelope {
    let path = scene.spot();
    let before = difference::held(answer).and_then(|held| held.before.as_deref());
    let size = answer.json.get("bytes").and_then(Value::as_u64).unwrap_or_default();
    let sha256 = match before {
        Some(bytes) => Some(writing::sha256(bytes)),
        None => scene.asked.text_maybe("expectedSha256").map(str::to_owned),
    };
    let data = Fields::new()
        .with("deleted", true)
        .with("path", path)
        .maybe("beforeSha256", sha256.clone())
        .with("sizeBytes", size)
        .with("diff", difference::exact(path, before, None));
    if scene.asked.is_set("permanent") {
        let told = sha256.map_or_else(String::new, |sha256| format!(", sha256 {sha256}"));
        return Envelope::done(
            format!("Permanently deleted {path} ({size} bytes{told})"),
            data.with("permanent", true),
        );
    }
    let id = answer.json.get("trash").and_then(Value::as_str).unwrap_or_default();
    let handle = place::handle(id, path);
    Envelope::done(
        format!("Deleted {path} ({size} bytes, trashed to {handle})"),
        data.with("permanent", false).with("trashedTo", handle),
    )
}

pub(super) fn restoring(scene: &Scene<'_>, terms: Terms) -> (Map<String, Value>, Terms) {
    let id = place::trash_id(scene.asked.text("trashedPath"));
    let mut arguments = super::object(json!({ "trash": id }));
    if let Some(to) = scene.asked.text_maybe("targetPath") {
        arguments.insert("to".to_owned(), to.into());
    }
    (arguments, terms)
}

pub(super) fn restored(scene: &Scene<'_>, answer: &Answer) -> Envelope {
    let handle = scene.asked.text("trashedPath");
    let place = answer.json.get("path").and_then(Value::as_str).unwrap_or_default();
    let path = scene.asked.text_maybe("targetPath").unwrap_or(place);
    let size = answer.json.get("bytes").and_then(Value::as_u64).unwrap_or_default();
    let data =
        Fields::new().with("restored", true).with("path", path).with("from", handle).with("sizeBytes", size);
    let whole = place::absolute(scene.workspace, path);
    Envelope::done(format!("Restored {handle} to {whole} ({size} bytes)"), data)
}
