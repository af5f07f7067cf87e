//! `stead token`: who is let in over HTTP. A token is shown once, when it is made.

use clap::{Args, Subcommand};
use engine::{Principal, Workspace};
use local::{Token, TokenAsk, Wall};
use path::RelPath;
use serde_json::{Value, json};

use crate::{
    cli::{CallerFlags, WorkspaceFlags},
    show::{self, Exit, Form, Outcome, Problem},
    time, wire,
};

/// The flags of `stead token`.
#[derive(Debug, Args)]
pub(crate) struct TokenArguments {
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
    let opened = wire::open(flags, Wall::Leave)?;
    let local = &opened.local;
    match &arguments.action {
        Action::Create { caller, lasts, label, json } => {
            let principal = caller.principal.as_deref().ok_or_else(|| {
                show::usage(
                    "say who is let in: --principal agent:NAME, or user:NAME for a person's own program",
                )
            })?;
            let ends_ms = lasts.as_deref().map(duration).transpose()?;
            let ask = TokenAsk {
                principal: Principal::parse(principal)?,
                grants: wire::grants(caller, &RelPath::root())?,
                ends_ms: ends_ms.map(|lasts_ms| local.now_ms().saturating_add(lasts_ms)),
                label: label.clone(),
            };
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

fn described(token: &Token) -> Value {
    let (readable, writable) = token.reach();
    json!({
        "id": token.id,
        "principal": token.principal,
        "read_only": token.is_read_only(),
        "readable": readable,
        "writable": writable,
        "label": token.label,
        "created": time::iso_utc(token.created_ms),
        "ends": token.ends_ms.map(time::iso_utc),
    })
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
