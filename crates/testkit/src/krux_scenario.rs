//! Scenarios of the krux capabilities: one file per capability, with calls, expected replies and recovery actions. The
//! scenarios do not depend on the protocol; a test supplies a [`KruxScenarioSubject`] that makes the calls.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The scenarios of one krux capability.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KruxCapabilityScenarios {
    /// The capability.
    pub capability: String,
    /// The scenarios.
    pub scenarios: Vec<KruxScenario>,
}

/// One scenario of a krux capability: initial files and the calls to make.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KruxScenario {
    /// The title of the scenario.
    pub title: String,
    /// The description of the documented usage pattern that the scenario follows.
    #[serde(default)]
    pub pattern: Option<String>,
    /// The policy that applies from the first call of the scenario on.
    #[serde(default)]
    pub policy: Option<String>,
    /// A feature of the test subject without which the scenario cannot run.
    #[serde(default)]
    pub needs: Option<ScenarioRequirement>,
    /// The initial files by path, as text or a list of bytes; a path that ends in a slash is a directory.
    #[serde(default)]
    pub tree: Map<String, Value>,
    /// Links by path.
    #[serde(default)]
    pub links: BTreeMap<String, String>,
    /// Calls in order.
    pub steps: Vec<KruxScenarioStep>,
}

/// A feature that only some test subjects have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioRequirement {
    /// Advance the clock.
    Clock,
    /// Fill the disk.
    Full,
    /// The subject can make thousands of calls in reasonable time.
    Many,
    /// Inject errors.
    Faults,
}

/// Another caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KruxScenarioOtherCallerKind {
    /// Another agent.
    Agent,
    /// A person.
    Person,
}

/// Prefixes of operation names, in a scenario, that mark a call by another agent or by a person.
const OTHER_CALLER_PREFIXES: &[(&str, KruxScenarioOtherCallerKind)] =
    &[("others:", KruxScenarioOtherCallerKind::Agent), ("persons:", KruxScenarioOtherCallerKind::Person)];

/// One call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KruxScenarioStep {
    /// The capability to call; after `others:` or `persons:`, a native operation that another agent or a person calls.
    pub call: String,
    /// The inputs of the call. In the inputs, `$WS` stands for the workspace path, and `$NAME` for a saved value.
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// A person's answer if the call needs approval; the call is then repeated, and the second reply is checked.
    #[serde(default)]
    pub asks: Option<ScenarioApprovalAnswer>,
    /// The error kind that the test injects, so that the call fails.
    #[serde(default)]
    pub fails: Option<String>,
    /// Fields that the reply must have with exactly these values.
    #[serde(default)]
    pub answer: Map<String, Value>,
    /// Fields that the reply must have; objects may have more members than given here.
    #[serde(default)]
    pub like: Map<String, Value>,
    /// The expected error.
    #[serde(default)]
    pub error: Option<String>,
    /// Recovery actions, offered by the expected error, that the test performs; each must succeed.
    #[serde(default)]
    pub follow: Vec<String>,
    /// Fields of the reply to save for later steps, by name.
    #[serde(default)]
    pub keep: BTreeMap<String, String>,
    /// How many times the call is made before the one whose reply is checked.
    #[serde(default)]
    pub after: usize,
    /// Time in milliseconds by which the clock advances before the call.
    #[serde(default)]
    pub advance_ms: i64,
}

/// The answer of a person to an approval request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioApprovalAnswer {
    /// Approve the call.
    Yes,
    /// Deny the call.
    No,
}

/// The reply to a call of a krux capability.
#[derive(Debug, Clone, PartialEq)]
pub struct KruxScenarioActualReply {
    /// The dialect's object.
    pub object: Value,
    /// Whether the reply is an error.
    pub is_error: bool,
}

/// The server on which krux scenarios run: a workspace behind a protocol.
pub trait KruxScenarioSubject {
    /// Absolute path of the workspace.
    fn workspace_path(&self) -> String;

    /// Whether the subject has a feature; scenarios that need a missing feature are skipped.
    fn supports(&self, need: ScenarioRequirement) -> bool;

