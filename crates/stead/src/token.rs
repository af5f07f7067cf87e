//! Runs `stead token`, which manages the tokens of HTTP clients. A token is printed only once, when it is created.

use std::{path::PathBuf, sync::Arc};

use clap::{Args, Subcommand};
use stead_engine::{Caller, Principal, UtcSecond, Workspace};
use stead_local::{AccessTokenRecord, CreateTokenRequest, LandlockMode, TokenScope, WorkspaceName, WorkspaceRegistry};
use stead_path::RelPath;

use crate::{
    cli::{CallerAccessCliFlags, WorkspaceFlags},
    open_workspace::{self, CallerProtocol, CommandLineWorkspace},
    output::{self, CliCommandResult, CommandError, CommandExit, OutputFormat},
    time,
    workspace_admin::token_to_json,
    workspaces::{self, MissingRegistryDirectoryPolicy},
};

type NewTokenWithSecret = (AccessTokenRecord, String);

#[derive(Debug, Args)]
pub(crate) struct TokenCliArgs {
    /// Directory of hosted workspaces whose tokens to manage
    #[arg(long, value_name = "DIR", global = true)]
    workspaces: Option<PathBuf>,
    /// With --workspaces: workspace that the token opens
    #[arg(long, value_name = "NAME", global = true, requires = "workspaces")]
    workspace_name: Option<String>,
    /// With --workspaces: administrator tokens, which manage workspaces but cannot open them
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
        caller: CallerAccessCliFlags,
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
    /// Replace a token: create one with the same access, and let the old one expire
    Rotate {
        /// Id of the token, as stead token list prints it
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
        /// Id of the token, as stead token list prints it
        id: String,
    },
}

pub(crate) fn run(flags: &WorkspaceFlags, arguments: &TokenCliArgs) -> CliCommandResult {
    let store = WorkspaceOrRegistryTokenStore::open(flags, arguments)?;
    match &arguments.action {
        TokenSubcommand::Create { caller, lasts, label, json } => {
            let request = token_request(caller, lasts.as_deref(), label, store.now_ms())?;
            let (token, secret) = store.create(&request, arguments)?;
            print_new_token(&token, &secret, OutputFormat::from(*json))
        }
        TokenSubcommand::Rotate { id, overlap, json } => {
            let (token, secret) = store.rotate(id, time::parse_duration("--overlap", overlap)?)?;
            print_new_token(&token, &secret, OutputFormat::from(*json))
        }
        TokenSubcommand::List { json } => {
            for token in store.list(arguments)? {
                let line = || token_line(&token, store.now_ms());
                output::print_as(OutputFormat::from(*json), || token_to_json(&token), line)?;
            }
            Ok(CommandExit::Success)
        }
        TokenSubcommand::Revoke { id } => {
            output::print_text(&format!("revoked: {}", token_line(&store.revoke(id)?, store.now_ms())))?;
            Ok(CommandExit::Success)
        }
    }
}

enum WorkspaceOrRegistryTokenStore {
    Workspace(CommandLineWorkspace),
    Registry(Arc<WorkspaceRegistry>, Box<Caller>),
}

impl WorkspaceOrRegistryTokenStore {
    fn open(flags: &WorkspaceFlags, arguments: &TokenCliArgs) -> Result<Self, CommandError> {
        if arguments.workspaces.is_none() {
            return open_workspace::open_workspace(flags, LandlockMode::Off)
                .map(WorkspaceOrRegistryTokenStore::Workspace);
        }
        let creates = arguments.estate && matches!(arguments.action, TokenSubcommand::Create { .. });
        let missing =
            if creates { MissingRegistryDirectoryPolicy::Create } else { MissingRegistryDirectoryPolicy::Refuse };
        let registry = workspaces::open_registry(flags, arguments.workspaces.as_ref(), missing)?;
        let by = open_workspace::caller_from_flags(&CallerAccessCliFlags::default(), CallerProtocol::Person)?;
        Ok(WorkspaceOrRegistryTokenStore::Registry(registry, Box::new(by)))
    }

