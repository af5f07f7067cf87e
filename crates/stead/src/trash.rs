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
        /// Which; only what this principal removed, unless --all is given
        #[arg(required_unless_present_any = ["mine", "all"])]
        ids: Vec<String>,
        /// Everything this principal removed
        #[arg(long, conflicts_with_all = ["ids", "all"])]
        mine: bool,
        /// Also what others removed; without ids, everything there is
        #[arg(long)]
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
        Action::Purge { caller, ids, mine: _, all } => {
            let caller = wire::caller(caller, Asker::Person)?;
            let whose = if *all { Whose::Anyones } else { Whose::Own };
            purge(&wire::open(flags, Wall::Leave)?, &caller, whose, ids)
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

/// Whose removed things may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// Those of the person who asks.
    Own,
    /// Those of everybody: asked for in so many words.
    Anyones,
}

/// Empties these for good; without ids all there are.
fn purge(opened: &Opened, caller: &Caller, whose: Whose, ids: &[String]) -> Outcome {
    match caller.principal {
        Principal::User(_) => {}
        Principal::Agent(_) | Principal::System | Principal::Outside => {
            return Err(Failure::new(Kind::NotOwner, "only a person may empty the trash").into());
        }
    }
    let owner = match whose {
        Whose::Own => Some(&caller.principal),
        Whose::Anyones => None,
    };
    let ids: Vec<String> = if ids.is_empty() {
        opened.local.trash(owner)?.into_iter().map(|item| item.id).collect()
    } else {
        // All are looked at before one goes.
        ids.iter().map(|id| purgeable(opened, owner, id)).collect::<Result<_, Problem>>()?
    };
    let emptied = opened.local.empty(&ids)?;
    show::text(&format!("{emptied} gone for good"))?;
    Ok(Exit::Fine)
}

/// The item of this id, if it may go.
fn purgeable(opened: &Opened, owner: Option<&Principal>, id: &str) -> Result<String, Problem> {
    let item = opened.local.trashed(id)?;
    let item = item.ok_or_else(|| Failure::new(Kind::NotFound, format!("{id} is not in the trash")))?;
    if owner.is_some_and(|owner| item.owner != owner.to_string()) {
        return Err(Failure::new(Kind::NotOwner, format!("{id} was removed by {}", item.owner))
            .hint("add --all to purge what others removed")
            .into());
    }
    Ok(item.id)
}
