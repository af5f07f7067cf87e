//! Scenarios of the krux capabilities: one file for each, with calls, what they must answer, and the ways out of every
//! error, followed as the error names them. The runner knows no face: whoever plays brings a [`Ground`].

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The scenarios of one capability.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// The capability.
    pub capability: String,
    /// What is tried.
    pub scenarios: Vec<Scenario>,
}

/// One scenario: a tree and calls.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is about.
    pub title: String,
    /// The declared pattern that it plays, by its description.
    #[serde(default)]
    pub pattern: Option<String>,
    /// The policy that is in force from the first call on.
    #[serde(default)]
    pub policy: Option<String>,
    /// What only some grounds can do.
    #[serde(default)]
    pub needs: Option<Need>,
    /// Files by path: text, or a list of bytes; a path that ends in a slash is a directory.
    #[serde(default)]
    pub tree: Map<String, Value>,
    /// Links by path.
    #[serde(default)]
    pub links: BTreeMap<String, String>,
    /// The calls in their order.
    pub steps: Vec<Step>,
}

/// What only some grounds can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// Let time pass.
    Clock,
    /// Be full.
    Full,
    /// Take thousands of calls.
    Many,
    /// Fail when told to.
    Faults,
}

/// Somebody else who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Somebody {
    /// Another agent.
    Agent,
    /// A person.
    Person,
}

/// What stands before an operation that somebody else calls.
const SOMEBODY: &[(&str, Somebody)] = &[("others:", Somebody::Agent), ("persons:", Somebody::Person)];

/// One call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The capability; with `others:` or `persons:` before it, an operation that another agent or a person calls.
    pub call: String,
    /// Its inputs. `$WS` is the workspace, and what was kept of earlier answers is behind its own name.
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// A person must answer first: the call is answered as pending, the ways out of that are followed, and it is made
    /// again.
    #[serde(default)]
    pub asks: Option<Word>,
    /// The kind of failure that the machine has in store for it.
    #[serde(default)]
    pub fails: Option<String>,
    /// Fields that the answer has.
    #[serde(default)]
    pub answer: Map<String, Value>,
    /// Fields that the answer has, objects in them with at least these members.
    #[serde(default)]
    pub like: Map<String, Value>,
    /// The error that it is.
    #[serde(default)]
    pub error: Option<String>,
    /// The ways out of that error that are followed, and must lead out.
    #[serde(default)]
    pub follow: Vec<String>,
    /// Fields of the answer to keep, by name.
    #[serde(default)]
    pub keep: BTreeMap<String, String>,
    /// How often the call is made before the one that is looked at.
    #[serde(default)]
    pub after: usize,
    /// Time that passes before it.
    #[serde(default)]
    pub advance_ms: i64,
}

/// What a person says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// The call may run.
    Yes,
    /// It may not.
    No,
}

/// What a call answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The dialect's object.
    pub object: Value,
    /// Whether it is an error.
    pub failed: bool,
}

/// Where scenarios are played: a workspace behind some face.
pub trait Ground {
    /// The absolute spelling of the workspace.
    fn workspace(&self) -> String;

    /// Whether it can do this; a scenario that needs what it cannot is passed over.
    fn can(&self, need: Need) -> bool;