    /// Creates a file, directory or link before the calls of a scenario.
    fn create_item(&mut self, path: &str, what: InitialItem<'_>);

    /// Advances the clock.
    fn advance_ms(&mut self, _ms: i64) {}

    /// Sets the policy.
    fn set_policy(&mut self, policy: &str);

    /// Makes the next call fail with this error kind.
    fn fail_next(&mut self, _kind: &str) {}

    /// Answers a pending approval request as a person.
    fn answer_approval(&mut self, id: &str, word: ScenarioApprovalAnswer);

    /// Calls a native operation as another agent or as a person.
    fn call_as_other(&mut self, somebody: KruxScenarioOtherCallerKind, operation: &str, arguments: &Map<String, Value>);

    /// Makes a call.
    fn call(&mut self, capability: &str, inputs: &Map<String, Value>) -> KruxScenarioActualReply;
}

/// Content to create.
#[derive(Debug, Clone, Copy)]
pub enum InitialItem<'a> {
    /// A file with this content.
    File(&'a [u8]),
    /// A directory.
    Directory,
    /// A symbolic link with this target.
    Link(&'a str),
}

macro_rules! suites {
    ($($name:literal),+ $(,)?) => {
        /// All krux scenario suites, in the order of the krux document.
        pub fn load_suites() -> Vec<KruxCapabilityScenarios> {
            let texts = [$(($name, include_str!(concat!("../cases/krux/", $name, ".json")))),+];
            texts.into_iter().map(|(name, text)| parse_suite(name, text)).collect()
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

/// One capability as the published krux document defines it, without the descriptions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KruxDocumentedCapability {
    /// Name of the capability.
    pub name: String,
    /// Tier of the capability.
    pub tier: String,
    /// Version of the capability.
    pub version: String,
    /// Inputs of the capability.
    pub inputs: Vec<KruxDocumentedParameter>,
    /// Outputs of the capability.
    pub outputs: Vec<String>,
    /// The errors of the capability, each with its recovery actions.
    pub errors: BTreeMap<String, Vec<String>>,
    /// Search keywords.
    pub tags: Vec<String>,
    /// For each side effect of the capability, whether it can be undone.
    pub reversible: Vec<bool>,
    /// The calls of each usage pattern of the capability, in the order of the document.
    pub patterns: Vec<Vec<String>>,
}

/// One documented input.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KruxDocumentedParameter {
    /// Name of the input.
    pub name: String,
    /// Whether the input is required.
    pub required: bool,
    /// Its default.
    #[serde(default)]
    pub default: Option<Value>,
}

/// The facts about all capabilities in the published krux document.
#[expect(clippy::expect_used, reason = "a table that cannot be read is a mistake in the tests")]
pub fn documented_capabilities() -> Vec<KruxDocumentedCapability> {
    serde_json::from_str(include_str!("../cases/krux-document.json")).expect("the table")
}

#[expect(clippy::panic, reason = "a case that cannot be read is a mistake in the tests")]
fn parse_suite(name: &str, text: &str) -> KruxCapabilityScenarios {
    match serde_json::from_str::<KruxCapabilityScenarios>(text) {
        Ok(suite) if suite.capability == name => suite,
        Ok(suite) => panic!("{name} is about {}", suite.capability),
        Err(error) => panic!("{name}: {error}"),
    }
}

/// Runs one krux scenario and returns the replies to all calls. Panics at the first difference from an expected reply.
#[expect(clippy::panic, reason = "a scenario fails by panicking")]
pub fn play_scenario(scenario: &KruxScenario, backend: &mut dyn KruxScenarioSubject) -> Vec<KruxScenarioActualReply> {
    if scenario.needs.is_some_and(|need| !backend.supports(need)) {
        return Vec::new();
    }
    for (path, content) in &scenario.tree {
        match content {
            Value::String(_) if path.ends_with('/') => {
                backend.create_item(path.trim_end_matches('/'), InitialItem::Directory);
            }
            Value::String(text) => backend.create_item(path, InitialItem::File(text.as_bytes())),
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                backend.create_item(path, InitialItem::File(&byte_list(other)));
            }
        }
    }
    for (path, target) in &scenario.links {
        backend.create_item(path, InitialItem::Link(target));
    }
    if let Some(policy) = &scenario.policy {
        backend.set_policy(policy);
    }
    let mut names: BTreeMap<String, String> = BTreeMap::from([("$WS".to_owned(), backend.workspace_path())]);
    let mut replies = Vec::new();
    for (number, step) in scenario.steps.iter().enumerate() {
        let place = format!("{}, step {}", scenario.title, number + 1);
        backend.advance_ms(step.advance_ms);
        let inputs = substitute_names(&Value::Object(step.inputs.clone()), &names);
        let Value::Object(inputs) = inputs else { panic!("{place}: inputs are an object") };
        let by = |(prefix, who): &(&str, KruxScenarioOtherCallerKind)| Some((*who, step.call.strip_prefix(prefix)?));
        if let Some((who, operation)) = OTHER_CALLER_PREFIXES.iter().find_map(by) {
            backend.call_as_other(who, operation, &inputs);
            continue;
        }
        for _ in 0..step.after {
            backend.call(&step.call, &inputs);
        }
        if let Some(kind) = &step.fails {
            backend.fail_next(kind);
        }
        let mut outcome = backend.call(&step.call, &inputs);
        if let Some(word) = step.asks {
            let pending = outcome.object["status"] == "pending_approval" && outcome.is_error;
            assert!(pending, "{place}: no approval was requested: {}", outcome.object);
            backend.answer_approval(outcome.object["approval_id"].as_str().unwrap_or_default(), word);
            replies.push(follow_recovery(&place, "wait", &inputs, &outcome, backend));
            let again = retry_call(&place, &inputs, &outcome, backend);
            replies.push(std::mem::replace(&mut outcome, again));
        }
        check_step(&place, step, &outcome, &names);
        for (name, field) in &step.keep {
            let kept = outcome.object[field].as_str().unwrap_or_default();
            names.insert(format!("${name}"), kept.to_owned());
        }
        replies.push(outcome.clone());
        for action in &step.follow {
            replies.push(follow_recovery(&place, action, &inputs, &outcome, backend));
        }
    }
    replies
}

#[expect(clippy::panic, reason = "a scenario fails by panicking")]
fn check_step(
    place: &str,
    step: &KruxScenarioStep,
    outcome: &KruxScenarioActualReply,
    names: &BTreeMap<String, String>,
) {
    let object = &outcome.object;
    if let Some(error) = &step.error {
        assert!(outcome.is_error, "{place}: {object}");
        assert_eq!(object["error"], error.as_str(), "{place}: {object}");
        let ways = object["recovery"].as_array().map(Vec::len);
        assert!(ways.is_some_and(|count| count > 0), "{place}: no way out of {object}");
    } else if outcome.is_error {
        panic!("{place}: {object}");
    }
    for (field, expected) in &step.answer {
        let expected = substitute_names(expected, names);
        assert_eq!(object[field], expected, "{place}: {field} of {object}");
    }
    for (field, expected) in &step.like {
        assert!(contains_expected(&object[field], &substitute_names(expected, names)), "{place}: {field} of {object}");
    }
}

/// Whether a JSON value has all members of the expected value; other members are ignored.
fn contains_expected(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => expected
            .iter()
            .all(|(name, expected)| found.get(name).is_some_and(|found| contains_expected(found, expected))),
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, expected)| contains_expected(found, expected))
        }
        (found, expected) => found == expected,
    }
}

