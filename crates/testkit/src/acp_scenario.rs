//! Scenarios that test the ACP file methods over any transport. A test supplies an [`AcpScenarioAgent`] that makes the
//! calls.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// A suite of ACP scenarios about one subject.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcpScenarioSuite {
    /// The subject of the suite of ACP scenarios.
    pub suite: String,
    /// The ACP scenarios of the suite.
    pub scenarios: Vec<AcpFileScenario>,
}

/// One ACP scenario: initial files and links, and the steps to run on them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcpFileScenario {
    /// The title of the ACP scenario.
    pub title: String,
    /// The initial files of the scenario by path, each with a text or a list of bytes as content.
    pub tree: Map<String, Value>,
    /// The target of each initial symbolic link of the scenario, by the link's path.
    #[serde(default)]
    pub links: BTreeMap<String, String>,
    /// The steps of the scenario in order.
    pub steps: Vec<AcpScenarioStep>,
}

/// One step of an ACP scenario.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum AcpScenarioStep {
    /// The agent calls an ACP method.
    Call(AcpScenarioCall),
    /// Another program changes files on disk.
    ExternalChange {
        /// The new content of each changed file by path; JSON `null` removes the file.
        others: Map<String, Value>,
    },
}

/// One call of an ACP method with its expected response. In the parameters and the response, `$WS` stands for the
/// session's working directory.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcpScenarioCall {
    /// The name of the called ACP method.
    pub call: String,
    /// The parameters of the ACP call, to which a missing session id is added.
    pub params: Map<String, Value>,
    /// The expected result of the ACP call.
    #[serde(default)]
    pub result: Option<Value>,
    /// The fields that the error of the ACP response must contain.
    #[serde(default)]
    pub error: Option<Value>,
}

/// An agent that makes the calls of an ACP scenario in its own session and directory.
pub trait AcpScenarioAgent {
    /// Returns the absolute path of the session's working directory.
    fn directory(&self) -> String;

    /// Writes a file directly on disk as another program would; `None` removes the file.
    fn set_file(&mut self, path: &str, bytes: Option<&[u8]>);

    /// Creates a symbolic link directly on disk.
    fn create_symlink(&mut self, path: &str, target: &str);

    /// Calls an ACP method in the session and returns the whole response.
    fn call(&mut self, method: &str, params: Value) -> Value;
}

/// Parses all suites of ACP scenarios.
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

/// Runs an ACP scenario; the error describes the first unexpected response.
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
