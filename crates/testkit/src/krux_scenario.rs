//! Scenarios that test the krux capabilities over any protocol. A test supplies a [`KruxScenarioSubject`] that makes
//! the calls.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The scenarios of one krux capability.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KruxCapabilityScenarios {
    /// The krux capability that the scenarios test.
    pub capability: String,
    /// The scenarios of the krux capability.
    pub scenarios: Vec<KruxScenario>,
}

/// One scenario of a krux capability: initial files and the calls to make.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KruxScenario {
    /// The title of the krux scenario.
    pub title: String,
    /// The documented usage pattern that the krux scenario follows.
    #[serde(default)]
    pub pattern: Option<String>,
    /// The policy that applies from the first call of the scenario on.
    #[serde(default)]
    pub policy: Option<String>,
    /// The feature of the test subject without which the scenario cannot run.
    #[serde(default)]
    pub needs: Option<ScenarioRequirement>,
    /// The initial files of the scenario by path; a path that ends in a slash is a directory.
    #[serde(default)]
    pub tree: Map<String, Value>,
    /// The target of each initial symbolic link of the scenario, by the link's path.
    #[serde(default)]
    pub links: BTreeMap<String, String>,
    /// The calls of the scenario in order.
    pub steps: Vec<KruxScenarioStep>,
}

/// A feature that only some test subjects have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioRequirement {
    /// The test subject can advance its clock.
    Clock,
    /// The test subject can simulate a full disk.
    Full,
    /// The test subject can make thousands of calls in reasonable time.
    Many,
    /// The test subject can make a call fail with a chosen error.
    Faults,
}

/// The kind of a caller in a krux scenario that calls native operations beside the tested agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KruxScenarioOtherCallerKind {
    /// Another agent calls a native operation.
    Agent,
    /// A person calls a native operation.
    Person,
}

const OTHER_CALLER_PREFIXES: &[(&str, KruxScenarioOtherCallerKind)] =
    &[("others:", KruxScenarioOtherCallerKind::Agent), ("persons:", KruxScenarioOtherCallerKind::Person)];

/// One call of a krux scenario with its expected reply.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KruxScenarioStep {
    /// The name of a krux capability, or of a native operation after the prefix `others:` or `persons:`.
    pub call: String,
    /// The inputs of the call, in which `$WS` stands for the workspace path and `$NAME` for a saved value.
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// A person's answer to the call's approval request, after which the call is repeated.
    #[serde(default)]
    pub asks: Option<ScenarioApprovalAnswer>,
    /// The error kind that the test injects, so that the call fails.
    #[serde(default)]
    pub fails: Option<String>,
    /// The fields that the reply must have with exactly these values.
    #[serde(default)]
    pub answer: Map<String, Value>,
    /// The fields that the reply must have; objects may have other members too.
    #[serde(default)]
    pub like: Map<String, Value>,
    /// The name of the error with which the call must fail.
    #[serde(default)]
    pub error: Option<String>,
    /// The recovery actions of the expected error that the test performs, each of which must succeed.
    #[serde(default)]
    pub follow: Vec<String>,
    /// The fields of the reply to save for later steps, by name.
    #[serde(default)]
    pub keep: BTreeMap<String, String>,
    /// The number of times that the same call is made before the call whose reply is checked.
    #[serde(default)]
    pub after: usize,
    /// The time in milliseconds by which the clock advances before the call.
    #[serde(default)]
    pub advance_ms: i64,
}

/// The answer of a person to an approval request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioApprovalAnswer {
    /// The person approves the call.
    Yes,
    /// The person denies the call.
    No,
}

/// The reply to a call of a krux capability.
#[derive(Debug, Clone, PartialEq)]
pub struct KruxScenarioActualReply {
    /// The JSON object that the krux dialect returned for the call.
    pub object: Value,
    /// Whether the reply of the krux dialect is an error.
    pub is_error: bool,
}

/// A workspace behind a protocol, on which krux scenarios run.
pub trait KruxScenarioSubject {
    /// Returns the absolute path of the workspace.
    fn workspace_path(&self) -> String;

    /// Returns whether the subject has a feature; scenarios that need a missing feature are skipped.
    fn supports(&self, need: ScenarioRequirement) -> bool;

    /// Creates a file, directory or link before the calls of a scenario.
    fn create_item(&mut self, path: &str, what: InitialItem<'_>);

    /// Advances the subject's clock by this many milliseconds.
    fn advance_ms(&mut self, _ms: i64) {}

    /// Replaces the policy of the subject's workspace.
    fn set_policy(&mut self, policy: &str);

    /// Makes the subject's next call fail with this error kind.
    fn fail_next(&mut self, _kind: &str) {}

    /// Answers a pending approval request as a person.
    fn answer_approval(&mut self, id: &str, word: ScenarioApprovalAnswer);

    /// Calls a native operation as another agent or as a person.
    fn call_as_other(&mut self, somebody: KruxScenarioOtherCallerKind, operation: &str, arguments: &Map<String, Value>);

    /// Calls a krux capability and returns the reply.
    fn call(&mut self, capability: &str, inputs: &Map<String, Value>) -> KruxScenarioActualReply;
}

/// The content of a path that exists before the calls of a scenario.
#[derive(Debug, Clone, Copy)]
pub enum InitialItem<'a> {
    /// The initial item is a file with this content.
    File(&'a [u8]),
    /// The initial item is a directory.
    Directory,
    /// The initial item is a symbolic link with this target.
    Link(&'a str),
}

macro_rules! suites {
    ($($name:literal),+ $(,)?) => {
        /// Parses all krux scenario suites, in the order of the krux document.
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
    /// The name of the documented capability.
    pub name: String,
    /// The supervision tier of the documented capability.
    pub tier: String,
    /// The version of the documented capability.
    pub version: String,
    /// The inputs of the documented capability.
    pub inputs: Vec<KruxDocumentedParameter>,
    /// The outputs of the documented capability.
    pub outputs: Vec<String>,
    /// The recovery actions of each error of the documented capability.
    pub errors: BTreeMap<String, Vec<String>>,
    /// The search keywords of the documented capability.
    pub tags: Vec<String>,
    /// Whether each side effect of the documented capability can be undone.
    pub reversible: Vec<bool>,
    /// The calls of each usage pattern of the documented capability, in the document's order.
    pub patterns: Vec<Vec<String>>,
}

/// One input of a documented krux capability.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KruxDocumentedParameter {
    /// The name of the documented input.
    pub name: String,
    /// Whether the documented input is required.
    pub required: bool,
    /// The default value of the documented input.
    #[serde(default)]
    pub default: Option<Value>,
}

/// Parses the facts about all capabilities of the published krux document.
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

/// Runs one krux scenario and returns the replies to all calls. An unexpected reply causes a panic.
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

fn retry_call(
    place: &str,
    inputs: &Map<String, Value>,
    outcome: &KruxScenarioActualReply,
    backend: &mut dyn KruxScenarioSubject,
) -> KruxScenarioActualReply {
    call_recovery(place, "retry", inputs, outcome, backend)
}

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

fn byte_list(value: &Value) -> Vec<u8> {
    let numbers = value.as_array().into_iter().flatten();
    numbers.filter_map(Value::as_u64).filter_map(|number| u8::try_from(number).ok()).collect()
}

/// Replaces the values of a reply that differ between protocols, such as the session id, by `…`.
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
