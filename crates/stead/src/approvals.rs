//! Runs `stead approvals` and `stead alerts`, which list the requests of agents and record the answers of people. The
//! approver's secret is never an argument or an environment variable, because other processes could read it there.

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::{ArgMatches, Args, Subcommand};
use serde_json::{Map, Value, json};
use stead_engine::{
    AdministrationStore, ApprovalPlanPreview, ApprovalState, CallControl, CallMetadata, CallOptions, Caller,
    CallerApproverStatus, Error, ErrorKind, NextStep, Principal, SecretTransport,
    ops::{Secret, SetApproverSecretArgs},
};
use stead_local::LandlockMode;
use stead_protocols::dialect::DialectReply;

mod allow_rule;

use allow_rule::NewPolicyRuleConfirmationMode;

use crate::{
    cli::{CallerAccessCliFlags, WorkspaceFlags},
    host_files,
    open_workspace::{self, CallerProtocol, CommandLineWorkspace},
    operation::{call_operation, print_answer},
    output::{self, AnswerFormatFlag, CliCommandResult, CommandError, CommandExit, usage_error},
    workspaces,
};

const GENERATED_BYTES: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct ApprovalsCliArgs {
    #[command(subcommand)]
    action: ApprovalsSubcommand,
}

#[derive(Debug, Subcommand)]
enum ApprovalsSubcommand {
    /// Set, once, the approver's secret, which is needed to answer approvals
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
        /// Set the secret for the administration of the hosted workspaces in this directory
        #[arg(long, value_name = "DIR")]
        workspaces: Option<PathBuf>,
    },
    /// List calls that wait for approval
    List {
        /// Include requests that were answered, used or have expired
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        format: AnswerFormatFlag,
    },
    /// Show one approval request with all changes that the call would make
    Show {
        /// Id of the approval request, as stead approvals list prints it
        id: String,
        #[command(flatten)]
        format: AnswerFormatFlag,
    },
    /// Approve a call: it may run once, exactly as planned
    Approve {
        #[command(flatten)]
        answer: ApprovalAnswerFlags,
        /// Also add a policy rule that allows similar calls from now on; the rule is printed first
        #[arg(long)]
        always: bool,
        /// Paths of the rule that --always adds, as glob patterns [default: the paths of the plan]
        #[arg(long, value_name = "GLOB", requires = "always")]
        paths: Vec<String>,
        /// Add the rule of --always without confirmation
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
    caller: CallerAccessCliFlags,
    /// Id of the approval request, as stead approvals list prints it
    id: String,
    /// Reason to record with the answer
    #[arg(long)]
    reason: Option<String>,
    /// Read the approver's secret from this file instead of the terminal
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    format: AnswerFormatFlag,
}

#[derive(Debug, Args)]
pub(crate) struct AlertsCliArgs {
    #[command(subcommand)]
    action: AlertsSubcommand,
}

#[derive(Debug, Subcommand)]
enum AlertsSubcommand {
    /// List alerts and their answers, newest first
    List(AlertsFlags),
    /// Show one alert
    Show {
        #[command(flatten)]
        flags: AlertsFlags,
        /// Id of the alert, as stead alerts list prints it
        id: String,
    },
    /// Answer an alert; the agent receives the answer as an event
    Answer {
        #[command(flatten)]
        flags: AlertsFlags,
        /// Id of the alert, as stead alerts list prints it
        id: String,
        /// Answer to the alert, which the agent receives
        text: String,
    },
}

#[derive(Debug, Args)]
struct AlertsFlags {
    #[command(flatten)]
    caller: CallerAccessCliFlags,
    #[command(flatten)]
    format: AnswerFormatFlag,
}

