//! Runs `stead config`, which prints and checks the settings of the server.

use clap::{ArgMatches, Args, Subcommand};
use serde_json::{Value, json};

use crate::{
    cli::{self, WorkspaceFlags},
    output::{self, CliCommandResult, CommandExit},
    serve::{self, ServeFlags},
    settings::{self, ConfigSettingDefinition, LayeredCommandLine, SettingOrigin},
};

#[derive(Debug, Args)]
pub(crate) struct ConfigCommandArgs {
    #[command(subcommand)]
    action: ConfigSubcommand,
}

#[derive(Debug, Subcommand)]
enum ConfigSubcommand {
    /// Print every setting with its value and origin
    Show {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        serve: Box<ServeFlags>,
    },
    /// Check whether the server would start with these settings, without starting it
    Check {
        #[command(flatten)]
        serve: Box<ServeFlags>,
    },
    /// Print the reference of all settings as Markdown
    #[command(hide = true)]
    Reference,
}

pub(crate) fn run(
    flags: &WorkspaceFlags,
    arguments: &ConfigCommandArgs,
    settings: &[ConfigSettingDefinition],
    layered: &LayeredCommandLine,
    matches: &ArgMatches,
) -> CliCommandResult {
    match &arguments.action {
        ConfigSubcommand::Show { json: true, .. } => {
            for setting in settings {
                let (values, origin) = setting_value(setting, layered, matches);
                output::print_json(&json!({
                    "name": setting.name,
                    "value": toml_value(setting, &values),
                    "origin": origin_name(&origin),
                    "place": origin.to_string(),
                    "choices": setting.choices,
                }))?;
            }
        }
        ConfigSubcommand::Show { json: false, .. } => {
            output::print_text(&settings_as_toml(settings, layered, matches))?
        }
        ConfigSubcommand::Check { serve } => {
            serve::check_settings(flags, serve)?;
            let config_file = layered.config_file.as_ref().map_or_else(
                || "no configuration file".to_owned(),
                |file| format!("configuration file {}", file.display()),
            );
            output::print_text(&format!("the settings are valid ({config_file}); stead serve would start with them"))?;
        }
        ConfigSubcommand::Reference => output::print_text(&settings::settings_reference(settings))?,
    }
    Ok(CommandExit::Success)
}

fn settings_as_toml(
    settings: &[ConfigSettingDefinition],
    layered: &LayeredCommandLine,
    matches: &ArgMatches,
) -> String {
    let mut text = String::new();
    for setting in settings {
        let (values, origin) = setting_value(setting, layered, matches);
        let value = toml_value(setting, &values);
        let line = if value.is_null() {
            format!("# {} is not set", setting.name)
        } else {
            format!("{} = {value}", setting.name)
        };
        text.push_str(&format!("{line}  # {origin}\n"));
    }
    text
}

fn setting_value(
    setting: &ConfigSettingDefinition,
    layered: &LayeredCommandLine,
    matches: &ArgMatches,
) -> (Vec<String>, SettingOrigin) {
    let deepest = cli::innermost_matches(matches);
    let raw = deepest.try_get_raw(&setting.name).ok().flatten().into_iter().flatten();
    let values = raw.map(|value| match setting.is_path {
        // Paths are printed as absolute paths, because the output may be saved as a configuration file elsewhere.
        true => std::path::absolute(value).unwrap_or_else(|_| value.into()).to_string_lossy().into_owned(),
        false => value.to_string_lossy().into_owned(),
    });
    (values.collect(), layered.origin_of(matches, &setting.name))
}

fn toml_value(setting: &ConfigSettingDefinition, values: &[String]) -> Value {
    match (setting.form, values) {
        (settings::SettingValueArity::List, values) => json!(values),
        (settings::SettingValueArity::Switch, [word, ..]) => json!(word == "true"),
        (settings::SettingValueArity::Single, [value, ..]) => json!(value),
        (settings::SettingValueArity::Single | settings::SettingValueArity::Switch, []) => Value::Null,
    }
}

fn origin_name(origin: &SettingOrigin) -> &'static str {
    match origin {
        SettingOrigin::Flag => "flag",
        SettingOrigin::Variable(_) => "variable",
        SettingOrigin::File(..) => "file",
        SettingOrigin::Default => "default",
    }
}
