//! Runs the attack corpus through the ACP proxy. The test checks only that no attack does harm, because ACP replies
//! differ from the expected replies of the corpus.

use std::{io, path::Path};

use serde_json::json;
use stead_engine::{Caller, Engine, Principal};
use stead_local::{Durability, LocalWorkspace, LocalWorkspaceOptions};
use testkit::attack::{
    AttackCase, AttackSubject, AttackSubjectReply, AttackSubjectRequest, AttackVerdict, ExpectedAttackResult,
    SubjectJournal, SubjectOptions, case_requirements, load_groups, load_matrix, run_sharing_fixture, split_shareable,
};
use testkit::native::{EngineJsonCalls, JsonCall};

use super::harness::AcpProxyTestProcess;
use testkit::error_json;

struct AcpAttackSubject {
    process: AcpProxyTestProcess,
    /// The engine runs the calls of attack cases for which ACP has no method.
    engine: Engine,
    workspace: String,
}

fn method_of_operation(operation: &str) -> Option<&'static str> {
    match operation {
        "read" | "stat" => Some("fs/read_text_file"),
        "write" | "append" => Some("fs/write_text_file"),
        _ => None,
    }
}

impl AcpAttackSubject {
    fn open(opening: &SubjectOptions) -> io::Result<Box<dyn AttackSubject>> {
        let params = json!({ "cwd": opening.workspace, "mcpServers": [] });
        let mut flags = vec!["--durability", "fast", "--approve", "deny"];
        let policy = opening.state.join("policy.toml");
        if policy.exists() {
            flags.extend(["--policy", policy.to_str().unwrap_or_default()]);
        }
        let proxy = AcpProxyTestProcess::with_session(&opening.state, &flags, &params);
        // A lock in the proxy's state directory also binds the agent.
        let state = std::fs::read_dir(opening.state.join("stead"))?
            .next()
            .expect("the proxy creates a state directory")?
            .path();
        let mut options = LocalWorkspaceOptions::new(opening.workspace.clone(), state);
        options.durability = Durability::Fast;
        let engine = Engine::new(LocalWorkspace::open(options).map_err(io::Error::other)? as _);
        let workspace = opening.workspace.to_str().unwrap_or_default().to_owned();
        Ok(Box::new(Self { process: proxy, engine, workspace }))
    }
}

impl AttackSubject for AcpAttackSubject {
    fn send(&mut self, request: &AttackSubjectRequest) -> io::Result<AttackSubjectReply> {
        let Some(method) = method_of_operation(&request.operation) else {
            let principal = Principal::parse(&request.principal).map_err(io::Error::other)?;
            let caller = Caller::new(principal, "attack", "library");
            return Ok(
                match self.engine.call(&JsonCall::new(&caller, &request.operation, request.arguments.clone())) {
                    Ok(answer) => AttackSubjectReply { refusal: None, json: answer.json.into(), text: answer.text },
                    Err(failure) => AttackSubjectReply {
                        refusal: Some(failure.kind.code().into()),
                        json: error_json(&failure),
                        text: String::new(),
                    },
                },
            );
        };
        let given = request.arguments.get("path").cloned().unwrap_or_default();
        let relative = given.as_str().filter(|path| !path.starts_with('/'));
        let path = relative.map_or(given.clone(), |path| format!("{}/{path}", self.workspace).into());
        let content = request.arguments.get("content").cloned().unwrap_or_else(|| "x".into());
        let answer = self.process.call_from_agent(method, json!({ "path": path, "content": content }));
        let text = answer.to_string().replace(&path.to_string(), "\"$P\"").replace(&self.workspace, "$W");
        let json = serde_json::from_str(&text).unwrap_or_default();
        Ok(AttackSubjectReply { refusal: answer.get("error").map(|_| "refused".to_owned()), json, text })
    }

    fn finish(self: Box<Self>, _workspace: &Path) -> io::Result<Option<SubjectJournal>> {
        Ok(None)
    }
}

#[test]
fn attack_corpus_holds_through_the_acp_proxy() {
    let open = |opening: &SubjectOptions| AcpAttackSubject::open(opening);
    let (mut ran, mut harmed) = (0, Vec::new());
    let groups = load_groups().unwrap().into_iter().filter(|group| group.group != "race");
    for group in groups.chain([load_matrix().unwrap()]) {
        let fitting = |case: &&AttackCase| {
            let needs = case_requirements(&group, case).unwrap();
            let here = case.only.is_none() && !needs.mounts && !needs.devices && !needs.in_process;
            here && case.raw.is_none() && method_of_operation(&case.operation).is_some()
        };
        let cases: Vec<AttackCase> = group.cases.iter().filter(fitting).cloned().collect();
        for portion in split_shareable(&cases) {
            let mut portion = portion.to_vec();
            for case in &mut portion {
                case.expect.result = ExpectedAttackResult::Safe;
                case.check = Default::default();
            }
            let verdicts = match run_sharing_fixture(&group, &portion, &open, stead_disk::PathResolutionMethod::Auto) {
                Err(error) if error.to_string().starts_with("setup: ") => continue,
                other => other.unwrap(),
            };
            ran += portion.len();
            harmed.extend(verdicts.iter().filter(|verdict| verdict.did_harm()).map(AttackVerdict::faults_text));
        }
    }
    assert!(ran > 100, "only {ran} cases ran");
    assert!(harmed.is_empty(), "{} of {ran}:\n{}", harmed.len(), harmed.join("\n"));
}