    /// Puts something there before the calls.
    fn plant(&mut self, path: &str, what: Planted<'_>);

    /// Lets time pass.
    fn advance_ms(&mut self, _ms: i64) {}

    /// Puts this policy in force.
    fn rule(&mut self, policy: &str);

    /// Makes the next call fail with this kind of failure.
    fn fail_next(&mut self, _kind: &str) {}

    /// Answers, as a person, a call that waits for one.
    fn say(&mut self, id: &str, word: Word);

    /// Has somebody else make a call in the engine's own words.
    fn others(&mut self, somebody: Somebody, operation: &str, arguments: &Map<String, Value>);

    /// Makes a call.
    fn call(&mut self, capability: &str, inputs: &Map<String, Value>) -> Outcome;
}

/// What is put somewhere.
#[derive(Debug, Clone, Copy)]
pub enum Planted<'a> {
    /// A file with these bytes.
    File(&'a [u8]),
    /// A directory.
    Directory,
    /// A link that says this.
    Link(&'a str),
}

macro_rules! suites {
    ($($name:literal),+ $(,)?) => {
        /// Every suite, in documentation order.
        pub fn suites() -> Vec<Suite> {
            let texts = [$(($name, include_str!(concat!("../cases/krux/", $name, ".json")))),+];
            texts.into_iter().map(|(name, text)| read(name, text)).collect()
        }
    };
}

suites!(
    "filesystem.read",
    "filesystem.write",
    "filesystem.list",
    "filesystem.delete",
    "filesystem.restore",
    "filesystem.stat",
    "filesystem.search",
    "filesystem.search_content",
    "filesystem.copy",
    "filesystem.move",
    "filesystem.watch",
    "filesystem.unwatch",
    "filesystem.append",
    "agent.session",
    "agent.whoami",
    "agent.capabilities",
    "agent.policy",
    "alerts.send",
    "system.disk_usage",
    "session.create",
    "session.events",
    "session.end",
);

/// What the published document says of one capability: names and numbers, none of its sentences.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Documented {
    /// Its name.
    pub name: String,
    /// Its tier.
    pub tier: String,
    /// Its version.
    pub version: String,
    /// Its inputs.
    pub inputs: Vec<DocumentedInput>,
    /// Its outputs.
    pub outputs: Vec<String>,
    /// Its errors, each with the ways out of it.
    pub errors: BTreeMap<String, Vec<String>>,
    /// The words it is found by.
    pub tags: Vec<String>,
    /// Whether each of its side effects can be taken back.
    pub reversible: Vec<bool>,
    /// The calls of each common pattern, in the order of the definition's patterns.
    pub patterns: Vec<Vec<String>>,
}

/// One documented input.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentedInput {
    /// Its name.
    pub name: String,
    /// Whether it must be given.
    pub required: bool,
    /// What is meant when it is absent.
    #[serde(default)]
    pub default: Option<Value>,
}

/// What the published document says.
#[expect(clippy::expect_used, reason = "a table that cannot be read is a mistake in the tests")]
pub fn documented() -> Vec<Documented> {
    serde_json::from_str(include_str!("../cases/krux-document.json")).expect("the table")
}

#[expect(clippy::panic, reason = "a case that cannot be read is a mistake in the tests")]
fn read(name: &str, text: &str) -> Suite {
    match serde_json::from_str::<Suite>(text) {
        Ok(suite) if suite.capability == name => suite,
        Ok(suite) => panic!("{name} is about {}", suite.capability),
        Err(error) => panic!("{name}: {error}"),
    }
}

/// Plays one scenario and tells what every call answered. Panics at the first answer that is not as it must be.
#[expect(clippy::panic, reason = "a scenario fails by panicking")]
pub fn play(scenario: &Scenario, ground: &mut dyn Ground) -> Vec<Outcome> {
    if scenario.needs.is_some_and(|need| !ground.can(need)) {
        return Vec::new();
    }
    for (path, content) in &scenario.tree {
        match content {
            Value::String(_) if path.ends_with('/') => {
                ground.plant(path.trim_end_matches('/'), Planted::Directory);
            }
            Value::String(text) => ground.plant(path, Planted::File(text.as_bytes())),
            other
            @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                ground.plant(path, Planted::File(&bytes(other)));
            }
        }
    }
    for (path, target) in &scenario.links {
        ground.plant(path, Planted::Link(target));
    }
    if let Some(policy) = &scenario.policy {
        ground.rule(policy);
    }
    let mut names: BTreeMap<String, String> = BTreeMap::from([("$WS".to_owned(), ground.workspace())]);
    let mut told = Vec::new();
    for (number, step) in scenario.steps.iter().enumerate() {
        let place = format!("{}, step {}", scenario.title, number + 1);
        ground.advance_ms(step.advance_ms);
        let inputs = filled(&Value::Object(step.inputs.clone()), &names);
        let Value::Object(inputs) = inputs else { panic!("{place}: inputs are an object") };
        let by = |(prefix, who): &(&str, Somebody)| Some((*who, step.call.strip_prefix(prefix)?));
        if let Some((who, operation)) = SOMEBODY.iter().find_map(by) {
            ground.others(who, operation, &inputs);
            continue;
        }
        for _ in 0..step.after {
            ground.call(&step.call, &inputs);
        }
        if let Some(kind) = &step.fails {
            ground.fail_next(kind);
        }
        let mut outcome = ground.call(&step.call, &inputs);
        if let Some(word) = step.asks {
            let pending = outcome.object["status"] == "pending_approval" && outcome.failed;
            assert!(pending, "{place}: nobody was asked: {}", outcome.object);
            ground.say(outcome.object["approval_id"].as_str().unwrap_or_default(), word);
            told.push(follow(&place, "wait", &inputs, &outcome, ground));
            let again = retried(&place, &inputs, &outcome, ground);
            told.push(std::mem::replace(&mut outcome, again));
        }
        judge(&place, step, &outcome, &names);
        for (name, field) in &step.keep {
            let kept = outcome.object[field].as_str().unwrap_or_default();
            names.insert(format!("${name}"), kept.to_owned());
        }
        told.push(outcome.clone());
        for action in &step.follow {
            told.push(follow(&place, action, &inputs, &outcome, ground));
        }
    }
    told
}

