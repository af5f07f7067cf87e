//! `create_file` and `write_file`: a new file, or new content for one whose version was seen.

use engine::{Answer, Form, Parents, Terms, Version};
use serde_json::{Map, Value, json};

use super::{
    Origin, Scene, difference,
    envelope::{Envelope, Fields},
};

/// The engine's arguments for a new file: nothing may be there.
pub(super) fn creating(scene: &Scene<'_>, terms: Terms) -> (Map<String, Value>, Terms) {
    let asked = &scene.asked;
    // The origin's code does not know `createParents`; its document does.
    let other_name = scene.origin == Origin::Stricter && asked.is_set("createParents");
    let made = asked.is_set("createParentDirectories") || other_name;
    let parents = if made { Parents::Made } else { Parents::Required };
    let arguments = json!({ "path": scene.spot(), "content": asked.text("content"), "base": "" });
    (super::object(arguments), Terms { parents, ..terms })
}

pub(super) fn created(scene: &Scene<'_>, answer: &Answer) -> Envelope {
    let path = scene.spot();
    let after = difference::held(answer).and_then(|held| held.after.as_deref());
    let (sha256, size) = version_and_size(answer);
    let data = Fields::new()
        .with("created", true)
        .with("path", path)
        .with("sha256", sha256)
        .with("sizeBytes", size)
        .with("diff", difference::exact(path, None, after));
    Envelope::done(format!("Created {path} ({size} bytes, sha256 {sha256})"), data)
}

/// The engine's arguments for new content.
pub(super) fn writing(scene: &Scene<'_>, terms: Terms) -> (Map<String, Value>, Terms) {
    let asked = &scene.asked;
    let arguments = json!({ "path": scene.spot(), "content": asked.text("content"), "base": asked.text("expectedSha256") });
    (super::object(arguments), Terms { form: Form::OfReplaced, ..terms })
}

pub(super) fn written(scene: &Scene<'_>, answer: &Answer) -> Envelope {
    let path = scene.spot();
    let held = difference::held(answer);
    let (before, after) = held.map_or((None, None), |held| (held.before.as_deref(), held.after.as_deref()));
    let (sha256, size) = version_and_size(answer);
    let data = Fields::new()
        .with("path", path)
        .with("beforeSha256", scene.asked.text("expectedSha256"))
        .with("afterSha256", sha256)
        .with("sizeBytes", size)
        .with("diff", difference::plain(path, before, after));
    if answer.json.get("changed") == Some(&Value::Bool(false)) {
        return Envelope::done(format!("No change to {path} (content matched existing)"), data);
    }
    Envelope::done(format!("Wrote {path} ({size} bytes, sha256 {sha256})"), data)
}

/// The version and the length that an answer tells of a file.
pub(super) fn version_and_size(answer: &Answer) -> (&str, u64) {
    let version = answer.json.get("version").and_then(Value::as_str).unwrap_or_default();
    (version, answer.json.get("size").and_then(Value::as_u64).unwrap_or_default())
}

/// The sha256 of bytes.
pub(super) fn sha256(bytes: &[u8]) -> String {
    Version::of(bytes).to_string()
}
