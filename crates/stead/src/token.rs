//! `stead token`: who is let in over HTTP. A token is shown once, when it is made.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use engine::{Principal, Workspace};
use local::{Token, TokenAsk, Wall};
use path::RelPath;

use crate::{
    cli::{CallerFlags, WorkspaceFlags},
    estate::described,
    show::{self, Exit, Form, Outcome, Problem},
    time, wire,
};

mod of_estate;

/// The flags of `stead token`.
#[derive(Debug, Args)]
pub(crate) struct TokenArguments {
    /// The directory of an estate, whose tokens these are
    #[arg(long, value_name = "DIR", global = true)]
    workspaces: Option<PathBuf>,
    /// With --workspaces: the workspace that the token opens
    #[arg(long, value_name = "NAME", global = true, requires = "workspaces")]
    workspace_name: Option<String>,
    /// With --workspaces: the token administers workspaces and opens none
    #[arg(long, global = true, requires = "workspaces", conflicts_with = "workspace_name")]
    estate: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a token and show it, this once
    Create {
        #[command(flatten)]
        caller: CallerFlags,
        /// How long it lets in: 90s, 30m, 2h, 7d [default: until it is revoked]
        #[arg(long, value_name = "TIME")]
        lasts: Option<String>,
        /// What it is for
        #[arg(long, value_name = "TEXT", default_value = "")]
        label: String,
        /// Answer with one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List tokens, newest first; never what they are
    List {
        /// Answer with one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Make a token like another one, which then ends
    Rotate {
        /// Which
        id: String,
        /// How long both let in
        #[arg(long, value_name = "TIME", default_value = "1h")]
        overlap: String,
        /// Answer with one JSON object
        #[arg(long)]
        json: bool,
    },
    /// End a token now
    Revoke {
        /// Which
        id: String,
    },
}

/// Runs one of them.
pub(crate) fn run(flags: &WorkspaceFlags, arguments: &TokenArguments) -> Outcome {
    if arguments.workspaces.is_some() {
        return of_estate::run(flags, arguments);
    }
    let opened = wire::open(flags, Wall::Leave)?;
    let local = &opened.local;
    match &arguments.action {
        Action::Create { caller, lasts, label, json } => {
            let ask = wanted(caller, lasts.as_deref(), label, local.now_ms())?;
            let (token, shown) = local.create_token(&ask)?;
            tell(&token, &shown, Form::from(*json))
        }
        Action::Rotate { id, overlap, json } => {
            let (token, shown) = local.rotate_token(id, duration(overlap)?)?;
            tell(&token, &shown, Form::from(*json))
        }
        Action::List { json } => {
            for token in local.tokens()? {
                match Form::from(*json) {
                    Form::Json => show::json(&described(&token))?,
                    Form::Text => show::text(&line(&token, local.now_ms()))?,
                }
            }
            Ok(Exit::Fine)
        }
        Action::Revoke { id } => {
            let token = local.revoke_token(id)?;
            show::text(&line(&token, local.now_ms()))?;
            Ok(Exit::Fine)
        }
    }
}

/// Who shall be let in, as the flags say.
fn wanted(caller: &CallerFlags, lasts: Option<&str>, label: &str, now_ms: i64) -> Result<TokenAsk, Problem> {
    let principal = caller.principal.as_deref().ok_or_else(|| {
        show::usage("say who is let in: --principal agent:NAME, or user:NAME for a person's own program")
    })?;
    Ok(TokenAsk {
        principal: Principal::parse(principal)?,
        grants: wire::grants(caller, &RelPath::root())?,
        ends_ms: lasts.map(duration).transpose()?.map(|lasts_ms| now_ms.saturating_add(lasts_ms)),
        label: label.to_owned(),
    })
}

fn duration(text: &str) -> Result<i64, Problem> {
    time::duration(text).ok_or_else(|| show::usage("a time is written 90s, 30m, 2h or 7d"))
}

fn tell(token: &Token, shown: &str, form: Form) -> Outcome {
    match form {
        Form::Json => {
            let mut object = described(token);
            object["token"] = shown.into();
            show::json(&object)?;
        }
        Form::Text => {
            show::remark(&format!(
                "token {} for {}; this is the only time it is shown",
                token.id, token.principal
            ));
            show::text(shown)?;
        }
    }
    Ok(Exit::Fine)
}

fn line(token: &Token, now_ms: i64) -> String {
    let until = match token.ends_ms {
        None => "until it is revoked".to_owned(),
        Some(ends_ms) if token.is_over(now_ms) => format!("ended {}", time::iso_utc(ends_ms)),
        Some(ends_ms) => format!("until {}", time::iso_utc(ends_ms)),
    };
    let access = if token.is_read_only() { ", read-only" } else { "" };
    let label = if token.label.is_empty() { String::new() } else { format!("  {}", token.label) };
    format!("{}  {}{access}  {until}{label}", token.id, token.principal)
}
