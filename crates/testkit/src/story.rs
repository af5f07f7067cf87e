//! Stories: people, agents and other programs at work on one workspace, call by call, with what each must hear and what
//! must then be on disk. The teller knows no face: whoever plays one brings a [`Stage`].

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// One story.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Story {
    /// What it is about.
    pub title: String,
    /// Files by path, as they are at the start.
    #[serde(default)]
    pub tree: BTreeMap<String, String>,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// One thing that happens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Who calls: `user:NAME` or `agent:NAME`.
    #[serde(default, rename = "as")]
    pub caller: Option<String>,
    /// The operation.
    #[serde(default)]
    pub call: Option<String>,
    /// Its arguments. What was kept of earlier answers is behind its own name: `$NAME`.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Fields that the answer, or the error, has. An object is compared field by field.
    #[serde(default)]
    pub has: Map<String, Value>,
    /// Fields that it has not.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// The kind of failure that it must be.
    #[serde(default)]
    pub error: Option<String>,
    /// What to keep of the answer: a name, and where it is, as a JSON pointer.
    #[serde(default)]
    pub keep: BTreeMap<String, String>,
    /// What another program puts into files before the call; nothing takes a file away.
    #[serde(default)]
    pub outside: BTreeMap<String, Option<String>>,
    /// Whether every editor dies before the call.
    #[serde(default)]
    pub editors_die: bool,
    /// What is on disk after it; nothing where no file is.
    #[serde(default)]
    pub disk: BTreeMap<String, Option<String>>,
}

/// Where a story is played.
pub trait Stage {
    /// Makes a call: the answer, or the failure's fields with its kind as `kind`.
    fn call(&mut self, caller: &str, operation: &str, arguments: &Map<String, Value>)
    -> Result<Value, Value>;

    /// Puts a file there behind the server's back, or takes it away.
    fn outside(&mut self, path: &str, content: Option<&str>);

    /// What is on disk.
    fn disk(&self, path: &str) -> Option<String>;

    /// Lets every editor die without closing anything.
    fn editors_die(&mut self);
}

/// The stories of one file of cases.
#[expect(clippy::panic, reason = "a case that cannot be read is a mistake in the tests")]
pub fn stories(name: &str, text: &str) -> Vec<Story> {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Every story of editors with unsaved text.
pub fn of_buffers() -> Vec<Story> {
    stories("buffers", include_str!("../cases/stories/buffers.json"))
}

/// Every story of merged writes, and of what a person makes of a session's work.
pub fn of_reviews() -> Vec<Story> {
    stories("reviews", include_str!("../cases/stories/reviews.json"))
}

/// Plays one story. Panics at the first thing that is not as it must be.
pub fn play(story: &Story, stage: &mut dyn Stage) {
    for (path, content) in &story.tree {
        stage.outside(path, Some(content));
    }
    let mut names = BTreeMap::new();
    for (number, step) in story.steps.iter().enumerate() {
        let place = format!("{}, step {}", story.title, number + 1);
        for (path, content) in &step.outside {
            stage.outside(path, content.as_deref());
        }
        if step.editors_die {
            stage.editors_die();
        }
        if let Some(operation) = &step.call {
            let arguments: Map<String, Value> =
                step.arguments.iter().map(|(name, value)| (name.clone(), filled(value, &names))).collect();
            let caller = step.caller.as_deref().unwrap_or("agent:one");
            let outcome = stage.call(caller, operation, &arguments);
            judge(&place, step, outcome, &mut names);
        }
        for (path, content) in &step.disk {
            assert_eq!(stage.disk(path), *content, "{place}: {path} on disk");
        }
    }
}

#[expect(clippy::panic, reason = "a story fails by panicking")]
fn judge(place: &str, step: &Step, outcome: Result<Value, Value>, names: &mut BTreeMap<String, Value>) {
    let object = match (outcome, &step.error) {
        (Ok(answer), None) => answer,
        (Err(failure), Some(kind)) => {
            assert_eq!(failure["kind"], kind.as_str(), "{place}: {failure}");
            failure
        }
        (Ok(answer), Some(kind)) => panic!("{place}: no {kind} but {answer}"),
        (Err(failure), None) => panic!("{place}: {failure}"),
    };
    // What is kept can be named at once: two fields of one answer are compared so.
    for (name, pointer) in &step.keep {
        let kept = object.pointer(pointer).cloned().unwrap_or_default();
        assert!(!kept.is_null(), "{place}: no {pointer} in {object}");
        names.insert(name.clone(), kept);
    }
    for (field, expected) in &step.has {
        holds(place, field, &object[field], &filled(expected, names));
    }
    for field in &step.lacks {
        assert!(object.get(field).is_none(), "{place}: there is {field} in {object}");
    }
}

/// Whether a value is what is expected; of an object only the fields that are named count.
fn holds(place: &str, name: &str, found: &Value, expected: &Value) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            for (field, expected) in expected {
                let inner = format!("{name}.{field}");
                holds(place, &inner, found.get(field).unwrap_or(&Value::Null), expected);
            }
        }
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => {
            for (found, expected) in found.iter().zip(expected) {
                holds(place, name, found, expected);
            }
        }
        (found, expected) => assert_eq!(found, expected, "{place}: {name}"),
    }
}

/// The value with what is known by name filled in.
fn filled(value: &Value, names: &BTreeMap<String, Value>) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix('$').and_then(|name| names.get(name)) {
            Some(meant) => meant.clone(),
            None => value.clone(),
        },
        Value::Array(items) => items.iter().map(|item| filled(item, names)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), filled(value, names))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
