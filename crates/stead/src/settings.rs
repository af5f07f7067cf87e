//! The settings of `stead serve` and of the workspace. Every setting is a flag, a key of the configuration file and an
//! environment variable. The table of settings is derived from the clap declaration, so that no setting is declared
//! twice.

use std::{any::TypeId, path::PathBuf};

use clap::{Arg, ArgAction, Command, builder::BoolishValueParser};

mod file;
mod layers;

pub(crate) use layers::{LayeredCommandLine, SettingOrigin, apply_layers};

pub(crate) const VARIABLE_PREFIX: &str = "STEAD_";
/// The flag that names the configuration file; the file itself cannot contain this setting.
pub(crate) const CONFIG_FLAG: &str = "config";
pub(crate) const SERVE_COMMAND: &str = "serve";
/// The maximum edit distance at which a short setting name is suggested for a misspelled name.
const EDIT_DISTANCE_MAX: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingValueArity {
    Single,
    List,
    Switch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingCommandScope {
    Workspace,
    Serve,
}

#[derive(Debug, Clone)]
pub(crate) struct ConfigSettingDefinition {
    pub(crate) name: String,
    pub(crate) flag: String,
    pub(crate) variable: String,
    pub(crate) form: SettingValueArity,
    pub(crate) scope: SettingCommandScope,
    pub(crate) summary: String,
    pub(crate) default_values: Vec<String>,
    pub(crate) choices: Vec<String>,
    /// A path in the configuration file is relative to the directory of the configuration file.
    pub(crate) is_path: bool,
    excludes: Vec<String>,
}

impl ConfigSettingDefinition {
    fn from_arg(arg: &Arg, serve: &Command) -> Option<Self> {
        let flag = arg.get_long()?.to_owned();
        let name = arg.get_id().to_string();
        let is_many = matches!(arg.get_action(), ArgAction::Append);
        let is_switch = arg.get_value_parser().type_id() == TypeId::of::<bool>();
        let form = match (is_switch, is_many) {
            (true, _) => SettingValueArity::Switch,
            (false, true) => SettingValueArity::List,
            (false, false) => SettingValueArity::Single,
        };
        let texts =
            |values: &[clap::builder::OsStr]| values.iter().map(|value| value.to_string_lossy().into_owned()).collect();
        let excludes = serve.get_arg_conflicts_with(arg).iter().map(|other| other.get_id().to_string()).collect();
        Some(Self {
            variable: format!("{VARIABLE_PREFIX}{}", name.to_ascii_uppercase()),
            form,
            scope: if arg.is_global_set() { SettingCommandScope::Workspace } else { SettingCommandScope::Serve },
            summary: arg.get_help().map(ToString::to_string).unwrap_or_default(),
            default_values: texts(arg.get_default_values()),
            choices: match form {
                SettingValueArity::Switch => Vec::new(),
                SettingValueArity::Single | SettingValueArity::List => {
                    arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect()
                }
            },
            is_path: arg.get_value_parser().type_id() == TypeId::of::<PathBuf>(),
            excludes,
            name,
            flag,
        })
    }

    fn conflicts_with(&self, other: &ConfigSettingDefinition) -> bool {
        self.excludes.contains(&other.name) || other.excludes.contains(&self.name)
    }
}

/// Returns all settings in the order of the help, server settings first.
pub(crate) fn all_settings(command: &Command) -> Vec<ConfigSettingDefinition> {
    let mut command = command.clone();
    command.build();
    let Some(serve) = command.find_subcommand(SERVE_COMMAND) else { return Vec::new() };
    let is_setting = |arg: &&Arg| !["help", "version", CONFIG_FLAG].contains(&arg.get_id().as_str());
    let mut settings: Vec<ConfigSettingDefinition> = serve
        .get_arguments()
        .filter(is_setting)
        .filter_map(|arg| ConfigSettingDefinition::from_arg(arg, serve))
        .collect();
    settings.sort_by_key(|setting| setting.scope == SettingCommandScope::Workspace);
    settings
}

/// Lets every switch of a command take `=false`, which turns off a switch that the configuration file turned on.
pub(crate) fn with_negatable_switches(command: Command) -> Command {
    command.mut_args(|arg| {
        if !matches!(arg.get_action(), ArgAction::SetTrue) {
            return arg;
        }
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        arg.help(format!("{help}; =false overrides a configuration file"))
            .action(ArgAction::Set)
            .value_parser(BoolishValueParser::new())
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .default_value("false")
            .value_name("true|false")
            .hide_default_value(true)
            .hide_possible_values(true)
    })
}

fn nearest_name<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, name) = known.map(|name| (strsim::levenshtein(written, name), name)).min()?;
    (distance <= EDIT_DISTANCE_MAX.max(name.len() / 3)).then_some(name)
}

