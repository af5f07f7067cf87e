//! Watches: what happens in a directory from now on is pushed where the face can push, and told by `session.events`.

use engine::{Answer, Failure, Terms};
use serde_json::{Map, Value, json};

use super::{
    super::Request,
    Scene,
    asked::misfit,
    object,
    spot::{self, Spots},
    tool::Watching,
};

/// The type of an event that a watch heard.
pub(super) const FILE_CHANGED: &str = "file_changed";
/// What can be chosen to be told.
const EVENT_TYPES: &[&str] = &["create", "modify", "delete", "rename"];

/// The engine's call.
pub(super) fn request(scene: &Scene<'_>, watching: Watching, terms: Terms) -> Result<Request, Failure> {
    let asked = &scene.asked;
    let (operation, arguments) = match watching {
        Watching::Begin => {
            let path = spot::whole("path", asked.text("path"))?;
            let recursive = asked.is_set("recursive");
            let mut arguments = json!({ "path": path, "recursive": recursive, "types": types(scene)? });
            if let Some(pattern) = asked.maybe("pattern") {
                arguments["glob"] = pattern.into();
            }
            ("watch", arguments)
        }
        Watching::End => ("unwatch", json!({ "watch": asked.text("watch_id") })),
    };
    Ok(Request { operation: operation.to_owned(), arguments: object(arguments), terms })
}

/// The events that are asked for; none means all of them.
fn types(scene: &Scene<'_>) -> Result<Vec<String>, Failure> {
    let known = |word: &&str| EVENT_TYPES.contains(word);
    let reason = || misfit("event_types", &format!("must be a list of {}", EVENT_TYPES.join(", ")));
    match scene.asked.value("event_types") {
        None => Ok(Vec::new()),
        Some(Value::Array(words)) => words
            .iter()
            .map(|word| word.as_str().filter(known).map(str::to_owned).ok_or_else(reason))
            .collect(),
        Some(_) => Err(reason()),
    }
}

/// What it answers.
pub(super) fn told(scene: &Scene<'_>, watching: Watching, answer: &Answer) -> Value {
    let fact = |name: &str| answer.json.get(name).cloned().unwrap_or_default();
    let path = fact("path").as_str().map(|place| scene.krux.spots.absolute(place));
    let mut told = json!({ "watch_id": fact("watch"), "path": path });
    match watching {
        Watching::Begin => {
            told["recursive"] = fact("recursive");
            told["cursor"] = fact("cursor");
        }
        Watching::End => told["cancelled"] = true.into(),
    }
    told
}

/// What a watch heard: the same whether it is pushed or asked for.
pub(super) fn event(spots: &Spots, native: &Map<String, Value>) -> Map<String, Value> {
    let mut told = Map::new();
    let mut put = |name: &str, value: Value| drop(told.insert(name.to_owned(), value));
    put("type", FILE_CHANGED.into());
    for (name, value) in native {
        match (name.as_str(), value) {
            ("type", _) => {}
            ("watch", id) => put("watch_id", id.clone()),
            ("time", time) => put("timestamp", time.clone()),
            ("path" | "new_path", Value::String(place)) => put(name, spots.absolute(place).into()),
            (_, value) => put(name, value.clone()),
        }
    }
    told
}