/// Makes the call of a recovery action exactly as the error describes it; the call must succeed.
fn follow_recovery(
    place: &str,
    action: &str,
    inputs: &Map<String, Value>,
    outcome: &KruxScenarioActualReply,
    backend: &mut dyn KruxScenarioSubject,
) -> KruxScenarioActualReply {
    let led = call_recovery(place, action, inputs, outcome, backend);
    assert!(!led.is_error, "{place}: {action} leads to {}", led.object);
    led
}

/// Repeats a call as the recovery action `retry` of an error describes it.
fn retry_call(
    place: &str,
    inputs: &Map<String, Value>,
    outcome: &KruxScenarioActualReply,
    backend: &mut dyn KruxScenarioSubject,
) -> KruxScenarioActualReply {
    call_recovery(place, "retry", inputs, outcome, backend)
}

/// Makes the call that a recovery action of an error describes.
#[expect(clippy::panic, reason = "a scenario fails by panicking")]
fn call_recovery(
    place: &str,
    action: &str,
    inputs: &Map<String, Value>,
    outcome: &KruxScenarioActualReply,
    backend: &mut dyn KruxScenarioSubject,
) -> KruxScenarioActualReply {
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
    backend.call(capability, &call)
}

/// Replaces `$WS` and the names of saved values in a JSON value.
fn substitute_names(value: &Value, names: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => {
            let mut text = text.clone();
            for (name, meant) in names {
                text = text.replace(name, meant);
            }
            text.into()
        }
        Value::Array(items) => items.iter().map(|item| substitute_names(item, names)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), substitute_names(value, names))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Converts a JSON list of numbers to bytes.
fn byte_list(value: &Value) -> Vec<u8> {
    let numbers = value.as_array().into_iter().flatten();
    numbers.filter_map(Value::as_u64).filter_map(|number| u8::try_from(number).ok()).collect()
}

/// A reply in which values that differ between protocols, such as the session id, are replaced by `…`.
pub fn without_protocol_fields(outcome: &KruxScenarioActualReply) -> Value {
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
