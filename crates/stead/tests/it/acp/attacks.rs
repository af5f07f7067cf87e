//! The attack corpus through the proxy. Paths are absolute here, so what a case wants as an answer does not count; what
//! must always hold does: nothing outside changes, nothing of it is answered, nothing hangs.

use std::{io, path::Path};

use engine::{Call, Caller, Engine, Principal};
use local::{Durability, LocalWorkspace, Options};
use serde_json::json;
use testkit::attack::{
    Asked, Case, Ending, Ledger, Opening, Reply, Subject, Verdict, groups, matrix, needs, portions,
    run_together,
};

use super::puppet::Puppet;

struct Proxied {
    puppet: Puppet,
    /// For what a setup asks in words that the protocol does not have.
    engine: Engine,
    workspace: String,
}

fn method(operation: &str) -> Option<&'static str> {
    match operation {
        "read" | "stat" => Some("fs/read_text_file"),
        "write" | "append" => Some("fs/write_text_file"),
        _ => None,
    }
}

impl Proxied {
    fn open(opening: &Opening) -> io::Result<Box<dyn Subject>> {
        let params = json!({ "cwd": opening.workspace, "mcpServers": [] });
        let mut flags = vec!["--durability", "fast", "--approve", "deny"];
        let policy = opening.state.join("policy.toml");
        if policy.exists() {
            flags.extend(["--policy", policy.to_str().unwrap_or_default()]);
        }
        let puppet = Puppet::with_session(&opening.state, &flags, &params);
        // Whoever holds a lock there holds it against the agent too.
        let state = std::fs::read_dir(opening.state.join("stead"))?.next().expect("it made one")?.path();
        let mut options = Options::new(opening.workspace.clone(), state);
        options.durability = Durability::Fast;
        let engine = Engine::new(LocalWorkspace::open(options).map_err(io::Error::other)? as _);
        let workspace = opening.workspace.to_str().unwrap_or_default().to_owned();
        Ok(Box::new(Self { puppet, engine, workspace }))
    }
}

impl Subject for Proxied {
    fn ask(&mut self, asked: &Asked) -> io::Result<Reply> {
        let Some(method) = method(&asked.operation) else {
            let principal = Principal::parse(&asked.principal).map_err(io::Error::other)?;
            let caller = Caller::new(principal, "attack", "library");
            return Ok(
                match self.engine.call(&Call::new(&caller, &asked.operation, asked.arguments.clone())) {
                    Ok(answer) => Reply { refused: None, json: answer.json.into(), text: answer.text },
                    Err(failure) => Reply {
                        refused: Some(failure.kind.code().into()),
                        json: failure.to_json(),
                        text: String::new(),
                    },
                },
            );
        };
        let given = asked.arguments.get("path").cloned().unwrap_or_default();
        let relative = given.as_str().filter(|path| !path.starts_with('/'));
        let path = relative.map_or(given.clone(), |path| format!("{}/{path}", self.workspace).into());
        let content = asked.arguments.get("content").cloned().unwrap_or_else(|| "x".into());
        let answer = self.puppet.call(method, json!({ "path": path, "content": content }));
        // What is told of a place is the path as it was given.
        let text = answer.to_string().replace(&path.to_string(), "\"$P\"").replace(&self.workspace, "$W");
        let json = serde_json::from_str(&text).unwrap_or_default();
        Ok(Reply { refused: answer.get("error").map(|_| "refused".to_owned()), json, text })
    }

    fn finish(self: Box<Self>, _workspace: &Path) -> io::Result<Option<Ledger>> {
        Ok(None)
    }
}

#[test]
fn nothing_gets_out_through_the_proxy() {
    let open = |opening: &Opening| Proxied::open(opening);
    let (mut ran, mut harmed) = (0, Vec::new());
    let groups = groups().unwrap().into_iter().filter(|group| group.group != "race");
    for group in groups.chain([matrix().unwrap()]) {
        let fitting = |case: &&Case| {
            let needs = needs(&group, case).unwrap();
            let here = case.only.is_none() && !needs.mounts && !needs.devices && !needs.inside;
            here && case.raw.is_none() && method(&case.operation).is_some()
        };
        let cases: Vec<Case> = group.cases.iter().filter(fitting).cloned().collect();
        for portion in portions(&cases) {
            let mut portion = portion.to_vec();
            for case in &mut portion {
                case.expect.result = Ending::Safe;
                case.check = Default::default();
            }
            let verdicts = match run_together(&group, &portion, &open, disk::Resolver::Auto) {
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
