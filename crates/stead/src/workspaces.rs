//! `stead workspace`: the workspaces of an estate are made, listed, shown, ended and taken back. Can be used while a server
//! runs on the same estate.

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, Subcommand};
use engine::{Caller, Failure, Kind};
use faces::http::{Errand, Leaving, Steward};
use local::Estate;
use serde_json::{Map, Value, json};

use crate::{
    cli::{CallerFlags, WorkspaceFlags},
    estate::{self, Stewardship},
    outside,
    show::{self, Exit, Form, Outcome, Problem},
    time,
    wire::{self, Asker},
};

/// The flags of `stead workspace`.
#[derive(Debug, Args)]
pub(crate) struct WorkspaceArguments {
    /// The directory of the estate; create and import make it if it is missing
    #[arg(long, value_name = "DIR", global = true, required = false)]
    workspaces: Option<PathBuf>,
    /// Who asks: user:NAME
    #[arg(long, value_name = "PRINCIPAL", global = true)]
    principal: Option<String>,
    /// Answer with one JSON object
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

/// What a new workspace shall be like; its policy is the file of `--policy`.
#[derive(Debug, Args)]
struct AskFlags {
    /// Gone at once when it is destroyed; otherwise it waits in the trash of the estate
    #[arg(long)]
    ephemeral: bool,
    /// What it is for
    #[arg(long, value_name = "TEXT", default_value = "")]
    label: String,
    /// The most bytes that its files may have together
    #[arg(long, value_name = "BYTES")]
    bytes_max: Option<u64>,
    /// The most files, links and directories that it may have
    #[arg(long, value_name = "COUNT")]
    files_max: Option<u64>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make an empty workspace
    Create {
        /// Its name: a-z, 0-9 and -
        name: String,
        #[command(flatten)]
        ask: AskFlags,
    },
    /// List workspaces by name
    List {
        /// Those in the trash instead
        #[arg(long)]
        trash: bool,
        /// Where the page before ended
        #[arg(long, value_name = "CURSOR")]
        cursor: Option<String>,
        /// How many on a page
        #[arg(long, value_name = "COUNT")]
        limit: Option<usize>,
    },
    /// Show one workspace with its size and the head of its journal
    Show {
        /// Which
        name: String,
    },
    /// Make a workspace that holds what another holds now
    Fork {
        /// Which
        from: String,
        /// The name of the copy
        name: String,
        #[command(flatten)]
        ask: AskFlags,
    },
    /// Write a workspace as a tar archive
    Export {
        /// Which
        name: String,
        /// A new file to write to [default: standard output]
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Make a workspace from a tar archive: all of it or nothing
    Import {
        /// Its name
        name: String,
        /// The file to read [default: standard input]
        #[arg(long, value_name = "FILE")]
        input: Option<PathBuf>,
        #[command(flatten)]
        ask: AskFlags,
    },
    /// End a workspace: an ephemeral one is gone, another waits in the trash
    Destroy {
        /// Which
        name: String,
    },
    /// Take a workspace back from the trash
    Restore {
        /// Its name, or its id if several had that name
        name: String,
        /// Under which name
        #[arg(long = "as", value_name = "NAME")]
        rename: Option<String>,
    },
}

/// What is done about an estate that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It is made, for what begins something in it.
    Make,
    /// That is said: whoever looks for something has mistyped the place.
    Refuse,
}

/// The estate that a flag names.
pub(crate) fn open(
    flags: &WorkspaceFlags,
    directory: Option<&PathBuf>,
    missing: Missing,
) -> Result<Arc<Estate>, Problem> {
    let directory = directory.ok_or_else(|| show::usage("say where the workspaces are: --workspaces DIR"))?;
    if missing == Missing::Refuse && !outside::is_there(&Estate::own_directory(directory)) {
        let detail = format!("there are no workspaces in {}", directory.display());
        return Err(Failure::new(Kind::NotFound, detail)
            .hint("name the directory that `stead serve --workspaces` serves; `stead workspace create` makes one")
            .into());
    }
    Ok(Estate::open(estate::options(flags, directory))?)
}

impl Action {
    fn missing(&self) -> Missing {
        match self {
            Action::Create { .. } | Action::Import { .. } => Missing::Make,
            Action::List { .. }
            | Action::Show { .. }
            | Action::Fork { .. }
            | Action::Export { .. }
            | Action::Destroy { .. }
            | Action::Restore { .. } => Missing::Refuse,
        }
    }
}

impl AskFlags {
    fn object(&self, flags: &WorkspaceFlags) -> Result<Map<String, Value>, Problem> {
        let lasting = if self.ephemeral { "ephemeral" } else { "kept" };
        let policy = flags.policy.as_deref().map(outside::read).transpose()?;
        let object = json!({
            "lasting": lasting, "label": self.label, "bytes_max": self.bytes_max, "files_max": self.files_max,
            "policy": policy,
        });
        Ok(object.as_object().cloned().unwrap_or_default())
    }
}

/// Runs one of them.
pub(crate) fn run(flags: &WorkspaceFlags, arguments: &WorkspaceArguments) -> Outcome {
    let estate = open(flags, arguments.workspaces.as_ref(), arguments.action.missing())?;
    let caller = CallerFlags { principal: arguments.principal.clone(), ..CallerFlags::default() };
    let by = wire::caller(&caller, Asker::Person)?;
    let steward = Stewardship(estate);
    let errand = match &arguments.action {
        Action::Fork { from, name, ask } => {
            let mut object = ask.object(flags)?;
            object.insert("name".to_owned(), name.as_str().into());
            Errand::Fork(from.clone(), object)
        }
        Action::Export { name, output } => return export(&steward, &by, name, output.as_deref()),
        Action::Import { name, input, ask } => {
            let mut from: Box<dyn Read> = match input {
                Some(file) => Box::new(outside::open(file)?),
                None => Box::new(std::io::stdin().lock()),
            };
            let made = steward.import(&by, name, ask.object(flags)?, &mut *from)?;
            return tell(&made, Form::from(arguments.json));
        }
        Action::Create { name, ask } => {
            let mut object = ask.object(flags)?;
            object.insert("name".to_owned(), name.as_str().into());
            Errand::Create(object)
        }
        Action::List { trash, cursor, limit } => {
            let object = json!({ "trash": trash, "cursor": cursor, "limit": limit });
            Errand::List(object.as_object().cloned().unwrap_or_default())
        }
        Action::Show { name } => Errand::Show(name.clone()),
        Action::Destroy { name } => Errand::Destroy(name.clone()),
        Action::Restore { name, rename } => {
            let name_wanted = rename.as_ref().map(|name| ("name".to_owned(), name.as_str().into()));
            Errand::Restore(name.clone(), name_wanted.into_iter().collect())
        }
    };
    let answer = steward.run(&by, errand)?;
    tell(&answer, Form::from(arguments.json))
}

/// Writes an archive, and says what it does not carry.
fn export(steward: &Stewardship, by: &Caller, name: &str, output: Option<&Path>) -> Outcome {
    let mut begin = |leaving: Leaving| {
        if leaving.left_out > 0 {
            let count = leaving.left_out;
            show::remark(&format!("left out: {count} links, pipes or devices, which no archive carries"));
        }
    };
    match output {
        Some(file) => {
            let mut out = outside::create(file)?;
            steward.export(by, name, &mut begin, &mut out)?;
            out.flush()?;
        }
        None => {
            let mut out = std::io::BufWriter::new(std::io::stdout().lock());
            steward.export(by, name, &mut begin, &mut out)?;
            out.flush()?;
        }
    }
    Ok(Exit::Fine)
}

fn tell(answer: &Value, form: Form) -> Outcome {
    match (form, answer["workspaces"].as_array()) {
        (Form::Json, _) => show::json(answer)?,
        (Form::Text, None) => show::text(&line(answer))?,
        (Form::Text, Some(workspaces)) => {
            for one in workspaces {
                show::text(&line(one))?;
            }
            if let Some(cursor) = answer["cursor"].as_str() {
                show::remark(&format!("more follow: --cursor {cursor}"));
            }
        }
    }
    Ok(Exit::Fine)
}

/// One workspace on a line.
fn line(one: &Value) -> String {
    let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let when = |key: &str| one[key].as_i64().map(time::iso_utc).unwrap_or_default();
    let mut line = format!("{}  {}  {}  {}", text("name"), text("id"), text("lasting"), text("state"));
    if let (Some(files), Some(bytes)) = (one["files"].as_u64(), one["bytes"].as_u64()) {
        line.push_str(&format!("  {files} files, {bytes} bytes, entry {}", one["head"]["number"]));
    }
    line.push_str(&format!("  used {}", when("used_ms")));
    if one["ends_ms"].is_i64() {
        line.push_str(&format!("  until {}", when("ends_ms")));
    }
    let label = text("label");
    if !label.is_empty() {
        line.push_str(&format!("  {label}"));
    }
    line
}
