//! `stead approvals`: what waits for a person, and the person's answer. The only way to say yes.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use engine::{ApprovalState, Approver, Call, Caller, Failure, Kind, Principal};
use local::Wall;
use serde_json::{Map, Value};

mod always;

use crate::{
    cli::{CallerFlags, WorkspaceFlags},
    secret,
    show::{self, Exit, Form, Outcome, Problem},
    wire::{self, Asker, Opened},
};

/// The flags of `stead approvals`.
#[derive(Debug, Args)]
pub(crate) struct ApprovalsArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make the secret that answering needs, once
    Setup {
        /// Take the secret from this file instead of the terminal
        #[arg(long, value_name = "FILE", conflicts_with = "generate")]
        secret_file: Option<PathBuf>,
        /// Make a random secret and print it, this once
        #[arg(long)]
        generate: bool,
        /// The present secret, when there is one already, from a file
        #[arg(long, value_name = "FILE")]
        old_secret_file: Option<PathBuf>,
    },
    /// List what waits for an answer
    List {
        /// Also what was answered, used or has ended
        #[arg(long)]
        all: bool,
        /// Answer with one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show one question with everything it would change
    Show {
        /// Which
        id: String,
        /// Answer with one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Let a call run, once, exactly as it was planned
    Approve {
        #[command(flatten)]
        answer: AnswerFlags,
        /// Also write a rule that lets such calls run from now on; it is shown first
        #[arg(long)]
        always: bool,
        /// The places of that rule, as patterns [default: those of the plan]
        #[arg(long, value_name = "GLOB", requires = "always")]
        paths: Vec<String>,
        /// Write the rule without asking
        #[arg(long, requires = "always")]
        yes: bool,
    },
    /// Refuse a call
    Deny {
        #[command(flatten)]
        answer: AnswerFlags,
    },
}

/// What both answers take.
#[derive(Debug, Args)]
struct AnswerFlags {
    #[command(flatten)]
    caller: CallerFlags,
    /// Which
    id: String,
    /// What to say with it
    #[arg(long)]
    reason: Option<String>,
    /// Take the approver's secret from this file instead of the terminal
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Answer with one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs one of them.
pub(crate) fn run(flags: &WorkspaceFlags, arguments: &ApprovalsArguments) -> Outcome {
    let opened = wire::open(flags, Wall::Leave)?;
    match &arguments.action {
        Action::Setup { secret_file, generate, old_secret_file } => {
            if opened.local.has_approver()? {
                show::remark("there is a secret already; it is needed to make another");
                opened.local.check_approver(&secret::given(old_secret_file.as_deref())?)?;
            }
            let made = if *generate { secret::made()? } else { secret::new(secret_file.as_deref())? };
            opened.local.set_approver(&made)?;
            if *generate {
                show::text(&made)?;
            }
            show::remark("the secret is set; keep it where no agent can read it");
            Ok(Exit::Fine)
        }
        Action::List { all, json } => {
            let state = if *all { "all" } else { "pending" };
            let found = ask(&opened, &person(&CallerFlags::default())?, "approvals", &[("state", state)])?;
            print(&found, Form::from(*json))
        }
        Action::Show { id, json } => {
            let found = ask(&opened, &person(&CallerFlags::default())?, "approvals", &[("id", id)])?;
            match Form::from(*json) {
                Form::Json => show::json(&Value::Object(found.json))?,
                Form::Text => show::text(&whole(&found.json))?,
            }
            Ok(Exit::Fine)
        }
        Action::Approve { answer, always, paths, yes } => {
            let caller = approver(&opened, answer)?;
            let shown = ask(&opened, &caller, "approvals", &[("id", &answer.id)])?;
            // What was answered or ended is refused below; no rule comes of it.
            let waits =
                shown.json.get("state").and_then(Value::as_str) == Some(ApprovalState::Pending.word());
            if *always && waits {
                let agreed = if *yes { always::Agreed::Already } else { always::Agreed::Ask };
                always::write(&opened, &caller, &shown.json, paths, agreed)?;
            }
            let said = say(&opened, &caller, "approve", answer)?;
            show::remark("it runs when the very same call is made again, once");
            Ok(said)
        }
        Action::Deny { answer } => {
            let caller = approver(&opened, answer)?;
            say(&opened, &caller, "deny", answer)
        }
    }
}

/// Writes the rule that lets such calls run from now on, for a person who agreed to it elsewhere.
pub(crate) fn keep(opened: &Opened, id: &str) -> Result<(), Problem> {
    let caller = person(&CallerFlags::default())?;
    let shown = ask(opened, &caller, "approvals", &[("id", id)])?;
    always::write(opened, &caller, &shown.json, &[], always::Agreed::Already)
}

/// The person at the command line.
fn person(flags: &CallerFlags) -> Result<Caller, Problem> {
    wire::caller(flags, Asker::Person)
}

/// The person at the command line, once the secret is shown.
fn approver(opened: &Opened, answer: &AnswerFlags) -> Result<Caller, Problem> {
    let mut caller = person(&answer.caller)?;
    if !matches!(caller.principal, Principal::User(_)) {
        return Err(Failure::new(Kind::PolicyDenied, "only a person can answer").into());
    }
    if !opened.local.has_approver()? {
        return Err(Failure::new(Kind::PolicyDenied, "nobody has made an approver's secret yet")
            .hint("run `stead approvals setup` once")
            .into());
    }
    opened.local.check_approver(&secret::given(answer.secret_file.as_deref())?)?;
    caller.grants.approver = Approver::Shown;
    Ok(caller)
}

fn say(opened: &Opened, caller: &Caller, operation: &str, answer: &AnswerFlags) -> Outcome {
    let mut arguments = vec![("id", answer.id.as_str())];
    arguments.extend(answer.reason.as_deref().map(|reason| ("reason", reason)));
    let answered = ask(opened, caller, operation, &arguments)?;
    print(&answered, Form::from(answer.json))
}

fn ask(
    opened: &Opened,
    caller: &Caller,
    operation: &str,
    arguments: &[(&str, &str)],
) -> Result<engine::Answer, Problem> {
    let arguments: Map<String, Value> =
        arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    Ok(opened.engine.call(&Call::new(caller, operation, arguments))?)
}

fn print(answer: &engine::Answer, form: Form) -> Outcome {
    match form {
        Form::Json => show::json(&Value::Object(answer.json.clone()))?,
        Form::Text => show::text(&answer.text)?,
    }
    Ok(Exit::Fine)
}

/// One question as a person reads it before answering.
fn whole(approval: &Map<String, Value>) -> String {
    let word = |name: &str| approval.get(name).and_then(Value::as_str).unwrap_or_default();
    let what = if word("tool").is_empty() { word("operation") } else { word("tool") };
    let mut lines = vec![
        format!("{} is {}", word("id"), word("state")),
        format!("{} (session {}) wants {what}", word("principal"), word("session")),
        format!("this needs a person because of {}", word("why")),
        format!("asked {}, ends {}", word("created"), word("expires")),
        format!("plan {}", word("digest")),
        String::new(),
    ];
    lines.extend(engine::plan_lines(approval.get("plan").unwrap_or(&Value::Null)));
    if word("state") == "pending" {
        let id = word("id");
        lines.push(String::new());
        lines.push(format!("to let exactly this run once: stead approvals approve {id}"));
        lines.push(format!("to refuse it:                 stead approvals deny {id} --reason TEXT"));
    }
    lines.join("\n")
}
