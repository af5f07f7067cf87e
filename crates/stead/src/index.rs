//! `stead index`: the search index, for people. A server builds and keeps it by itself.

use clap::{Args, Subcommand};
use local::{IndexFacts, Wall};
use serde_json::json;

use crate::{
    cli::WorkspaceFlags,
    show::{self, Exit, Form, Outcome},
    wire,
};

/// The flags of `stead index`.
#[derive(Debug, Args)]
pub(crate) struct IndexArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Build it, or bring it up to date, and wait until that is done
    Build {
        /// Answer with one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show how large it is and how much of the tree it knows
    Show {
        /// Answer with one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Delete it; answers stay the same, searches take longer
    Drop,
}

/// Runs one of them.
pub(crate) fn run(flags: &WorkspaceFlags, arguments: &IndexArguments) -> Outcome {
    let opened = wire::open(flags, Wall::Leave)?;
    match arguments.action {
        Action::Build { json } => shown(&opened.local.build_index()?, Form::from(json)),
        Action::Show { json } => shown(&opened.local.index_facts(), Form::from(json)),
        Action::Drop => {
            opened.local.drop_index()?;
            show::text("the index is gone")?;
            Ok(Exit::Fine)
        }
    }
}

fn shown(facts: &IndexFacts, form: Form) -> Outcome {
    match form {
        Form::Text => show::text(&format!("index: {facts}"))?,
        Form::Json => show::json(&json!({
            "segments": facts.segments,
            "files": facts.files,
            "bytes": facts.bytes,
            "cut": facts.is_cut,
            "known": facts.known,
        }))?,
    }
    Ok(Exit::Fine)
}
