//! Scenarios of the file methods of the Agent Client Protocol: calls, what they must answer, and what others do to the
//! files meanwhile. The runner knows no transport: whoever plays brings an [`Agent`].

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// Several scenarios about one matter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// The matter.
    pub suite: String,
    /// What is tried.
    pub scenarios: Vec<Scenario>,
}

/// One scenario: a tree and calls.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is about.
    pub title: String,
    /// Files by path: text, or a list of bytes.
    pub tree: Map<String, Value>,
    /// Links by path.
    #[serde(default)]
    pub links: BTreeMap<String, String>,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// One thing that happens.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// The agent calls.
    Call(Called),
    /// Others change files.
    Others {
        /// Files by path: their text now, or nothing where they are taken away.
        others: Map<String, Value>,
    },
}

/// One call and its answer. `$WS` is the working directory of the session.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Called {
    /// The method.
    pub call: String,
    /// Its params; the session is added where none is named.
    pub params: Map<String, Value>,
    /// The result it must have.
    #[serde(default)]
    pub result: Option<Value>,
    /// The error it must have; `data` is compared where it is given.
    #[serde(default)]
    pub error: Option<Value>,
}

/// Whoever plays a scenario: an agent in a session of its own, over a directory of its own.
pub trait Agent {
    /// The absolute path of the working directory.
    fn directory(&self) -> String;

    /// Puts a file there, or takes it away, past everything that watches.
    fn plant(&mut self, path: &str, bytes: Option<&[u8]>);

    /// Puts a link there.
    fn link(&mut self, path: &str, target: &str);

    /// Calls a method in the session, and gives the whole answer back.
    fn call(&mut self, method: &str, params: Value) -> Value;
}

/// Every suite.
pub fn suites() -> Vec<Suite> {
    let texts = [
        include_str!("../cases/acp/slicing.json"),
        include_str!("../cases/acp/errors.json"),
        include_str!("../cases/acp/merging.json"),
    ];
    texts.iter().map(|text| suite(text)).collect()
}

#[expect(clippy::panic, reason = "a case that cannot be read is a mistake in the tests")]
fn suite(text: &str) -> Suite {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("a suite of the file methods: {error}"))
}

/// Plays a scenario; says what was not as it must be.
pub fn play(scenario: &Scenario, agent: &mut dyn Agent) -> Result<(), String> {
    let directory = agent.directory();
    for (path, content) in &scenario.tree {
        agent.plant(path, bytes(content).as_deref());
    }
    for (path, target) in &scenario.links {
        agent.link(path, target);
    }
    for (number, step) in scenario.steps.iter().enumerate() {
        let called = match step {
            Step::Call(called) => called,
            Step::Others { others } => {
                for (path, content) in others {
                    agent.plant(path, bytes(content).as_deref());
                }
                continue;
            }
        };
        let place = |value: &Value| -> Value {
            let text = value.to_string().replace("$WS", &directory);
            serde_json::from_str(&text).unwrap_or_default()
        };
        let answer = agent.call(&called.call, place(&Value::Object(called.params.clone())));
        judge(called, &answer, place).map_err(|wrong| {
            let title = &scenario.title;
            format!("{title}, step {}: {} {:?}: {wrong}: {answer}", number + 1, called.call, called.params)
        })?;
    }
    Ok(())
}

fn judge(called: &Called, answer: &Value, place: impl Fn(&Value) -> Value) -> Result<(), String> {
    if let Some(result) = &called.result {
        let wanted = place(result);
        return if answer["result"] == wanted { Ok(()) } else { Err(format!("not the result {wanted}")) };
    }
    let Some(error) = called.error.as_ref().map(&place) else { return Err("nothing is expected".to_owned()) };
    let wrong = error
        .as_object()
        .into_iter()
        .flatten()
        .find(|(name, wanted)| answer["error"][name.as_str()] != **wanted);
    match wrong {
        None => Ok(()),
        Some((name, wanted)) => Err(format!("{name} of the error is not {wanted}")),
    }
}

/// The bytes that a case means.
fn bytes(content: &Value) -> Option<Vec<u8>> {
    match content {
        Value::String(text) => Some(text.clone().into_bytes()),
        Value::Array(bytes) => Some(bytes.iter().filter_map(|byte| byte.as_u64()?.try_into().ok()).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}