    fn now_ms(&self) -> i64 {
        match self {
            WorkspaceOrRegistryTokenStore::Workspace(opened) => opened.local.now_ms(),
            WorkspaceOrRegistryTokenStore::Registry(registry, _) => registry.now_ms(),
        }
    }

    fn create(
        &self,
        request: &CreateTokenRequest,
        arguments: &TokenCliArgs,
    ) -> Result<NewTokenWithSecret, CommandError> {
        let (created, secret) = match self {
            WorkspaceOrRegistryTokenStore::Workspace(opened) => return Ok(opened.local.create_token(request)?),
            WorkspaceOrRegistryTokenStore::Registry(registry, by) if arguments.estate => {
                registry.create_admin_token(by, request)?
            }
            WorkspaceOrRegistryTokenStore::Registry(registry, by) => {
                registry.create_token(by, &arguments.workspace_name()?, request)?
            }
        };
        Ok((created.token, secret))
    }

    fn rotate(&self, id: &str, overlap_ms: i64) -> Result<NewTokenWithSecret, CommandError> {
        match self {
            WorkspaceOrRegistryTokenStore::Workspace(opened) => Ok(opened.local.rotate_token(id, overlap_ms)?),
            WorkspaceOrRegistryTokenStore::Registry(registry, by) => {
                let (created, secret) = registry.rotate_token(by, id, overlap_ms)?;
                Ok((created.token, secret))
            }
        }
    }

    fn list(&self, arguments: &TokenCliArgs) -> Result<Vec<AccessTokenRecord>, CommandError> {
        let (registry, scope) = match self {
            WorkspaceOrRegistryTokenStore::Workspace(opened) => return Ok(opened.local.list_tokens()?),
            WorkspaceOrRegistryTokenStore::Registry(registry, _) if arguments.estate => {
                (registry, TokenScope::Administration)
            }
            WorkspaceOrRegistryTokenStore::Registry(registry, _) => {
                (registry, registry.scope_of_workspace(&arguments.workspace_name()?)?)
            }
        };
        Ok(registry.list_tokens(&scope)?)
    }

    fn revoke(&self, id: &str) -> Result<AccessTokenRecord, CommandError> {
        match self {
            WorkspaceOrRegistryTokenStore::Workspace(opened) => Ok(opened.local.revoke_token(id)?),
            WorkspaceOrRegistryTokenStore::Registry(registry, by) => Ok(registry.revoke_token(by, id)?),
        }
    }
}

impl TokenCliArgs {
    fn workspace_name(&self) -> Result<WorkspaceName, CommandError> {
        let name = self.workspace_name.as_deref().ok_or_else(|| {
            output::usage_error("--workspace-name NAME is required, or --estate for an administrator token")
        })?;
        Ok(WorkspaceName::parse(name)?)
    }
}

fn token_request(
    caller: &CallerAccessCliFlags,
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
        expires_ms: lasts
            .map(|lasts| time::parse_duration("--lasts", lasts))
            .transpose()?
            .map(|lasts_ms| now_ms.saturating_add(lasts_ms)),
        label: label.to_owned(),
    })
}

fn print_new_token(token: &AccessTokenRecord, secret: &str, format: OutputFormat) -> CliCommandResult {
    match format {
        OutputFormat::Json => {
            let mut object = token_to_json(token);
            object["token"] = secret.into();
            output::print_json(&object)?;
        }
        OutputFormat::Text => {
            output::print_note(&format!(
                "created token {} for {}; copy it now, it is not shown again",
                token.id, token.principal
            ));
            output::print_text(secret)?;
        }
    }
    Ok(CommandExit::Success)
}

fn token_line(token: &AccessTokenRecord, now_ms: i64) -> String {
    let until = match token.expires_ms {
        None => "until revoked".to_owned(),
        Some(ends_ms) if token.is_expired(now_ms) => {
            format!("not valid since {} (revoked or expired)", UtcSecond { unix_ms: ends_ms })
        }
        Some(ends_ms) => format!("until {}", UtcSecond { unix_ms: ends_ms }),
    };
    let access = if token.is_read_only() { ", read-only" } else { "" };
    let label = if token.label.is_empty() { String::new() } else { format!("  {}", token.label) };
    format!("{}  {}{access}  {until}{label}", token.id, token.principal)
}
