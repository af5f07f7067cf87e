//! `stead token --workspaces`: tokens of an estate, each of one workspace or of those who administer.

use local::{Scope, WorkspaceName};

use super::{Action, TokenArguments, duration, line, tell, wanted};
use crate::{
    cli::{CallerFlags, WorkspaceFlags},
    estate::described,
    show::{self, Exit, Form, Outcome, Problem},
    wire::{self, Asker},
    workspaces::{self, Missing},
};

/// Runs one of them.
pub(super) fn run(flags: &WorkspaceFlags, arguments: &TokenArguments) -> Outcome {
    let missing = match &arguments.action {
        Action::Create { .. } if arguments.estate => Missing::Make,
        Action::Create { .. } | Action::Rotate { .. } | Action::List { .. } | Action::Revoke { .. } => {
            Missing::Refuse
        }
    };
    let estate = workspaces::open(flags, arguments.workspaces.as_ref(), missing)?;
    let by = wire::caller(&CallerFlags::default(), Asker::Person)?;
    let named = || -> Result<WorkspaceName, Problem> {
        let name = arguments.workspace_name.as_deref().ok_or_else(|| {
            show::usage("say what the token is for: --workspace-name NAME, or --estate to administer")
        })?;
        Ok(WorkspaceName::parse(name)?)
    };
    match &arguments.action {
        Action::Create { caller, lasts, label, json } => {
            let ask = wanted(caller, lasts.as_deref(), label, estate.now_ms())?;
            let (made, shown) = if arguments.estate {
                estate.create_steward_token(&by, &ask)?
            } else {
                estate.create_token(&by, &named()?, &ask)?
            };
            tell(&made.token, &shown, Form::from(*json))
        }
        Action::Rotate { id, overlap, json } => {
            let (made, shown) = estate.rotate_token(&by, id, duration(overlap)?)?;
            tell(&made.token, &shown, Form::from(*json))
        }
        Action::List { json } => {
            let scope = if arguments.estate { Scope::Estate } else { estate.scope_of(&named()?)? };
            for token in estate.tokens(&scope)? {
                match Form::from(*json) {
                    Form::Json => show::json(&described(&token))?,
                    Form::Text => show::text(&line(&token, estate.now_ms()))?,
                }
            }
            Ok(Exit::Fine)
        }
        Action::Revoke { id } => {
            let token = estate.revoke_token(&by, id)?;
            show::text(&line(&token, estate.now_ms()))?;
            Ok(Exit::Fine)
        }
    }
}
