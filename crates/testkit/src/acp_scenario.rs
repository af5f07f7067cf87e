//! Scenarios of the ACP file methods: calls, expected responses, and concurrent changes by other programs. Independent
//! of the transport; a test supplies an [`AcpScenarioAgent`].

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// Scenarios about one subject.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcpScenarioSuite {
    /// The subject.
    pub suite: String,
    /// The scenarios.
    pub scenarios: Vec<AcpFileScenario>,
}

/// One scenario: a tree and its steps.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcpFileScenario {
    /// Title of the scenario.
    pub title: String,
    /// Files by path: text, or a list of bytes.
    pub tree: Map<String, Value>,
    /// Links by path.
    #[serde(default)]
    pub links: BTreeMap<String, String>,
    /// Steps in order.
    pub steps: Vec<AcpScenarioStep>,
}

/// One step.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum AcpScenarioStep {
    /// A call of the agent.
    Call(AcpScenarioCall),
    /// A change by another program.
    ExternalChange {
        /// New text by path; `None` removes the file.
        others: Map<String, Value>,
    },
}

/// A call and its expected response. `$WS` is the session's working directory.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcpScenarioCall {
    /// The method.
    pub call: String,
    /// Parameters; the session is added if missing.
    pub params: Map<String, Value>,
    /// The expected result.
    #[serde(default)]
    pub result: Option<Value>,
    /// The expected error; `data` is compared if given.
    #[serde(default)]
    pub error: Option<Value>,
}

/// Runs scenarios: an agent in its own session and directory.
pub trait AcpScenarioAgent {
    /// Absolute path of the working directory.
    fn directory(&self) -> String;

    /// Writes or removes a file outside stead.
    fn set_file(&mut self, path: &str, bytes: Option<&[u8]>);

    /// Creates a link.
    fn create_symlink(&mut self, path: &str, target: &str);

    /// Calls a method in the session and returns the whole response.
    fn call(&mut self, method: &str, params: Value) -> Value;
}

/// All suites.
pub fn load_suites() -> Vec<AcpScenarioSuite> {
    let texts = [
        include_str!("../cases/acp/slicing.json"),
        include_str!("../cases/acp/errors.json"),
        include_str!("../cases/acp/merging.json"),
    ];
    texts.iter().map(|text| parse_suite(text)).collect()
}

#[expect(clippy::panic, reason = "a case that cannot be read is a mistake in the tests")]
fn parse_suite(text: &str) -> AcpScenarioSuite {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("a suite of the file methods: {error}"))
}

/// Runs a scenario and returns the differences.
pub fn play_scenario(scenario: &AcpFileScenario, agent: &mut dyn AcpScenarioAgent) -> Result<(), String> {
    let directory = agent.directory();
    for (path, content) in &scenario.tree {
        agent.set_file(path, file_bytes(content).as_deref());
    }
    for (path, target) in &scenario.links {
        agent.create_symlink(path, target);
    }
    for (number, step) in scenario.steps.iter().enumerate() {
        let called = match step {
            AcpScenarioStep::Call(called) => called,
            AcpScenarioStep::ExternalChange { others } => {
                for (path, content) in others {
                    agent.set_file(path, file_bytes(content).as_deref());
                }
                continue;
            }
        };
        let place = |value: &Value| -> Value {
            let text = value.to_string().replace("$WS", &directory);
            serde_json::from_str(&text).unwrap_or_default()
        };
        let answer = agent.call(&called.call, place(&Value::Object(called.params.clone())));
        check_answer(called, &answer, place).map_err(|wrong| {
            let title = &scenario.title;
            format!("{title}, step {}: {} {:?}: {wrong}: {answer}", number + 1, called.call, called.params)
        })?;
    }
    Ok(())
}

fn check_answer(called: &AcpScenarioCall, answer: &Value, place: impl Fn(&Value) -> Value) -> Result<(), String> {
    if let Some(result) = &called.result {
        let wanted = place(result);
        return if answer["result"] == wanted { Ok(()) } else { Err(format!("not the result {wanted}")) };
    }
    let Some(error) = called.error.as_ref().map(&place) else { return Err("nothing is expected".to_owned()) };
    let wrong =
        error.as_object().into_iter().flatten().find(|(name, wanted)| answer["error"][name.as_str()] != **wanted);
    match wrong {
        None => Ok(()),
        Some((name, wanted)) => Err(format!("{name} of the error is not {wanted}")),
    }
}

fn file_bytes(content: &Value) -> Option<Vec<u8>> {
    match content {
        Value::String(text) => Some(text.clone().into_bytes()),
        Value::Array(bytes) => Some(bytes.iter().filter_map(|byte| byte.as_u64()?.try_into().ok()).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}
