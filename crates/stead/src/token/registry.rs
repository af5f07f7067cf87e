//! `stead token --workspaces`: tokens of hosted workspaces and of administrators.

use stead_local::{TokenScope, WorkspaceName};

use super::{TokenCliArgs, TokenSubcommand, parse_duration_flag, print_new_token, token_line, token_request};
use crate::{
    cli::{CallerFlags, WorkspaceFlags},
    open_workspace::{self, CallerKind},
    output::{self, CommandError, CommandExit, CommandResult, OutputFormat},
    workspace_admin::token_to_json,
    workspaces::{self, MissingRegistry},
};

pub(super) fn run(flags: &WorkspaceFlags, arguments: &TokenCliArgs) -> CommandResult {
    let missing = match &arguments.action {
        TokenSubcommand::Create { .. } if arguments.estate => MissingRegistry::Create,
        TokenSubcommand::Create { .. }
        | TokenSubcommand::Rotate { .. }
        | TokenSubcommand::List { .. }
        | TokenSubcommand::Revoke { .. } => MissingRegistry::Refuse,
    };
    let registry = workspaces::open_registry(flags, arguments.workspaces.as_ref(), missing)?;
    let by = open_workspace::caller_from_flags(&CallerFlags::default(), CallerKind::Person)?;
    let workspace_name = || -> Result<WorkspaceName, CommandError> {
        let name = arguments.workspace_name.as_deref().ok_or_else(|| {
            output::usage_error("--workspace-name NAME is required, or --estate for an administrator token")
        })?;
        Ok(WorkspaceName::parse(name)?)
    };
    match &arguments.action {
        TokenSubcommand::Create { caller, lasts, label, json } => {
            let request = token_request(caller, lasts.as_deref(), label, registry.now_ms())?;
            let (created, secret) = if arguments.estate {
                registry.create_admin_token(&by, &request)?
            } else {
                registry.create_token(&by, &workspace_name()?, &request)?
            };
            print_new_token(&created.token, &secret, OutputFormat::from(*json))
        }
        TokenSubcommand::Rotate { id, overlap, json } => {
            let (created, secret) = registry.rotate_token(&by, id, parse_duration_flag(overlap)?)?;
            print_new_token(&created.token, &secret, OutputFormat::from(*json))
        }
        TokenSubcommand::List { json } => {
            let scope = if arguments.estate {
                TokenScope::Administration
            } else {
                registry.scope_of_workspace(&workspace_name()?)?
            };
            for token in registry.list_tokens(&scope)? {
                match OutputFormat::from(*json) {
                    OutputFormat::Json => output::print_json(&token_to_json(&token))?,
                    OutputFormat::Text => output::print_text(&token_line(&token, registry.now_ms()))?,
                }
            }
            Ok(CommandExit::Success)
        }
        TokenSubcommand::Revoke { id } => {
            let token = registry.revoke_token(&by, id)?;
            output::print_text(&token_line(&token, registry.now_ms()))?;
            Ok(CommandExit::Success)
        }
    }
}
