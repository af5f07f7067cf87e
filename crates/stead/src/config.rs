//! `stead config`: what the server would be set to, and why.

use clap::{ArgMatches, Args, Subcommand};
use serde_json::{Value, json};

use crate::{
    cli::{self, WorkspaceFlags},
    serve::{self, ServeFlags},
    settings::{self, Layered, Origin, Setting},
    show::{self, Exit, Outcome},
};

/// The flags of `stead config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print every setting with its value and where it came from
    Show {
        /// Answer with one JSON object per line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        serve: Box<ServeFlags>,
    },
    /// Say whether the server would start with these settings; it does not
    Check {
        #[command(flatten)]
        serve: Box<ServeFlags>,
    },
    /// Print the reference of all settings
    #[command(hide = true)]
    Reference,
}

/// Runs one of them.
pub(crate) fn run(
    flags: &WorkspaceFlags,
    arguments: &ConfigArguments,
    settings: &[Setting],
    layered: &Layered,
    matches: &ArgMatches,
) -> Outcome {
    match &arguments.action {
        Action::Show { json: true, .. } => {
            for setting in settings {
                let (values, origin) = told(setting, layered, matches);
                show::json(&json!({
                    "name": setting.name,
                    "value": value(setting, &values),
                    "origin": word(&origin),
                    "place": origin.to_string(),
                    "choices": setting.choices,
                }))?;
            }
        }
        Action::Show { json: false, .. } => show::text(&listed(settings, layered, matches))?,
        Action::Check { serve } => {
            serve::check(flags, serve)?;
            let read = layered
                .file
                .as_ref()
                .map_or_else(|| "no configuration file".to_owned(), |file| file.display().to_string());
            show::text(&format!("{read}: the server would start"))?;
        }
        Action::Reference => show::text(&settings::reference(settings))?,
    }
    Ok(Exit::Fine)
}

/// A configuration file that would set everything as it is.
fn listed(settings: &[Setting], layered: &Layered, matches: &ArgMatches) -> String {
    let mut text = String::new();
    for setting in settings {
        let (values, origin) = told(setting, layered, matches);
        let value = value(setting, &values);
        let line = if value.is_null() {
            format!("# {} is not set", setting.name)
        } else {
            format!("{} = {value}", setting.name)
        };
        text.push_str(&format!("{line}  # {origin}\n"));
    }
    text
}

fn told(setting: &Setting, layered: &Layered, matches: &ArgMatches) -> (Vec<String>, Origin) {
    let deepest = cli::deepest(matches);
    let raw = deepest.try_get_raw(&setting.name).ok().flatten().into_iter().flatten();
    let values = raw.map(|value| match setting.is_path {
        // Whoever makes a file of this may put it anywhere.
        true => std::path::absolute(value).unwrap_or_else(|_| value.into()).to_string_lossy().into_owned(),
        false => value.to_string_lossy().into_owned(),
    });
    (values.collect(), layered.origin(matches, &setting.name))
}

/// The value as the file has it.
fn value(setting: &Setting, values: &[String]) -> Value {
    match (setting.form, values) {
        (settings::Form::Many, values) => json!(values),
        (settings::Form::Switch, [word, ..]) => json!(word == "true"),
        (settings::Form::One, [value, ..]) => json!(value),
        (settings::Form::One | settings::Form::Switch, []) => Value::Null,
    }
}

fn word(origin: &Origin) -> &'static str {
    match origin {
        Origin::Flag => "flag",
        Origin::Variable(_) => "variable",
        Origin::File(..) => "file",
        Origin::Usual => "default",
    }
}
