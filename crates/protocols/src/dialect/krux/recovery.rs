//! The definition of a krux capability declares recovery actions with placeholders for each error. An error reply
//! contains recovery actions with real values, so that the client can send these calls unchanged.

use serde_json::{Map, Value, json};
use stead_engine::Error;

use super::{
    KruxDialect,
    errors::KruxErrorType,
    paths::{KruxPathMapper, file_name},
};
use crate::{definition::ErrorRecoveryAction, native::without_nulls};

pub(super) struct KruxRecoveryPlaceholderValues<'a> {
    pub(super) capability: &'a str,
    pub(super) path: &'a str,
    pub(super) watch_id: &'a str,
    pub(super) paths: &'a KruxPathMapper,
}

pub(super) fn recovery_actions(
    krux: &KruxDialect,
    subject: &KruxRecoveryPlaceholderValues<'_>,
    error_type: KruxErrorType,
    error: &Error,
) -> Vec<Value> {
    // Only a file can be replaced. If the destination is not a file, the recovery actions of `IsADirectory` or
    // `NotAFile` apply.
    let error_type = match (error_type, error.details.file_type.as_deref()) {
        (KruxErrorType::DestinationExists, Some("directory")) => KruxErrorType::IsADirectory,
        (KruxErrorType::DestinationExists, Some("link" | "other")) => KruxErrorType::NotAFile,
        (other, _) => other,
    };
    let capability_errors = krux.definition.find_tool(subject.capability).map_or(&[][..], |tool| &tool.errors);
    let declared =
        capability_errors.iter().chain(&krux.definition.errors).find(|error| error.kind == error_type.name());
    let recoveries = declared.into_iter().flat_map(|error| &error.recoveries);
    recoveries.filter(|action| is_applicable(action, subject)).map(|action| fill_action(action, subject)).collect()
}

/// A recovery action that ends a watch is suggested only if the error names a watch.
fn is_applicable(recovery: &ErrorRecoveryAction, subject: &KruxRecoveryPlaceholderValues<'_>) -> bool {
    !subject.watch_id.is_empty() || recovery.inputs.values().all(|value| value != "$watch")
}

/// A recovery action that names no capability repeats the failed call with changed inputs.
fn fill_action(recovery: &ErrorRecoveryAction, subject: &KruxRecoveryPlaceholderValues<'_>) -> Value {
    let inputs: Map<String, Value> =
        recovery.inputs.iter().map(|(name, value)| (name.clone(), fill_placeholders(name, value, subject))).collect();
    without_nulls(json!({
        "action": recovery.action,
        "description": recovery.description,
        "capability": recovery.capability.as_deref().unwrap_or(subject.capability),
        "inputs": inputs,
        "retry": recovery.capability.is_none().then_some(true),
    }))
}

fn fill_placeholders(name: &str, value: &Value, subject: &KruxRecoveryPlaceholderValues<'_>) -> Value {
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

fn placeholder_value(word: &str, input: &str, subject: &KruxRecoveryPlaceholderValues<'_>) -> String {
    let name = file_name(subject.path);
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
        let recovery = ErrorRecoveryAction {
            action: "cancel_existing".to_owned(),
            description: String::new(),
            capability: None,
            inputs: Map::from_iter([("watch_id".to_owned(), "$watch".into())]),
        };
        let with = |watch| KruxRecoveryPlaceholderValues {
            capability: "filesystem.watch",
            path: "/ws",
            watch_id: watch,
            paths: &paths,
        };
        assert!(is_applicable(&recovery, &with("w-1")) && !is_applicable(&recovery, &with("")));
    }

    #[test]
    fn placeholders_are_filled_only_once() {
        let paths = KruxPathMapper::new("/ws");
        let subject = KruxRecoveryPlaceholderValues {
            capability: "filesystem.read",
            path: "/ws/d/$name",
            watch_id: "w-1",
            paths: &paths,
        };
        let filled = |name: &str, template: &str| fill_placeholders(name, &template.into(), &subject);
        assert_eq!(filled("path", "$parent"), "/ws/d");
        assert_eq!(filled("message", "$tool at $path, $5"), "filesystem.read at /ws/d/$name, $5");
        assert_eq!(filled("destination", "$workspace/$name"), "/ws/$name");
        assert_eq!(escape_glob("a*[b]"), "a[*][[]b[]]");
    }
}
