//! `stead trash`: what was removed and can still come back.

use clap::{Args, Subcommand};
use engine::{Call, Caller, Failure, Kind, Principal, Trashed, Workspace};
use local::Wall;
use serde_json::{Map, Value, json};

use crate::{
    cli::{CallerFlags, WorkspaceFlags},
    show::{self, Exit, Form, Outcome, Problem},
    time,
    wire::{self, Asker, Opened},
};

/// The flags of `stead trash`.
#[derive(Debug, Args)]
pub(crate) struct TrashArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List what can come back, newest first
    List {
        #[command(flatten)]
        caller: CallerFlags,
        /// Also what others removed
        #[arg(long)]
        all: bool,
        /// Answer with one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Bring something back
    Restore {
        #[command(flatten)]
        caller: CallerFlags,
        /// Which
        id: String,
        /// Where to, when not where it was
        #[arg(long, value_name = "PATH")]
        to: Option<String>,
        /// Answer with one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Empty for good; only a person may
    Purge {
        #[command(flatten)]
        caller: CallerFlags,
        /// Which
        #[arg(required_unless_present = "all")]
        ids: Vec<String>,
        /// Everything of this principal
        #[arg(long, conflicts_with = "ids")]
        all: bool,
    },
}

/// Runs one of them.
pub(crate) fn run(flags: &WorkspaceFlags, arguments: &TrashArguments) -> Outcome {
    match &arguments.action {
        Action::List { caller, all, json } => {
            let caller = wire::caller(caller, Asker::Person)?;
            list(&wire::open(flags, Wall::Leave)?, (!all).then_some(&caller.principal), Form::from(*json))
        }
        Action::Restore { caller, id, to, json } => {
            let caller = wire::caller(caller, Asker::Person)?;
            restore(&wire::open(flags, Wall::Leave)?, &caller, id, to.as_deref(), Form::from(*json))
        }
        Action::Purge { caller, ids, all } => {
            let caller = wire::caller(caller, Asker::Person)?;
            let which = if *all { Purge::Everything } else { Purge::These(ids) };
            purge(&wire::open(flags, Wall::Leave)?, &caller, &which)
        }
    }
}

fn list(opened: &Opened, owner: Option<&Principal>, form: Form) -> Outcome {
    for item in opened.local.trash(owner)? {
        match form {
            Form::Json => show::json(&object(&item))?,
            Form::Text => show::text(&format!(
                "{}  {}  {} files, {} bytes  removed {} by {}, kept until {}",
                item.id,
                item.path,
                item.tree.files,
                item.tree.bytes,
                time::iso_utc(item.removed_ms),
                item.owner,
                time::iso_utc(item.keep_until_ms)
            ))?,
        }
    }
    Ok(Exit::Fine)
}

fn object(item: &Trashed) -> Value {
    json!({
        "trash": item.id,
        "path": item.path.to_wire(),
        "owner": item.owner,
        "files": item.tree.files,
        "bytes": item.tree.bytes,
        "removed": time::iso_utc(item.removed_ms),
        "recoverable_until": time::iso_utc(item.keep_until_ms),
        "entry": item.entry,
    })
}

fn restore(opened: &Opened, caller: &Caller, id: &str, to: Option<&str>, form: Form) -> Outcome {
    let mut arguments = Map::new();
    arguments.insert("trash".to_owned(), id.into());
    if let Some(to) = to {
        arguments.insert("to".to_owned(), to.into());
    }
    let answer = opened.engine.call(&Call::new(caller, "restore", arguments))?;
    match form {
        Form::Json => show::json(&Value::Object(answer.json))?,
        Form::Text => show::text(&answer.text)?,
    }
    Ok(Exit::Fine)
}

/// What is to go.
enum Purge<'a> {
    These(&'a [String]),
    Everything,
}

fn purge(opened: &Opened, caller: &Caller, which: &Purge<'_>) -> Outcome {
    let person = matches!(caller.principal, Principal::User(_));
    if !person {
        return Err(Failure::new(Kind::NotOwner, "only a person may empty the trash").into());
    }
    let ids: Vec<String> = match which {
        Purge::Everything => {
            opened.local.trash(Some(&caller.principal))?.into_iter().map(|item| item.id).collect()
        }
        Purge::These(ids) => ids.iter().map(|id| known(opened, id)).collect::<Result<_, Problem>>()?,
    };
    let emptied = opened.local.empty(&ids)?;
    show::text(&format!("{emptied} gone for good"))?;
    Ok(Exit::Fine)
}

fn known(opened: &Opened, id: &str) -> Result<String, Problem> {
    let item = opened.local.trashed(id)?;
    let item = item.ok_or_else(|| Failure::new(Kind::NotFound, format!("{id} is not in the trash")))?;
    Ok(item.id)
}
