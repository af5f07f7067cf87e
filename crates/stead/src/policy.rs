//! `stead policy`: what the rules say, and what a call would get by them.

use std::sync::Arc;

use clap::{Args, Subcommand};
use engine::{Call, OPERATIONS, Terms};
use faces::dialect::{self, Dialects, Place, Request};
use local::Wall;
use serde_json::{Map, Value, json};

use crate::{
    cli::{CallerFlags, WorkspaceFlags},
    show::{self, Exit, Form, Outcome, Problem},
    wire::{self, Asker},
};

/// The flags of `stead policy`.
#[derive(Debug, Args)]
pub(crate) struct PolicyArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Explain what a call would get, by which rule of which layer; it does not run
    Check {
        /// Who would call: user:NAME or agent:NAME
        #[arg(long, value_name = "PRINCIPAL", default_value = "agent:mcp")]
        principal: String,
        /// The operation, or a tool of a dialect with or without the dialect's name: krux/filesystem.delete
        operation: String,
        /// Its arguments: NAME=VALUE, or one JSON object
        arguments: Vec<String>,
        /// Answer with one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List the rules that bind somebody
    List {
        /// Whom: user:NAME or agent:NAME
        #[arg(long, value_name = "PRINCIPAL", default_value = "agent:mcp")]
        principal: String,
        /// Answer with one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Runs one of them.
pub(crate) fn run(flags: &WorkspaceFlags, arguments: &PolicyArguments) -> Outcome {
    let mut terms = Terms::default();
    let (asked, json) = match &arguments.action {
        Action::Check { principal, operation, arguments, json } => {
            let Request { operation, arguments, terms: about } =
                request(flags, operation, parsed(arguments)?)?;
            terms.about = Some(Arc::new(about));
            let asked = json!({ "operation": operation, "arguments": arguments, "principal": principal });
            (asked, *json)
        }
        Action::List { principal, json } => (json!({ "principal": principal }), *json),
    };
    let caller = wire::caller(&CallerFlags::default(), Asker::Person)?;
    let opened = wire::open(flags, Wall::Leave)?;
    let asked = asked.as_object().cloned().unwrap_or_default();
    let answer = opened.engine.call(&Call { terms, ..Call::new(&caller, "policy", asked) })?;
    match Form::from(json) {
        Form::Json => show::json(&Value::Object(answer.json))?,
        Form::Text => show::text(&answer.text)?,
    }
    Ok(Exit::Fine)
}

/// The call that is asked about, in the engine's words: an operation as it is, a tool as its dialect translates it.
fn request(flags: &WorkspaceFlags, name: &str, arguments: Map<String, Value>) -> Result<Request, Problem> {
    let is_operation = OPERATIONS.iter().any(|row| row.name == name);
    let mut found: Vec<(String, Request)> = Vec::new();
    let dialects = if is_operation { Vec::new() } else { dialect::names() };
    for dialect in dialects {
        let place = Place { workspace: wire::place(flags)? };
        let dialects = Dialects::choose(&[dialect.to_owned()], &[], &place).map_err(show::usage)?;
        let bare = name.strip_prefix(dialect).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name);
        if let Some((dialect, tool)) = dialects.named(bare)
            && let Some(full) = dialect.full_name(tool)
        {
            found.push((full, dialect.ask(tool, &arguments)));
        }
    }
    match <[_; 1]>::try_from(found) {
        Ok([(_, request)]) => Ok(request),
        // The engine knows what to say about a name that nothing has.
        Err(found) if found.is_empty() => {
            Ok(Request { operation: name.to_owned(), arguments, terms: Terms::default() })
        }
        Err(found) => {
            let names: Vec<String> = found.into_iter().map(|(name, _)| name).collect();
            Err(show::usage(format!("'{name}' may be {}; say which", names.join(" or "))))
        }
    }
}

/// Arguments as a person writes them: a value that reads as JSON is that, anything else is text.
fn parsed(written: &[String]) -> Result<Map<String, Value>, Problem> {
    let mut arguments = Map::new();
    for word in written {
        if let Ok(Value::Object(whole)) = serde_json::from_str::<Value>(word) {
            arguments.extend(whole);
            continue;
        }
        let (name, value) = word
            .split_once('=')
            .ok_or_else(|| show::usage(format!("'{word}' is neither NAME=VALUE nor a JSON object")))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        arguments.insert(name.to_owned(), value);
    }
    Ok(arguments)
}
