//! The attack corpus through the published vocabularies. They take spellings that the native one refuses, so what a case
//! wants as an answer does not count here; what must always hold does: nothing outside changes, nothing of it is
//! answered, nothing hangs.

use std::{io, path::Path, sync::Arc};

use serde_json::{Map, Value, json};
use stead_engine::{Call, Caller, Engine, Principal};
use stead_local::{Durability, LocalWorkspace, LocalWorkspaceOptions};
use stead_protocols::dialect::{self, DialectSet, WorkspaceLocation};
use testkit::attack::{
    AttackCase, AttackSubject, AttackVerdict, ExpectedAttackResult, SubjectJournal, SubjectOptions, SubjectReply,
    SubjectRequest, case_requirements, load_groups, load_matrix, run_sharing_fixture, split_shareable,
};

/// One vocabulary over a workspace.
struct DialectAttackSubject {
    engine: Engine,
    dialects: DialectSet,
    name: &'static str,
    workspace: String,
}

/// What a native operation is called there.
fn tool_of_operation(dialect: &str, operation: &str) -> Option<&'static str> {
    match (dialect, operation) {
        ("weaver", "read" | "stat") => Some("read_file"),
        ("weaver", "write") => Some("write_file"),
        ("weaver", "append") => Some("append_file"),
        ("weaver", "list") => Some("list_dir"),
        // Arguments have the same names there; those of the other tools do not.
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
        let place = WorkspaceLocation { root: workspace.clone() };
        let dialects = DialectSet::from_names(&[name.to_owned()], &options, &place).map_err(io::Error::other)?;
        Ok(Box::new(Self { engine: Engine::new(Arc::clone(&local) as _), dialects, name, workspace }))
    }

    fn call_tool(&self, caller: &Caller, tool: &str, arguments: &Map<String, Value>) -> SubjectReply {
        let dialect = self.dialects.find_by_tool(tool).expect("it has the tool");
        let request = dialect.translate(tool, arguments);
        let mut call = Call::new(caller, &request.operation, request.arguments);
        call.options = request.options;
        let reply = dialect.render_reply(tool, arguments, self.engine.call(&call));
        // These vocabularies tell the workspace's own path, and what holds it to whoever named that already.
        let holder = Path::new(&self.workspace).parent().and_then(Path::to_str).unwrap_or_default();
        let named = arguments.values().filter_map(Value::as_str).any(|given| given.contains(holder));
        // An escape is told with the absolute spelling of what was asked for, which starts where the workspace lies.
        let named = named || self.name == "comma";
        let hide = |text: String| {
            let plain = text.replace(&self.workspace, "$W");
            if named { plain.replace(holder, "$H") } else { plain }
        };
        let json = serde_json::from_str(&hide(Value::Object(reply.json).to_string())).unwrap_or_default();
        let refused = (reply.status == dialect::ReplyStatus::Error).then(|| "refused".to_owned());
        SubjectReply { refusal: refused, json, text: hide(reply.text) }
    }
}

impl AttackSubject for DialectAttackSubject {
    fn send(&mut self, asked: &SubjectRequest) -> io::Result<SubjectReply> {
        let principal = Principal::parse(&asked.principal).map_err(io::Error::other)?;
        let caller = Caller::new(principal, "attack", "library");
        let arguments = match &asked.raw {
            None => asked.arguments.clone(),
            Some(raw) => match serde_json::from_slice(raw) {
                Ok(arguments) => arguments,
                Err(_) => {
                    return Ok(SubjectReply { refusal: Some("unread".into()), json: json!({}), text: String::new() });
                }
            },
        };
        if let Some(tool) = tool_of_operation(self.name, &asked.operation) {
            return Ok(self.call_tool(&caller, tool, &arguments));
        }
        // What a setup asks for is asked in the native words.
        Ok(match self.engine.call(&Call::new(&caller, &asked.operation, arguments)) {
            Ok(answer) => SubjectReply { refusal: None, json: answer.json.into(), text: answer.text },
            Err(failure) => {
                SubjectReply { refusal: Some(failure.kind.code().into()), json: failure.to_json(), text: String::new() }
            }
        })
    }

    fn finish(self: Box<Self>, _workspace: &Path) -> io::Result<Option<SubjectJournal>> {
        Ok(None)
    }
}

fn assert_corpus_passes(name: &'static str, options: &[&str]) {
    let open = |opening: &SubjectOptions| DialectAttackSubject::open(name, options, opening);
    let (mut ran, mut harmed) = (0, Vec::new());
    // Who races is met below the vocabularies, where nobody knows one.
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
                // Nobody asks for a version here.
                case.arguments.remove("base");
            }
            let verdicts = match run_sharing_fixture(&group, &portion, &open, stead_disk::PathResolution::Auto) {
                // What is set up with a call that this vocabulary refuses cannot be asked in it.
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