pub(crate) fn run_alerts(flags: &WorkspaceFlags, arguments: &AlertsCliArgs) -> CliCommandResult {
    let (call_flags, operation, call_arguments) = match &arguments.action {
        AlertsSubcommand::List(flags) => (flags, "alerts", json!({})),
        AlertsSubcommand::Show { flags, id } => (flags, "alerts", json!({ "id": id })),
        AlertsSubcommand::Answer { flags, id, text } => (flags, "respond", json!({ "alert": id, "text": text })),
    };
    let caller = local_person(&call_flags.caller)?;
    let opened = open_workspace::open_workspace(flags, LandlockMode::Off)?;
    let answer = call_operation(&opened, &caller, operation, call_arguments)?;
    print_answer(&answer, call_flags.format.into())
}

pub(crate) fn run_approvals(
    flags: &WorkspaceFlags,
    arguments: &ApprovalsCliArgs,
    matches: &ArgMatches,
) -> CliCommandResult {
    let opened = workspaces::open_target("approvals", flags, matches)?;
    match &arguments.action {
        ApprovalsSubcommand::Setup { secret_file, generate, old_secret_file, .. } => {
            let mut caller = local_person(&CallerAccessCliFlags::default())?;
            if opened.local.has_approver_secret()? {
                output::print_note("a secret is already set; enter it to change it");
                verify_secret(&opened, &mut caller, old_secret_file.as_deref())?;
            }
            let secret = if *generate { generate_secret()? } else { read_new_secret(secret_file.as_deref())? };
            let operation = SetApproverSecretArgs { secret: Secret(secret.clone()) };
            let options = CallOptions { secrets: SecretTransport::CommandLine, ..CallOptions::default() };
            let control = CallControl::default();
            let call = CallMetadata { caller: &caller, idempotency_key: None, options: &options, control: &control };
            opened.engine.run(operation, &call)?;
            if *generate {
                output::print_text(&secret)?;
            }
            output::print_note("the approver's secret is set; store it where no agent can read it");
            Ok(CommandExit::Success)
        }
        ApprovalsSubcommand::List { all, format } => {
            let state = json!({ "state": if *all { "all" } else { "pending" } });
            let answer = call_operation(&opened, &local_person(&CallerAccessCliFlags::default())?, "approvals", state)?;
            print_answer(&answer, (*format).into())
        }
        ApprovalsSubcommand::Show { id, format } => {
            let mut answer = load_approval(&opened, &local_person(&CallerAccessCliFlags::default())?, id)?;
            answer.text = approval_text(&answer.json_fields());
            print_answer(&answer, (*format).into())
        }
        ApprovalsSubcommand::Approve { answer, always, paths, yes } => {
            let caller = authenticated_approver(&opened, answer)?;
            let approval = load_approval(&opened, &caller, &answer.id)?;
            // No rule may be written for an answered or expired approval, which `answer_approval` refuses below.
            let is_pending =
                approval.json_fields().get("state").and_then(Value::as_str) == Some(ApprovalState::Pending.as_str());
            if *always && is_pending {
                let confirmation = if *yes {
                    NewPolicyRuleConfirmationMode::Given
                } else {
                    NewPolicyRuleConfirmationMode::AskAtTerminal
                };
                allow_rule::write_rule(&opened, &caller, &approval.json_fields(), paths, confirmation)?;
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

/// Adds a policy rule that allows calls like an approved call, after a person chose the rule in an ACP editor.
pub(crate) fn write_allow_rule(opened: &CommandLineWorkspace, id: &str) -> Result<(), CommandError> {
    let mut caller = local_person(&CallerAccessCliFlags::default())?;
    let approval = load_approval(opened, &caller, id)?;
    // The operator lets the client answer for a person with --approve client, so nobody enters the secret.
    caller.grants.approver = CallerApproverStatus::SecretVerified;
    allow_rule::write_rule(opened, &caller, &approval.json_fields(), &[], NewPolicyRuleConfirmationMode::Given)
}

fn local_person(flags: &CallerAccessCliFlags) -> Result<Caller, CommandError> {
    open_workspace::caller_from_flags(flags, CallerProtocol::Person)
}

fn authenticated_approver(opened: &CommandLineWorkspace, answer: &ApprovalAnswerFlags) -> Result<Caller, CommandError> {
    let mut caller = local_person(&answer.caller)?;
    if !matches!(caller.principal, Principal::User(_)) {
        return Err(Error::new(ErrorKind::PolicyDenied, "only a person can answer an approval request")
            .with_next_step("repeat the command as a person: --principal user:NAME")
            .into());
    }
    if !opened.local.has_approver_secret()? {
        return Err(Error::new(
            ErrorKind::PolicyDenied,
            "no approver's secret is set, so approval requests cannot be answered",
        )
        .with_next_step(NextStep::person_command("approvals setup", "set a secret"))
        .into());
    }
    verify_secret(opened, &mut caller, answer.secret_file.as_deref())?;
    Ok(caller)
}

/// Asks for the approver's secret, and notes in the grants of the caller that it was right.
pub(crate) fn verify_secret(
    opened: &CommandLineWorkspace,
    caller: &mut Caller,
    secret_file: Option<&Path>,
) -> Result<(), CommandError> {
    opened.local.check_approver_secret(&read_secret(secret_file)?)?;
    caller.grants.approver = CallerApproverStatus::SecretVerified;
    Ok(())
}

fn answer_approval(
    opened: &CommandLineWorkspace,
    caller: &Caller,
    operation: &str,
    answer: &ApprovalAnswerFlags,
) -> CliCommandResult {
    let arguments = json!({ "id": answer.id, "reason": answer.reason });
    print_answer(&call_operation(opened, caller, operation, arguments)?, answer.format.into())
}

fn load_approval(opened: &CommandLineWorkspace, caller: &Caller, id: &str) -> Result<DialectReply, CommandError> {
    Ok(call_operation(opened, caller, "approvals", json!({ "id": id }))?)
}

fn approval_text(approval: &Map<String, Value>) -> String {
    let word = |name: &str| approval.get(name).and_then(Value::as_str).unwrap_or_default();
    let requested = if word("tool").is_empty() { word("operation") } else { word("tool") };
    let mut lines = vec![
        format!("{} is {}", word("id"), word("state")),
        format!("{} (session {}) requests {requested}", word("principal"), word("session")),
        format!("approval is required because of {}", word("why")),
        format!("requested {}, expires {}", word("created"), word("expires")),
        format!("plan {}", word("digest")),
        String::new(),
    ];
    let plan = approval.get("plan").map(Value::to_string).unwrap_or_default();
    lines.extend(ApprovalPlanPreview::parse(&plan).render_lines());
    if word("state") == "pending" {
        let id = word("id");
        lines.push(String::new());
        lines.push(format!("to approve it once: stead approvals approve {id}"));
        lines.push(format!("to deny it:         stead approvals deny {id} --reason TEXT"));
    }
    lines.join("\n")
}

fn read_secret(file: Option<&Path>) -> Result<String, CommandError> {
    match file {
        Some(file) => read_secret_file(file),
        None => prompt_secret("approver's secret: "),
    }
}

fn read_new_secret(file: Option<&Path>) -> Result<String, CommandError> {
    if let Some(file) = file {
        return read_secret_file(file);
    }
    let first = prompt_secret("new approver's secret: ")?;
    if first != prompt_secret("repeat it: ")? {
        return Err(usage_error("the two secrets differ; no secret was set. Run the command again"));
    }
    Ok(first)
}

fn generate_secret() -> Result<String, CommandError> {
    let bytes: [u8; GENERATED_BYTES] = stead_disk::random_bytes()
        .map_err(|error| CommandError::System(format!("cannot read random bytes: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn prompt_secret(question: &str) -> Result<String, CommandError> {
    stead_disk::terminal::prompt_hidden(question).map_err(|error| {
        usage_error(if error.kind() == io::ErrorKind::Interrupted {
            "interrupted before the secret was entered; nothing was changed"
        } else if error.kind() == io::ErrorKind::InvalidData {
            "the secret is not UTF-8; nothing was changed"
        } else {
            "no terminal to enter the secret; pass --secret-file with a file that agents cannot read"
        })
    })
}

fn read_secret_file(file: &Path) -> Result<String, CommandError> {
    let text = host_files::read_text(file)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}
