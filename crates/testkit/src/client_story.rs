//! Stories: people, agents and other programs work on one workspace, with the expected result of each call and the
//! expected files. Independent of the protocol; a test supplies a [`StoryBackend`].

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// One story.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientStory {
    /// Title of the story.
    pub title: String,
    /// Initial files by path.
    #[serde(default)]
    pub tree: BTreeMap<String, String>,
    /// Steps in order.
    pub steps: Vec<StoryStep>,
}

/// One step.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoryStep {
    /// The caller: `user:NAME` or `agent:NAME`.
    #[serde(default, rename = "as")]
    pub caller: Option<String>,
    /// The operation.
    #[serde(default)]
    pub call: Option<String>,
    /// Its arguments. `$NAME` stands for a saved value.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Expected fields of the result or error. Objects are compared field by field.
    #[serde(default)]
    pub has: Map<String, Value>,
    /// Fields that must be absent.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// The expected error kind.
    #[serde(default)]
    pub error: Option<String>,
    /// Values to save: a name and a JSON pointer into the result.
    #[serde(default)]
    pub keep: BTreeMap<String, String>,
    /// Files that another program writes before the call; `None` removes one.
    #[serde(default)]
    pub outside: BTreeMap<String, Option<String>>,
    /// Whether all editors crash before the call.
    #[serde(default)]
    pub editors_die: bool,
    /// Expected files after the call; `None` if the file must not exist.
    #[serde(default)]
    pub disk: BTreeMap<String, Option<String>>,
}

/// Where a story runs.
pub trait StoryBackend {
    /// Makes a call. Returns the result, or the error's fields with its kind as `kind`.
    fn call(&mut self, caller: &str, operation: &str, arguments: &Map<String, Value>) -> Result<Value, Value>;

    /// Writes or removes a file outside stead.
    fn change_externally(&mut self, path: &str, content: Option<&str>);

    /// The content on disk.
    fn read_disk(&self, path: &str) -> Option<String>;

    /// Makes all editors crash.
    fn kill_editors(&mut self);
}

/// The stories of one file.
#[expect(clippy::panic, reason = "a case that cannot be read is a mistake in the tests")]
pub fn parse_stories(name: &str, text: &str) -> Vec<ClientStory> {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Stories of editors with unsaved text.
pub fn buffer_stories() -> Vec<ClientStory> {
    parse_stories("buffers", include_str!("../cases/stories/buffers.json"))
}

/// Stories of merged writes, and of reviews of a session's work.
pub fn review_stories() -> Vec<ClientStory> {
    parse_stories("reviews", include_str!("../cases/stories/reviews.json"))
}

/// Runs one story. Panics at the first difference.
pub fn play_story(story: &ClientStory, stage: &mut dyn StoryBackend) {
    for (path, content) in &story.tree {
        stage.change_externally(path, Some(content));
    }
    let mut names = BTreeMap::new();
    for (number, step) in story.steps.iter().enumerate() {
        let place = format!("{}, step {}", story.title, number + 1);
        for (path, content) in &step.outside {
            stage.change_externally(path, content.as_deref());
        }
        if step.editors_die {
            stage.kill_editors();
        }
        if let Some(operation) = &step.call {
            let arguments: Map<String, Value> =
                step.arguments.iter().map(|(name, value)| (name.clone(), substitute_names(value, &names))).collect();
            let caller = step.caller.as_deref().unwrap_or("agent:one");
            let outcome = stage.call(caller, operation, &arguments);
            check_step(&place, step, outcome, &mut names);
        }
        for (path, content) in &step.disk {
            assert_eq!(stage.read_disk(path), *content, "{place}: {path} on disk");
        }
    }
}

#[expect(clippy::panic, reason = "a story fails by panicking")]
fn check_step(place: &str, step: &StoryStep, outcome: Result<Value, Value>, names: &mut BTreeMap<String, Value>) {
    let object = match (outcome, &step.error) {
        (Ok(answer), None) => answer,
        (Err(failure), Some(kind)) => {
            assert_eq!(failure["kind"], kind.as_str(), "{place}: {failure}");
            failure
        }
        (Ok(answer), Some(kind)) => panic!("{place}: no {kind} but {answer}"),
        (Err(failure), None) => panic!("{place}: {failure}"),
    };
    // Saved values are available at once, so that two fields of one result can be compared.
    for (name, pointer) in &step.keep {
        let kept = object.pointer(pointer).cloned().unwrap_or_default();
        assert!(!kept.is_null(), "{place}: no {pointer} in {object}");
        names.insert(name.clone(), kept);
    }
    for (field, expected) in &step.has {
        assert_contains(place, field, &object[field], &substitute_names(expected, names));
    }
    for field in &step.lacks {
        assert!(object.get(field).is_none(), "{place}: there is {field} in {object}");
    }
}

/// Whether a value matches; of an object only the named fields count.
fn assert_contains(place: &str, name: &str, found: &Value, expected: &Value) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            for (field, expected) in expected {
                let inner = format!("{name}.{field}");
                assert_contains(place, &inner, found.get(field).unwrap_or(&Value::Null), expected);
            }
        }
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => {
            for (found, expected) in found.iter().zip(expected) {
                assert_contains(place, name, found, expected);
            }
        }
        (found, expected) => assert_eq!(found, expected, "{place}: {name}"),
    }
}

/// Replaces saved names in a value.
fn substitute_names(value: &Value, names: &BTreeMap<String, Value>) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix('$').and_then(|name| names.get(name)) {
            Some(meant) => meant.clone(),
            None => value.clone(),
        },
        Value::Array(items) => items.iter().map(|item| substitute_names(item, names)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), substitute_names(value, names))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
