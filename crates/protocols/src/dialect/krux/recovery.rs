//! Recovery actions for an error, from the definition, with placeholders filled in. Each is a call that can be made as
//! it stands.

use serde_json::{Map, Value, json};
use stead_engine::Error;

use super::{
    KruxDialect,
    paths::{self, KruxPathMapper},
};
use crate::definition::{RecoveryAction, ToolErrorDefinition};

/// The failed call.
pub(super) struct KruxErrorSubject<'a> {
    pub(super) capability: &'a str,
    pub(super) path: &'a str,
    /// A watch that could be ended.
    pub(super) watch_id: &'a str,
    pub(super) paths: &'a KruxPathMapper,
}

pub(super) fn recovery_actions(
    krux: &KruxDialect,
    subject: &KruxErrorSubject<'_>,
    kind: &str,
    error: &Error,
) -> Vec<Value> {
    let existing_type = error.details.get("type").and_then(Value::as_str);
    // Only a file can be replaced; for anything else the actions are those of its type.
    let kind = match (kind, existing_type) {
        ("DestinationExists", Some("directory")) => "IsADirectory",
        ("DestinationExists", Some("link" | "other")) => "NotAFile",
        (kind, _) => kind,
    };
    let own = krux.definition.find_tool(subject.capability).map_or(&[][..], |operation| &operation.errors);
    let declared: Option<&ToolErrorDefinition> =
        own.iter().chain(&krux.definition.errors).find(|error| error.kind == kind);
    let recoveries = declared.into_iter().flat_map(|error| &error.recoveries);
    recoveries
        .filter(|recovery| is_applicable(recovery, subject))
        .map(|recovery| fill_action(recovery, subject))
        .collect()
}

/// Whether the caller has a watch, if the action needs one.
fn is_applicable(recovery: &RecoveryAction, subject: &KruxErrorSubject<'_>) -> bool {
    !subject.watch_id.is_empty() || recovery.inputs.values().all(|value| value != "$watch")
}

/// Fills in an action. An action without a capability repeats the failed call with these inputs changed.
fn fill_action(recovery: &RecoveryAction, subject: &KruxErrorSubject<'_>) -> Value {
    let inputs: Map<String, Value> =
        recovery.inputs.iter().map(|(name, value)| (name.clone(), fill_placeholders(name, value, subject))).collect();
    let mut filled = json!({
        "action": recovery.action,
        "description": recovery.description,
        "capability": recovery.capability.as_deref().unwrap_or(subject.capability),
        "inputs": inputs,
    });
    if recovery.capability.is_none() {
        filled["retry"] = true.into();
    }
    filled
}

fn fill_placeholders(name: &str, value: &Value, subject: &KruxErrorSubject<'_>) -> Value {
    let Value::String(template) = value else { return value.clone() };
    let mut text = String::new();
    let mut rest = template.as_str();
    while let Some(index) = rest.find('$') {
        text.push_str(&rest[..index]);
        rest = &rest[index..];
        let known = ["$parent", "$path", "$name", "$watch", "$workspace", "$tool"];
        match known.into_iter().find(|word| rest.starts_with(word)) {
            None => {
                text.push('$');
                rest = &rest[1..];
            }
            Some(word) => {
                text.push_str(&placeholder_value(word, name, subject));
                rest = &rest[word.len()..];
            }
        }
    }
    text.push_str(rest);
    text.into()
}

fn placeholder_value(word: &str, input: &str, subject: &KruxErrorSubject<'_>) -> String {
    let name = paths::file_name(subject.path);
    match word {
        "$parent" => subject.paths.parent_path(subject.path),
        "$path" => subject.path.to_owned(),
        "$watch" => subject.watch_id.to_owned(),
        "$workspace" => subject.paths.workspace_root.clone(),
        "$name" if input == "pattern" => escape_glob(name),
        "$name" => name.to_owned(),
        _ => subject.capability.to_owned(),
    }
}

/// A glob that matches exactly this name.
fn escape_glob(name: &str) -> String {
    let mut pattern = String::new();
    for c in name.chars() {
        match c {
            '*' | '?' | '[' | ']' | '{' | '}' | '!' => pattern.extend(['[', c, ']']),
            '\\' => pattern.push_str("\\\\"),
            c => pattern.push(c),
        }
    }
    if pattern.is_empty() { "*".to_owned() } else { pattern }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwatch_action_requires_an_own_watch() {
        let paths = KruxPathMapper::new("/ws");
        let recovery = RecoveryAction {
            action: "cancel_existing".to_owned(),
            description: String::new(),
            capability: None,
            inputs: Map::from_iter([("watch_id".to_owned(), "$watch".into())]),
        };
        let with =
            |watch| KruxErrorSubject { capability: "filesystem.watch", path: "/ws", watch_id: watch, paths: &paths };
        assert!(is_applicable(&recovery, &with("w-1")) && !is_applicable(&recovery, &with("")));
    }

    #[test]
    fn placeholders_are_filled_only_once() {
        let paths = KruxPathMapper::new("/ws");
        let subject =
            KruxErrorSubject { capability: "filesystem.read", path: "/ws/d/$name", watch_id: "w-1", paths: &paths };
        let filled = |name: &str, template: &str| fill_placeholders(name, &template.into(), &subject);
        assert_eq!(filled("path", "$parent"), "/ws/d");
        assert_eq!(filled("message", "$tool at $path, $5"), "filesystem.read at /ws/d/$name, $5");
        assert_eq!(filled("destination", "$workspace/$name"), "/ws/$name");
        assert_eq!(escape_glob("a*[b]"), "a[*][[]b[]]");
    }
}
