//! The ways out of an error, from the definition, with what the call was about filled in: each is a call that can be made
//! as it stands.

use engine::Failure;
use serde_json::{Map, Value, json};

use super::{
    Krux,
    spot::{self, Spots},
};
use crate::definition::{Recovery, Way};

/// What a failed call was about.
pub(super) struct Subject<'a> {
    pub(super) tool: &'a str,
    pub(super) path: &'a str,
    /// A watch that could be ended.
    pub(super) watch: &'a str,
    pub(super) spots: &'a Spots,
}

/// The ways out.
pub(super) fn out(krux: &Krux, subject: &Subject<'_>, kind: &str, failure: &Failure) -> Vec<Value> {
    let taken = failure.facts.get("type").and_then(Value::as_str);
    // Only a file can be replaced; what else is in the way can only be looked at.
    let kind = match (kind, taken) {
        ("DestinationExists", Some("directory")) => "IsADirectory",
        ("DestinationExists", Some("link" | "other")) => "NotAFile",
        (kind, _) => kind,
    };
    let own = krux.definition.operation(subject.tool).map_or(&[][..], |operation| &operation.errors);
    let declared: Option<&Recovery> =
        own.iter().chain(&krux.definition.errors).find(|error| error.kind == kind);
    let ways = declared.into_iter().flat_map(|error| &error.recoveries);
    ways.filter(|way| can_be_called(way, subject)).map(|way| filled(way, subject)).collect()
}

/// Whether there is everything that a way needs: a watch can only be ended by who has one.
fn can_be_called(way: &Way, subject: &Subject<'_>) -> bool {
    !subject.watch.is_empty() || way.inputs.values().all(|value| value != "$watch")
}

/// A way as it is told. One without a capability of its own is the failed call again, with these inputs changed.
fn filled(way: &Way, subject: &Subject<'_>) -> Value {
    let inputs: Map<String, Value> =
        way.inputs.iter().map(|(name, value)| (name.clone(), fill(name, value, subject))).collect();
    let mut told = json!({
        "action": way.action,
        "description": way.description,
        "capability": way.capability.as_deref().unwrap_or(subject.tool),
        "inputs": inputs,
    });
    if way.capability.is_none() {
        told["retry"] = true.into();
    }
    told
}

fn fill(name: &str, value: &Value, subject: &Subject<'_>) -> Value {
    let Value::String(template) = value else { return value.clone() };
    let mut text = String::new();
    let mut rest = template.as_str();
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = ["$parent", "$path", "$name", "$watch", "$workspace", "$tool"];
        match known.into_iter().find(|word| rest.starts_with(word)) {
            None => {
                text.push('$');
                rest = &rest[1..];
            }
            Some(word) => {
                text.push_str(&meant(word, name, subject));
                rest = &rest[word.len()..];
            }
        }
    }
    text.push_str(rest);
    text.into()
}

fn meant(word: &str, input: &str, subject: &Subject<'_>) -> String {
    let name = spot::name(subject.path);
    match word {
        "$parent" => subject.spots.parent(subject.path),
        "$path" => subject.path.to_owned(),
        "$watch" => subject.watch.to_owned(),
        "$workspace" => subject.spots.workspace.clone(),
        "$name" if input == "pattern" => literal(name),
        "$name" => name.to_owned(),
        _ => subject.tool.to_owned(),
    }
}

/// A name as a pattern that means just it.
fn literal(name: &str) -> String {
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
    fn a_way_that_needs_a_watch_is_told_to_who_has_one() {
        let spots = Spots::new("/ws");
        let way = Way {
            action: "cancel_existing".to_owned(),
            description: String::new(),
            capability: None,
            inputs: Map::from_iter([("watch_id".to_owned(), "$watch".into())]),
        };
        let with = |watch| Subject { tool: "filesystem.watch", path: "/ws", watch, spots: &spots };
        assert!(can_be_called(&way, &with("w-1")) && !can_be_called(&way, &with("")));
    }

    #[test]
    fn what_the_call_was_about_is_filled_in_once() {
        let spots = Spots::new("/ws");
        let subject = Subject { tool: "filesystem.read", path: "/ws/d/$name", watch: "w-1", spots: &spots };
        let filled = |name: &str, template: &str| fill(name, &template.into(), &subject);
        assert_eq!(filled("path", "$parent"), "/ws/d");
        assert_eq!(filled("message", "$tool at $path, $5"), "filesystem.read at /ws/d/$name, $5");
        assert_eq!(filled("destination", "$workspace/$name"), "/ws/$name");
        assert_eq!(literal("a*[b]"), "a[*][[]b[]]");
    }
}
