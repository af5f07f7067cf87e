//! Runs the attack corpus through the published dialects. The test checks only that no attack does harm, because
//! dialects accept paths that the native dialect rejects.

use std::{io, path::Path, sync::Arc};

use serde_json::{Map, Value, json};
use stead_engine::{Caller, Engine, Principal};
use stead_local::{Durability, LocalWorkspace, LocalWorkspaceOptions};
use stead_protocols::dialect::{self, DialectSet, DialectWorkspaceRootPath};
use testkit::attack::{
    AttackCase, AttackSubject, AttackSubjectReply, AttackSubjectRequest, AttackVerdict, ExpectedAttackResult,
    SubjectJournal, SubjectOptions, case_requirements, load_groups, load_matrix, run_sharing_fixture, split_shareable,
};
use testkit::error_json;
use testkit::native::{EngineJsonCalls, JsonCall};

struct DialectAttackSubject {
    engine: Engine,
    dialects: DialectSet,
    name: &'static str,
    workspace: String,
}

fn tool_of_operation(dialect: &str, operation: &str) -> Option<&'static str> {
    match (dialect, operation) {
        ("weaver", "read" | "stat") => Some("read_file"),
        ("weaver", "write") => Some("write_file"),
        ("weaver", "append") => Some("append_file"),
        ("weaver", "list") => Some("list_dir"),
        // Only the listed comma tools have arguments with the same names as the native operations.
        ("comma", "read" | "stat") => Some("read_file"),
        ("comma", "list") => Some("list_directory"),
        ("comma", "write") => Some("create_file"),
        ("comma", "remove") => Some("delete_file"),
        ("comma", "patch") => Some("apply_patch"),
        ("jettson", "read" | "stat") => Some("jettson_files_read"),
        ("jettson", "write" | "append") => Some("jettson_files_write"),
        ("jettson", "list") => Some("jettson_files_list"),
        ("jettson", "remove") => Some("jettson_files_delete"),
        _ => None,
    }
}

impl DialectAttackSubject {
    fn open(name: &'static str, options: &[&str], opening: &SubjectOptions) -> io::Result<Box<dyn AttackSubject>> {
        let mut local = LocalWorkspaceOptions::new(opening.workspace.clone(), opening.state.clone());
        local.durability = Durability::Fast;
        local.resolver = opening.resolver;
        let local = LocalWorkspace::open(local).map_err(io::Error::other)?;
        let workspace = opening.workspace.to_str().unwrap_or_default().to_owned();
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let place = DialectWorkspaceRootPath { root: workspace.clone() };
        let dialects = DialectSet::from_names(&[name.to_owned()], &options, &place).map_err(io::Error::other)?;
        Ok(Box::new(Self { engine: Engine::new(Arc::clone(&local) as _), dialects, name, workspace }))
    }

    fn call_tool(&self, caller: &Caller, tool: &str, arguments: &Map<String, Value>) -> AttackSubjectReply {
        let dialect = self.dialects.find_by_tool(tool).expect("the dialect has the tool");
        let call = dialect.clone().translate(tool, arguments);
        let reply = call.run(&self.engine, caller, None, &stead_engine::CallControl::default()).reply;
        // A dialect may name the workspace's path, and its parent if the caller already named the parent.
        let holder = Path::new(&self.workspace).parent().and_then(Path::to_str).unwrap_or_default();
        let named = arguments.values().filter_map(Value::as_str).any(|given| given.contains(holder));
        // For an escape, the comma dialect names the absolute form of the requested path.
        let named = named || self.name == "comma";
        let hide = |text: String| {
            let plain = text.replace(&self.workspace, "$W");
            if named { plain.replace(holder, "$H") } else { plain }
        };
        let json = serde_json::from_str(&hide(reply.json)).unwrap_or_default();
        let refused = (reply.status == dialect::ReplyStatus::Error).then(|| "refused".to_owned());
        AttackSubjectReply { refusal: refused, json, text: hide(reply.text) }
    }
}

impl AttackSubject for DialectAttackSubject {
    fn send(&mut self, request: &AttackSubjectRequest) -> io::Result<AttackSubjectReply> {
        let principal = Principal::parse(&request.principal).map_err(io::Error::other)?;
        let caller = Caller::new(principal, "attack", "library");
        let arguments = match &request.raw {
            None => request.arguments.clone(),
            Some(raw) => match serde_json::from_slice(raw) {
                Ok(arguments) => arguments,
                Err(_) => {
                    return Ok(AttackSubjectReply {
                        refusal: Some("unread".into()),
                        json: json!({}),
                        text: String::new(),
                    });
                }
            },
        };
        if let Some(tool) = tool_of_operation(self.name, &request.operation) {
            return Ok(self.call_tool(&caller, tool, &arguments));
        }
        Ok(match self.engine.call(&JsonCall::new(&caller, &request.operation, arguments)) {
            Ok(answer) => AttackSubjectReply { refusal: None, json: answer.json.into(), text: answer.text },
            Err(failure) => AttackSubjectReply {
                refusal: Some(failure.kind.code().into()),
                json: error_json(&failure),
                text: String::new(),
            },
        })
    }

    fn finish(self: Box<Self>, _workspace: &Path) -> io::Result<Option<SubjectJournal>> {
        Ok(None)
    }
}

fn assert_corpus_passes(name: &'static str, options: &[&str]) {
    let open = |opening: &SubjectOptions| DialectAttackSubject::open(name, options, opening);
    let (mut ran, mut harmed) = (0, Vec::new());
    // Races are tested on the engine, because they do not depend on the dialect.
    let groups = load_groups().unwrap().into_iter().filter(|group| group.group != "race");
    for group in groups.chain([load_matrix().unwrap()]) {
        let fitting = |case: &&AttackCase| {
            let needs = case_requirements(&group, case).unwrap();
            let here = case.only.is_none() && !needs.mounts && !needs.devices && !needs.in_process;
            here && tool_of_operation(name, &case.operation).is_some()
        };
        let cases: Vec<AttackCase> = group.cases.iter().filter(fitting).cloned().collect();
        for portion in split_shareable(&cases) {
            let mut portion = portion.to_vec();
            for case in &mut portion {
                case.expect.result = ExpectedAttackResult::Safe;
                case.check = Default::default();
                // The published dialects have no base versions.
                case.arguments.remove("base");
            }
            let verdicts = match run_sharing_fixture(&group, &portion, &open, stead_disk::PathResolutionMethod::Auto) {
                // A case cannot run if the dialect rejects the case's setup call.
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

#[test]
fn attack_corpus_holds_over_jettson() {
    assert_corpus_passes("jettson", &[]);
}

#[test]
fn attack_corpus_holds_over_weaver() {
    assert_corpus_passes("weaver", &[]);
}

#[test]
fn attack_corpus_holds_over_the_newest_weaver() {
    assert_corpus_passes("weaver", &["generation=newest"]);
}

#[test]
fn attack_corpus_holds_over_comma() {
    assert_corpus_passes("comma", &["forbidden_globs=none"]);
    assert_corpus_passes("comma", &["forbidden_globs=none", "allow_absolute=true", "origin=exact"]);
}
