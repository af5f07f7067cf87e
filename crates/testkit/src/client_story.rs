//! Stories that test, over any protocol, how people, agents and other programs share a workspace. A test supplies a
//! [`ClientStoryWorkspaceAdapter`] that makes the calls.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// A story is a sequence of calls on a workspace with their expected results.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientStory {
    /// The title of the story.
    pub title: String,
    /// The initial files of the story's workspace, by path.
    #[serde(default)]
    pub tree: BTreeMap<String, String>,
    /// The steps of the story in order.
    pub steps: Vec<StoryStep>,
}

/// One step of a story.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoryStep {
    /// The principal that makes the step's call: `user:NAME` or `agent:NAME`.
    #[serde(default, rename = "as")]
    pub caller: Option<String>,
    /// The operation that the step calls.
    #[serde(default)]
    pub call: Option<String>,
    /// The arguments of the step's call, in which `$NAME` stands for a saved value.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The fields that the result or the error of the step's call must contain.
    #[serde(default)]
    pub has: Map<String, Value>,
    /// The fields that the result or the error of the step's call must not contain.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// The error kind with which the step's call must fail; `None` if the call must succeed.
    #[serde(default)]
    pub error: Option<String>,
    /// The values of the result to save for later steps, each as a name and a JSON pointer.
    #[serde(default)]
    pub keep: BTreeMap<String, String>,
    /// The files that another program writes before the step's call; `None` removes a file.
    #[serde(default)]
    pub outside: BTreeMap<String, Option<String>>,
    /// Whether all editors crash before the step's call.
    #[serde(default)]
    pub editors_die: bool,
    /// The text of files on disk after the step's call; `None` means that a file must not exist.
    #[serde(default)]
    pub disk: BTreeMap<String, Option<String>>,
}

/// An adapter that runs a story over one protocol on one workspace.
pub trait ClientStoryWorkspaceAdapter {
    /// Calls an operation; a failure returns the error's fields, with the error kind in `kind`.
    fn call(&mut self, caller: &str, operation: &str, arguments: &Map<String, Value>) -> Result<Value, Value>;

    /// Writes a file directly on disk as another program would; `None` removes the file.
    fn change_externally(&mut self, path: &str, content: Option<&str>);

    /// Reads a file directly from disk; `None` means that the file does not exist.
    fn read_disk(&self, path: &str) -> Option<String>;

    /// Makes all editors crash.
    fn kill_editors(&mut self);
}

/// Parses the stories of one story file.
#[expect(clippy::panic, reason = "a case that cannot be read is a mistake in the tests")]
pub fn parse_stories(name: &str, text: &str) -> Vec<ClientStory> {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Parses the stories about editors with unsaved text.
pub fn buffer_stories() -> Vec<ClientStory> {
    parse_stories("buffers", include_str!("../cases/stories/buffers.json"))
}

/// Parses the stories about merged writes and reviewed changes.
pub fn review_stories() -> Vec<ClientStory> {
    parse_stories("reviews", include_str!("../cases/stories/reviews.json"))
}

/// Runs one story, and panics at the first unexpected result.
pub fn play_story(story: &ClientStory, stage: &mut dyn ClientStoryWorkspaceAdapter) {
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