#[expect(clippy::panic, reason = "a scenario fails by panicking")]
fn judge(place: &str, step: &Step, outcome: &Outcome, names: &BTreeMap<String, String>) {
    let object = &outcome.object;
    if let Some(error) = &step.error {
        assert!(outcome.failed, "{place}: {object}");
        assert_eq!(object["error"], error.as_str(), "{place}: {object}");
        let ways = object["recovery"].as_array().map(Vec::len);
        assert!(ways.is_some_and(|count| count > 0), "{place}: no way out of {object}");
    } else if outcome.failed {
        panic!("{place}: {object}");
    }
    for (field, expected) in &step.answer {
        let expected = filled(expected, names);
        assert_eq!(object[field], expected, "{place}: {field} of {object}");
    }
    for (field, expected) in &step.like {
        assert!(is_like(&object[field], &filled(expected, names)), "{place}: {field} of {object}");
    }
}

/// Whether a value has everything that is expected of it.
fn is_like(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => expected
            .iter()
            .all(|(name, expected)| found.get(name).is_some_and(|found| is_like(found, expected))),
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, expected)| is_like(found, expected))
        }
        (found, expected) => found == expected,
    }
}

/// Follows a way out of an error as it stands: the call that it names must succeed.
fn follow(
    place: &str,
    action: &str,
    inputs: &Map<String, Value>,
    outcome: &Outcome,
    ground: &mut dyn Ground,
) -> Outcome {
    let led = taken(place, action, inputs, outcome, ground);
    assert!(!led.failed, "{place}: {action} leads to {}", led.object);
    led
}

/// The same call again, as the way `retry` says.
fn retried(place: &str, inputs: &Map<String, Value>, outcome: &Outcome, ground: &mut dyn Ground) -> Outcome {
    taken(place, "retry", inputs, outcome, ground)
}

/// Makes the call that a way out names.
#[expect(clippy::panic, reason = "a scenario fails by panicking")]
fn taken(
    place: &str,
    action: &str,
    inputs: &Map<String, Value>,
    outcome: &Outcome,
    ground: &mut dyn Ground,
) -> Outcome {
    let ways = outcome.object["recovery"].as_array();
    let Some(way) = ways.into_iter().flatten().find(|way| way["action"] == action) else {
        panic!("{place}: no way {action} in {}", outcome.object)
    };
    let mut call: Map<String, Value> = Map::new();
    if way["retry"] == true {
        call.extend(inputs.clone());
    }
    call.extend(way["inputs"].as_object().cloned().unwrap_or_default());
    let capability = way["capability"].as_str().unwrap_or_default();
    ground.call(capability, &call)
}

/// The value with what is known by name filled in.
fn filled(value: &Value, names: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => {
            let mut text = text.clone();
            for (name, meant) in names {
                text = text.replace(name, meant);
            }
            text.into()
        }
        Value::Array(items) => items.iter().map(|item| filled(item, names)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), filled(value, names))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Bytes that are no text, given as a list of numbers.
fn bytes(value: &Value) -> Vec<u8> {
    let numbers = value.as_array().into_iter().flatten();
    numbers.filter_map(Value::as_u64).filter_map(|number| u8::try_from(number).ok()).collect()
}

/// An answer without what no two faces have in common: who asks through which session.
pub fn comparable(outcome: &Outcome) -> Value {
    let mut object = outcome.object.clone();
    for name in ["session_id", "cursor"] {
        if object.get(name).is_some() {
            object[name] = json!("…");
        }
    }
    if object["error"] == "SessionNotFound" {
        object["message"] = json!("…");
    }
    object
}
