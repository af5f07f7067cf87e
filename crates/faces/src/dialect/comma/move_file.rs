//! `move_file`: a file whose version was seen gets another name. What it replaces lies in the trash afterwards.

use engine::{Answer, Parents, Replaced, Terms};
use serde_json::{Map, Value, json};

use super::{
    Scene,
    envelope::{Envelope, Fields, Sorry},
    place, sorry,
};

/// What is wrong with a move before anything is looked at.
pub(super) fn objection(scene: &Scene<'_>) -> Option<Sorry> {
    let (from, to) = (scene.asked.text("fromPath"), scene.asked.text("toPath"));
    if let Some(given) = scene.outside() {
        return Some(sorry::outside(scene, given));
    }
    let message = "fromPath and toPath are identical — nothing to move.";
    (from == to).then(|| Sorry::new("command_failed", message).at(from))
}

pub(super) fn moving(scene: &Scene<'_>, terms: Terms) -> (Map<String, Value>, Terms) {
    let asked = &scene.asked;
    let arguments = json!({
        "from": asked.text("fromPath"),
        "to": asked.text("toPath"),
        "base": asked.text("expectedSha256"),
        "overwrite": asked.is_set("overwrite"),
    });
    (super::object(arguments), Terms { parents: Parents::Required, replaced: Replaced::Trashed, ..terms })
}

pub(super) fn moved(scene: &Scene<'_>, answer: &Answer) -> Envelope {
    let (from, to) = (scene.asked.text("fromPath"), scene.asked.text("toPath"));
    let sha256 = answer.json.get("version").and_then(Value::as_str).unwrap_or_default();
    let size = answer.json.get("bytes").and_then(Value::as_u64).unwrap_or_default();
    let handle = answer.json.get("trash").and_then(Value::as_str).map(|id| place::handle(id, to));
    let note = handle
        .as_ref()
        .map_or_else(String::new, |handle| format!(" (replaced existing file, trashed to {handle})"));
    let data = Fields::new()
        .with("moved", true)
        .with("fromPath", from)
        .with("toPath", to)
        .with("sha256", sha256)
        .with("sizeBytes", size)
        .maybe("overwroteTrashedTo", handle);
    Envelope::done(format!("Moved {from} → {to} (sha256 {sha256}){note}"), data)
}
