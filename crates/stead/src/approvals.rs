//! `stead approvals`: lists and answers pending approvals. Answering needs the approver's secret.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Map, Value};
use stead_engine::{ApprovalState, ApproverProof, Call, Caller, Error, ErrorKind, Principal};
use stead_local::LandlockMode;

mod allow_rule;

use crate::{
    approver_secret,
    cli::{CallerFlags, WorkspaceFlags},
    open_workspace::{self, CallerKind, CommandWorkspace},
    output::{self, CommandError, CommandExit, CommandResult, OutputFormat},
};

#[derive(Debug, Args)]
pub(crate) struct ApprovalsCliArgs {
    #[command(subcommand)]
    action: ApprovalsSubcommand,
}

#[derive(Debug, Subcommand)]
enum ApprovalsSubcommand {
    /// Set the approver's secret, which answering needs (once)
    Setup {
        /// Read the secret from this file instead of the terminal
        #[arg(long, value_name = "FILE", conflicts_with = "generate")]
        secret_file: Option<PathBuf>,
        /// Generate a random secret and print it once
        #[arg(long)]
        generate: bool,
        /// Read the current secret, if one is set, from this file
        #[arg(long, value_name = "FILE")]
        old_secret_file: Option<PathBuf>,
    },
    /// List pending approvals
    List {
        /// Include approvals that were answered, used or have expired
        #[arg(long)]
        all: bool,
        /// Print the answer as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show one approval with all changes that the call would make
    Show {
        /// Approval id
        id: String,
        /// Print the answer as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Approve a call: it may run once, exactly as planned
    Approve {
        #[command(flatten)]
        answer: ApprovalAnswerFlags,
        /// Also add a policy rule that allows such calls from now on; it is printed first
        #[arg(long)]
        always: bool,
        /// Paths of that rule, as glob patterns [default: the paths of the plan]
        #[arg(long, value_name = "GLOB", requires = "always")]
        paths: Vec<String>,
        /// Add the rule without confirmation
        #[arg(long, requires = "always")]
        yes: bool,
    },
    /// Deny a call
    Deny {
        #[command(flatten)]
        answer: ApprovalAnswerFlags,
    },
}

#[derive(Debug, Args)]
struct ApprovalAnswerFlags {
    #[command(flatten)]
    caller: CallerFlags,
    /// Approval id
    id: String,
    /// Reason to record with the answer
    #[arg(long)]
    reason: Option<String>,
    /// Read the approver's secret from this file instead of the terminal
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Print the answer as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(flags: &WorkspaceFlags, arguments: &ApprovalsCliArgs) -> CommandResult {
    let opened = open_workspace::open_workspace(flags, LandlockMode::Off)?;
    match &arguments.action {
        ApprovalsSubcommand::Setup { secret_file, generate, old_secret_file } => {
            if opened.local.has_approver_secret()? {
                output::print_note("a secret is already set; enter it to change it");
                opened.local.check_approver_secret(&approver_secret::read_secret(old_secret_file.as_deref())?)?;
            }
            let secret = if *generate {
                approver_secret::generate_secret()?
            } else {
                approver_secret::read_new_secret(secret_file.as_deref())?
            };
            opened.local.set_approver_secret(&secret)?;
            if *generate {
                output::print_text(&secret)?;
            }
            output::print_note("approver's secret set; store it where no agent can read it");
            Ok(CommandExit::Success)
        }
        ApprovalsSubcommand::List { all, json } => {
            let state = if *all { "all" } else { "pending" };
            let outcome =
                call_operation(&opened, &local_person(&CallerFlags::default())?, "approvals", &[("state", state)])?;
            print_outcome(&outcome, OutputFormat::from(*json))
        }
        ApprovalsSubcommand::Show { id, json } => {
            let outcome = call_operation(&opened, &local_person(&CallerFlags::default())?, "approvals", &[("id", id)])?;
            match OutputFormat::from(*json) {
                OutputFormat::Json => output::print_json(&Value::Object(outcome.json))?,
                OutputFormat::Text => output::print_text(&approval_text(&outcome.json))?,
            }
            Ok(CommandExit::Success)
        }
        ApprovalsSubcommand::Approve { answer, always, paths, yes } => {
            let caller = authenticated_approver(&opened, answer)?;
            let approval = call_operation(&opened, &caller, "approvals", &[("id", &answer.id)])?;
            // An approval that is answered or expired is refused below, so no rule is written for it.
            let is_pending =
                approval.json.get("state").and_then(Value::as_str) == Some(ApprovalState::Pending.as_str());
            if *always && is_pending {
                let confirmation = if *yes {
                    allow_rule::RuleConfirmation::Given
                } else {
                    allow_rule::RuleConfirmation::AskAtTerminal
                };
                allow_rule::write_rule(&opened, &caller, &approval.json, paths, confirmation)?;
            }
            let exit = answer_approval(&opened, &caller, "approve", answer)?;
            output::print_note("approved once; the agent must repeat exactly the same call");
            Ok(exit)
        }
        ApprovalsSubcommand::Deny { answer } => {
            let caller = authenticated_approver(&opened, answer)?;
            answer_approval(&opened, &caller, "deny", answer)
        }
    }
}

/// Writes a rule that allows such calls from now on, after the person confirmed it in an editor.
pub(crate) fn write_allow_rule(opened: &CommandWorkspace, id: &str) -> Result<(), CommandError> {
    let caller = local_person(&CallerFlags::default())?;
    let approval = call_operation(opened, &caller, "approvals", &[("id", id)])?;
    allow_rule::write_rule(opened, &caller, &approval.json, &[], allow_rule::RuleConfirmation::Given)
}

fn local_person(flags: &CallerFlags) -> Result<Caller, CommandError> {
    open_workspace::caller_from_flags(flags, CallerKind::Person)
}

/// The person at the command line, after checking the approver's secret.
fn authenticated_approver(opened: &CommandWorkspace, answer: &ApprovalAnswerFlags) -> Result<Caller, CommandError> {
    let mut caller = local_person(&answer.caller)?;
    if !matches!(caller.principal, Principal::User(_)) {
        return Err(Error::new(ErrorKind::PolicyDenied, "only a person can answer an approval").into());
    }
    if !opened.local.has_approver_secret()? {
        return Err(Error::new(ErrorKind::PolicyDenied, "no approver's secret is set")
            .with_next_step("run: stead approvals setup")
            .into());
    }
    opened.local.check_approver_secret(&approver_secret::read_secret(answer.secret_file.as_deref())?)?;
    caller.grants.approver = ApproverProof::SecretVerified;
    Ok(caller)
}

fn answer_approval(
    opened: &CommandWorkspace,
    caller: &Caller,
    operation: &str,
    answer: &ApprovalAnswerFlags,
) -> CommandResult {
    let mut arguments = vec![("id", answer.id.as_str())];
    arguments.extend(answer.reason.as_deref().map(|reason| ("reason", reason)));
    let answered = call_operation(opened, caller, operation, &arguments)?;
    print_outcome(&answered, OutputFormat::from(answer.json))
}

fn call_operation(
    opened: &CommandWorkspace,
    caller: &Caller,
    operation: &str,
    arguments: &[(&str, &str)],
) -> Result<stead_engine::CallOutcome, CommandError> {
    let arguments: Map<String, Value> =
        arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    Ok(opened.engine.call(&Call::new(caller, operation, arguments))?)
}

fn print_outcome(answer: &stead_engine::CallOutcome, form: OutputFormat) -> CommandResult {
    match form {
        OutputFormat::Json => output::print_json(&Value::Object(answer.json.clone()))?,
        OutputFormat::Text => output::print_text(&answer.text)?,
    }
    Ok(CommandExit::Success)
}

/// An approval as a person reads it before answering.
fn approval_text(approval: &Map<String, Value>) -> String {
    let word = |name: &str| approval.get(name).and_then(Value::as_str).unwrap_or_default();
    let what = if word("tool").is_empty() { word("operation") } else { word("tool") };
    let mut lines = vec![
        format!("{} is {}", word("id"), word("state")),
        format!("{} (session {}) requests {what}", word("principal"), word("session")),
        format!("approval is required because of {}", word("why")),
        format!("requested {}, expires {}", word("created"), word("expires")),
        format!("plan {}", word("digest")),
        String::new(),
    ];
    lines.extend(stead_engine::render_plan_lines(approval.get("plan").unwrap_or(&Value::Null)));
    if word("state") == "pending" {
        let id = word("id");
        lines.push(String::new());
        lines.push(format!("to approve it once: stead approvals approve {id}"));
        lines.push(format!("to deny it:         stead approvals deny {id} --reason TEXT"));
    }
    lines.join("\n")
}
