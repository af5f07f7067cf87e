//! The attack corpus through the published vocabularies. They take spellings that the native one refuses, so what a case
//! wants as an answer does not count here; what must always hold does: nothing outside changes, nothing of it is
//! answered, nothing hangs.

use std::{io, path::Path, sync::Arc};

use engine::{Call, Caller, Engine, Principal};
use faces::dialect::{self, Dialects, Place};
use local::{Durability, LocalWorkspace, Options};
use serde_json::{Map, Value, json};
use testkit::attack::{
    Asked, Case, Ending, Ledger, Opening, Reply, Subject, Verdict, groups, matrix, needs, portions,
    run_together,
};

/// One vocabulary over a workspace.
struct Spoken {
    engine: Engine,
    dialects: Dialects,
    name: &'static str,
    workspace: String,
}

/// What a native operation is called there.
fn tool(dialect: &str, operation: &str) -> Option<&'static str> {
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

impl Spoken {
    fn open(name: &'static str, options: &[&str], opening: &Opening) -> io::Result<Box<dyn Subject>> {
        let mut local = Options::new(opening.workspace.clone(), opening.state.clone());
        local.durability = Durability::Fast;
        local.resolver = opening.resolver;
        let local = LocalWorkspace::open(local).map_err(io::Error::other)?;
        let workspace = opening.workspace.to_str().unwrap_or_default().to_owned();
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let place = Place { workspace: workspace.clone() };
        let dialects = Dialects::choose(&[name.to_owned()], &options, &place).map_err(io::Error::other)?;
        Ok(Box::new(Self { engine: Engine::new(Arc::clone(&local) as _), dialects, name, workspace }))
    }

    fn say(&self, caller: &Caller, tool: &str, arguments: &Map<String, Value>) -> Reply {
        let dialect = self.dialects.with_tool(tool).expect("it has the tool");
        let request = dialect.request(tool, arguments);
        let mut call = Call::new(caller, &request.operation, request.arguments);
        call.terms = request.terms;
        let reply = dialect.reply(tool, arguments, self.engine.call(&call));
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
        let refused = (reply.verdict == dialect::Verdict::Error).then(|| "refused".to_owned());
        Reply { refused, json, text: hide(reply.text) }
    }
}

impl Subject for Spoken {
    fn ask(&mut self, asked: &Asked) -> io::Result<Reply> {
        let principal = Principal::parse(&asked.principal).map_err(io::Error::other)?;
        let caller = Caller::new(principal, "attack", "library");
        let arguments = match &asked.raw {
            None => asked.arguments.clone(),
            Some(raw) => match serde_json::from_slice(raw) {
                Ok(arguments) => arguments,
                Err(_) => {
                    return Ok(Reply {
                        refused: Some("unread".into()),
                        json: json!({}),
                        text: String::new(),
                    });
                }
            },
        };
        if let Some(tool) = tool(self.name, &asked.operation) {
            return Ok(self.say(&caller, tool, &arguments));
        }
        // What a setup asks for is asked in the native words.
        Ok(match self.engine.call(&Call::new(&caller, &asked.operation, arguments)) {
            Ok(answer) => Reply { refused: None, json: answer.json.into(), text: answer.text },
            Err(failure) => Reply {
                refused: Some(failure.kind.code().into()),
                json: failure.to_json(),
                text: String::new(),
            },
        })
    }

    fn finish(self: Box<Self>, _workspace: &Path) -> io::Result<Option<Ledger>> {
        Ok(None)
    }
}

fn hold(name: &'static str, options: &[&str]) {
    let open = |opening: &Opening| Spoken::open(name, options, opening);
    let (mut ran, mut harmed) = (0, Vec::new());
    // Who races is met below the vocabularies, where nobody knows one.
    let groups = groups().unwrap().into_iter().filter(|group| group.group != "race");
    for group in groups.chain([matrix().unwrap()]) {
        let fitting = |case: &&Case| {
            let needs = needs(&group, case).unwrap();
            let here = case.only.is_none() && !needs.mounts && !needs.devices && !needs.inside;
            here && tool(name, &case.operation).is_some()
        };
        let cases: Vec<Case> = group.cases.iter().filter(fitting).cloned().collect();
        for portion in portions(&cases) {
            let mut portion = portion.to_vec();
            for case in &mut portion {
                case.expect.result = Ending::Safe;
                case.check = Default::default();
                // Nobody asks for a version here.
                case.arguments.remove("base");
            }
            let verdicts = match run_together(&group, &portion, &open, disk::Resolver::Auto) {
                // What is set up with a call that this vocabulary refuses cannot be asked in it.
                Err(error) if error.to_string().starts_with("setup: ") => continue,
                other => other.unwrap(),
            };
            ran += portion.len();
            harmed.extend(verdicts.iter().filter(|verdict| verdict.harmed()).map(Verdict::told));
        }
    }
    assert!(ran > 100, "only {ran} cases ran");
    assert!(harmed.is_empty(), "{} of {ran}:\n{}", harmed.len(), harmed.join("\n"));
}

#[test]
fn jettson_holds() {
    hold("jettson", &[]);
}

#[test]
fn weaver_holds() {
    hold("weaver", &[]);
}

#[test]
fn the_newest_weaver_holds() {
    hold("weaver", &["generation=newest"]);
}

#[test]
fn nothing_gets_out_through_comma() {
    hold("comma", &["forbidden_globs=none"]);
    hold("comma", &["forbidden_globs=none", "allow_absolute=true", "origin=exact"]);
}