const INTRODUCTION: &str = "\
# Configuration

Printed by `stead config reference`; a test keeps it current.

Every setting is a flag of `stead serve`, a key of the configuration file and an environment variable. A flag overrides a
variable, a variable overrides the file, and the file overrides the default. A setting also overrides conflicting settings of
lower layers.

The file is TOML. It is the one named by `--config` or `STEAD_CONFIG`; otherwise `$XDG_CONFIG_HOME/stead/config.toml`
(`~/.config` if that is not set); otherwise `/etc/stead/config.toml`. Paths in it are relative to its directory. An unknown key
stops the server; the error names the line and the nearest known key. A repeatable setting is a list in the file and a
comma-separated value in a variable. A switch is `true` or `false`, also as `--flag=false`.

Workspace settings apply to every command, as flags and as variables. From the file they apply to other commands only if
`--config` or `STEAD_CONFIG` names it, so that the server's file never moves another command to another workspace.
`stead config show` prints every value and its origin. `stead config check` reports whether a server would start with them.
";

pub(crate) fn settings_reference(settings: &[ConfigSettingDefinition]) -> String {
    let mut text = INTRODUCTION.to_owned();
    for (scope, title) in [(SettingCommandScope::Serve, "Server"), (SettingCommandScope::Workspace, "Workspace")] {
        text.push_str(&format!("\n## {title}\n\n| key, flag, variable | meaning | default |\n| --- | --- | --- |\n"));
        for setting in settings.iter().filter(|setting| setting.scope == scope) {
            let ConfigSettingDefinition { name, flag, variable, .. } = setting;
            let list = match setting.form {
                SettingValueArity::List if !setting.summary.contains("(repeatable") => " (repeatable)",
                SettingValueArity::List | SettingValueArity::Single | SettingValueArity::Switch => "",
            };
            let choices = if setting.choices.is_empty() {
                String::new()
            } else {
                format!(": {}", quote_values(&setting.choices))
            };
            let summary = setting.summary.replace('|', "\\|");
            let default = quote_values(&setting.default_values);
            text.push_str(&format!("| `{name}`, `--{flag}`, `{variable}` | {summary}{choices}{list} | {default} |\n"));
        }
    }
    text
}

fn quote_values(values: &[String]) -> String {
    values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use stead_protocols::definition::DialectDefinition;

    use super::*;
    use crate::cli;

    #[test]
    fn every_serve_flag_has_a_key_and_a_variable() {
        let mut command = cli::build_command_line(&DialectDefinition::native().unwrap());
        let settings = all_settings(&command);
        command.build();
        let serve = command.find_subcommand(SERVE_COMMAND).unwrap();
        let flags: Vec<&str> = serve.get_arguments().filter_map(|arg| arg.get_long()).collect();
        for flag in flags.iter().filter(|flag| !["help", "version", CONFIG_FLAG].contains(flag)) {
            let setting = settings.iter().find(|setting| setting.flag == *flag).expect(flag);
            assert_eq!(setting.name, flag.replace('-', "_"));
            assert_eq!(setting.variable, format!("STEAD_{}", flag.replace('-', "_").to_uppercase()));
            assert!(!setting.summary.is_empty(), "{flag} is not explained");
        }
        assert!(settings.iter().any(|setting| setting.name == "workspace" && setting.is_path));
        assert!(
            settings.iter().any(|setting| setting.name == "behind_proxy" && setting.form == SettingValueArity::Switch)
        );
        assert!(settings.iter().any(|setting| setting.name == "host" && setting.form == SettingValueArity::List));
    }

    #[test]
    fn nearest_name_is_found_only_when_close() {
        let known = ["listen", "tls_cert", "tls_key", "behind_proxy"];
        let near = |written| nearest_name(written, known.into_iter());
        assert_eq!(near("listn"), Some("listen"));
        assert_eq!(near("tls-cert"), Some("tls_cert"));
        assert_eq!(near("behindproxy"), Some("behind_proxy"));
        assert_eq!(near("colour"), None);
    }
}
