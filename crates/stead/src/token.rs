//! `stead token`: tokens of HTTP clients. A token is printed only once, when it is created.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use stead_engine::{Principal, Workspace};
use stead_local::{AccessTokenRecord, CreateTokenRequest, LandlockMode};
use stead_path::RelPath;

use crate::{
    cli::{CallerFlags, WorkspaceFlags},
    open_workspace,
    output::{self, CommandError, CommandExit, CommandResult, OutputFormat},
    time,
    workspace_admin::token_to_json,
};

mod registry;

#[derive(Debug, Args)]
pub(crate) struct TokenCliArgs {
    /// Directory of hosted workspaces whose tokens to manage
    #[arg(long, value_name = "DIR", global = true)]
    workspaces: Option<PathBuf>,
    /// With --workspaces: workspace that the token opens
    #[arg(long, value_name = "NAME", global = true, requires = "workspaces")]
    workspace_name: Option<String>,
    /// With --workspaces: administrator tokens, which manage workspaces and open none
    #[arg(long, global = true, requires = "workspaces", conflicts_with = "workspace_name")]
    estate: bool,
    #[command(subcommand)]
    action: TokenSubcommand,
}

#[derive(Debug, Subcommand)]
enum TokenSubcommand {
    /// Create a token and print it once
    Create {
        #[command(flatten)]
        caller: CallerFlags,
        /// Lifetime: 90s, 30m, 2h, 7d [default: until revoked]
        #[arg(long, value_name = "TIME")]
        lasts: Option<String>,
        /// Note to recognise the token by
        #[arg(long, value_name = "TEXT", default_value = "")]
        label: String,
        /// Print the answer as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List tokens, newest first, without their secrets
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Replace a token: create one with the same access, and expire the old one
    Rotate {
        /// Token id
        id: String,
        /// Time during which both tokens are valid
        #[arg(long, value_name = "TIME", default_value = "1h")]
        overlap: String,
        /// Print the answer as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token immediately
    Revoke {
        /// Token id
        id: String,
    },
}

pub(crate) fn run(flags: &WorkspaceFlags, arguments: &TokenCliArgs) -> CommandResult {
    if arguments.workspaces.is_some() {
        return registry::run(flags, arguments);
    }
    let opened = open_workspace::open_workspace(flags, LandlockMode::Off)?;
    let local = &opened.local;
    match &arguments.action {
        TokenSubcommand::Create { caller, lasts, label, json } => {
            let request = token_request(caller, lasts.as_deref(), label, local.now_ms())?;
            let (token, secret) = local.create_token(&request)?;
            print_new_token(&token, &secret, OutputFormat::from(*json))
        }
        TokenSubcommand::Rotate { id, overlap, json } => {
            let (token, secret) = local.rotate_token(id, parse_duration_flag(overlap)?)?;
            print_new_token(&token, &secret, OutputFormat::from(*json))
        }
        TokenSubcommand::List { json } => {
            for token in local.list_tokens()? {
                match OutputFormat::from(*json) {
                    OutputFormat::Json => output::print_json(&token_to_json(&token))?,
                    OutputFormat::Text => output::print_text(&token_line(&token, local.now_ms()))?,
                }
            }
            Ok(CommandExit::Success)
        }
        TokenSubcommand::Revoke { id } => {
            let token = local.revoke_token(id)?;
            output::print_text(&token_line(&token, local.now_ms()))?;
            Ok(CommandExit::Success)
        }
    }
}

fn token_request(
    caller: &CallerFlags,
    lasts: Option<&str>,
    label: &str,
    now_ms: i64,
) -> Result<CreateTokenRequest, CommandError> {
    let principal = caller.principal.as_deref().ok_or_else(|| {
        output::usage_error("--principal is required: agent:NAME, or user:NAME for a program that acts for a person")
    })?;
    Ok(CreateTokenRequest {
        principal: Principal::parse(principal)?,
        grants: open_workspace::grants_from_flags(caller, &RelPath::root())?,
        expires_ms: lasts.map(parse_duration_flag).transpose()?.map(|lasts_ms| now_ms.saturating_add(lasts_ms)),
        label: label.to_owned(),
    })
}

fn parse_duration_flag(text: &str) -> Result<i64, CommandError> {
    time::parse_duration(text)
        .ok_or_else(|| output::usage_error("invalid duration; use a form such as 90s, 30m, 2h or 7d"))
}

fn print_new_token(token: &AccessTokenRecord, secret: &str, format: OutputFormat) -> CommandResult {
    match format {
        OutputFormat::Json => {
            let mut object = token_to_json(token);
            object["token"] = secret.into();
            output::print_json(&object)?;
        }
        OutputFormat::Text => {
            output::print_note(&format!("token {} for {}; it is not shown again", token.id, token.principal));
            output::print_text(secret)?;
        }
    }
    Ok(CommandExit::Success)
}

fn token_line(token: &AccessTokenRecord, now_ms: i64) -> String {
    let until = match token.expires_ms {
        None => "until revoked".to_owned(),
        Some(ends_ms) if token.is_expired(now_ms) => format!("expired {}", time::iso_utc(ends_ms)),
        Some(ends_ms) => format!("until {}", time::iso_utc(ends_ms)),
    };
    let access = if token.is_read_only() { ", read-only" } else { "" };
    let label = if token.label.is_empty() { String::new() } else { format!("  {}", token.label) };
    format!("{}  {}{access}  {until}{label}", token.id, token.principal)
}
