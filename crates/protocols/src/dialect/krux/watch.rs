//! Watches. Events are pushed where the protocol allows it, and returned by `session.events`.

use serde_json::{Map, Value, json};
use stead_engine::{CallOptions, CallOutcome, Error};

use super::{
    super::TranslatedCall,
    KruxCall,
    args::invalid_input,
    capability::KruxWatchCapability,
    into_object,
    paths::{self, KruxPathMapper},
};

pub(super) const FILE_CHANGED_EVENT: &str = "file_changed";
const EVENT_TYPES: &[&str] = &["create", "modify", "delete", "rename"];

pub(super) fn translate(
    call: &KruxCall<'_>,
    capability: KruxWatchCapability,
    options: CallOptions,
) -> Result<TranslatedCall, Error> {
    let inputs = &call.inputs;
    let (operation, arguments) = match capability {
        KruxWatchCapability::Start => {
            let path = paths::require_absolute("path", inputs.text_or_empty("path"))?;
            let recursive = inputs.is_set("recursive");
            let mut arguments = json!({ "path": path, "recursive": recursive, "types": requested_event_types(call)? });
            if let Some(pattern) = inputs.optional_text("pattern") {
                arguments["glob"] = pattern.into();
            }
            ("watch", arguments)
        }
        KruxWatchCapability::End => ("unwatch", json!({ "watch": inputs.text_or_empty("watch_id") })),
    };
    Ok(TranslatedCall { operation: operation.to_owned(), arguments: into_object(arguments), options })
}

/// The requested event types; an empty list means all.
fn requested_event_types(call: &KruxCall<'_>) -> Result<Vec<String>, Error> {
    let known = |word: &&str| EVENT_TYPES.contains(word);
    let reason = || invalid_input("event_types", &format!("must be a list of {}", EVENT_TYPES.join(", ")));
    match call.inputs.value("event_types") {
        None => Ok(Vec::new()),
        Some(Value::Array(words)) => {
            words.iter().map(|word| word.as_str().filter(known).map(str::to_owned).ok_or_else(reason)).collect()
        }
        Some(_) => Err(reason()),
    }
}

pub(super) fn render_outcome(call: &KruxCall<'_>, capability: KruxWatchCapability, outcome: &CallOutcome) -> Value {
    let field = |name: &str| outcome.json.get(name).cloned().unwrap_or_default();
    let path = field("path").as_str().map(|path| call.dialect.paths.absolute_path(path));
    let mut result = json!({ "watch_id": field("watch"), "path": path });
    match capability {
        KruxWatchCapability::Start => {
            result["recursive"] = field("recursive");
            result["cursor"] = field("cursor");
        }
        KruxWatchCapability::End => result["cancelled"] = true.into(),
    }
    result
}

/// Renders an event, the same whether pushed or polled.
pub(super) fn render_watch_event(paths: &KruxPathMapper, native: &Map<String, Value>) -> Map<String, Value> {
    let mut event = Map::new();
    let mut insert = |name: &str, value: Value| drop(event.insert(name.to_owned(), value));
    insert("type", FILE_CHANGED_EVENT.into());
    for (name, value) in native {
        match (name.as_str(), value) {
            ("type", _) => {}
            ("watch", id) => insert("watch_id", id.clone()),
            ("time", time) => insert("timestamp", time.clone()),
            ("path" | "new_path", Value::String(path)) => insert(name, paths.absolute_path(path).into()),
            (_, value) => insert(name, value.clone()),
        }
    }
    event
}
