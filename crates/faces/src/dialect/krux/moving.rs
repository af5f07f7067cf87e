//! What takes something from one place to another: into the trash and back, to a copy, to a new name.

use engine::{Answer, Extent, Failure, Occupied, Parents, Terms};
use serde_json::{Value, json};

use super::{
    super::{
        Request,
        handle::{handle, trash_id},
    },
    Scene,
    asked::misfit,
    files::{number, place},
    object, spot,
    tool::Moving,
};

/// The engine's call for what takes something from one place to another.
pub(super) fn request(scene: &Scene<'_>, moving: Moving, terms: Terms) -> Result<Request, Failure> {
    let asked = &scene.asked;
    let occupied = if asked.is_set("overwrite") { Occupied::MakesWay } else { Occupied::Stays };
    let terms = Terms { parents: Parents::Required, extent: Extent::Files, occupied, ..terms };
    let (operation, arguments) = match moving {
        Moving::Delete => ("remove", json!({ "path": spot::whole("path", asked.text("path"))? })),
        Moving::Restore => {
            let trash = match (asked.maybe("trash_path"), asked.maybe("original_path")) {
                (Some(trash), None) => trash_id(trash),
                (None, Some(original)) => spot::whole("original_path", original)?,
                (Some(_), Some(_)) => return Err(misfit("original_path", "excludes trash_path")),
                (None, None) => return Err(misfit("trash_path", "or original_path is required")),
            };
            let mut arguments = json!({ "trash": trash });
            if let Some(to) = asked.maybe("destination") {
                arguments["to"] = spot::whole("destination", to)?.into();
            }
            ("restore", arguments)
        }
        Moving::Copy | Moving::Move => {
            let from = spot::whole("source", asked.text("source"))?;
            let to = spot::whole("destination", asked.text("destination"))?;
            let spots = &scene.krux.spots;
            if spots.meant(from).is_some_and(|from| spots.meant(to) == Some(from)) {
                return Err(misfit("destination", "is the source itself"));
            }
            let operation = if moving == Moving::Move { "move" } else { "copy" };
            (operation, json!({ "from": from, "to": to, "overwrite": asked.is_set("overwrite") }))
        }
    };
    Ok(Request { operation: operation.to_owned(), arguments: object(arguments), terms })
}

/// What those answer.
pub(super) fn told(scene: &Scene<'_>, moving: Moving, answer: &Answer) -> Value {
    let fact = |name: &str| answer.json.get(name).and_then(Value::as_str).unwrap_or_default();
    let path = place(scene, answer, "path");
    match moving {
        Moving::Delete => json!({
            "deleted_path": path,
            "trash_path": handle(fact("trash"), fact("path")),
            "recoverable_until": fact("recoverable_until"),
        }),
        Moving::Restore => {
            let mut restored = json!({
                "restored_path": path,
                "trash_path": handle(fact("trash"), fact("from")),
                "original_path": place(scene, answer, "from"),
                "size": number(answer, "bytes"),
            });
            if let Some(version) = answer.json.get("version") {
                restored["checksum"] = version.clone();
            }
            if answer.json.contains_key("replaced") {
                restored["replaced_trash_path"] = handle(fact("replaced"), fact("path")).into();
            }
            restored
        }
        Moving::Move => json!({
            "source": place(scene, answer, "from"), "destination": path, "size": number(answer, "bytes"),
        }),
        Moving::Copy => json!({
            "source": place(scene, answer, "from"),
            "destination": path,
            "size": number(answer, "size"),
            "checksum": answer.json.get("version"),
        }),
    }
}
