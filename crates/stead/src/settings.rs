//! Settings of `stead serve` and of the workspace. Every setting is a flag, a key of the configuration file and an environment
//! variable. The table is derived from the clap declaration, so no setting is listed twice.

use std::{any::TypeId, path::PathBuf};

use clap::{Arg, ArgAction, Command, builder::BoolishValueParser};

mod file;
mod layers;
mod reference;
mod suggestion;

pub(crate) use layers::{LayeredCommandLine, SettingOrigin, apply_layers};
pub(crate) use reference::settings_reference;

/// Prefix of every environment variable.
pub(crate) const VARIABLE_PREFIX: &str = "STEAD_";
/// The flag that names the configuration file; the file cannot contain it.
pub(crate) const CONFIG_FLAG: &str = "config";
/// The command whose flags are the settings.
pub(crate) const SERVE_COMMAND: &str = "serve";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingForm {
    Single,
    List,
    /// `true` or `false`.
    Switch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingScope {
    /// Applies to every command that opens a workspace.
    Workspace,
    /// Applies to `stead serve`.
    Serve,
}

#[derive(Debug, Clone)]
pub(crate) struct ConfigSetting {
    /// The key in the configuration file.
    pub(crate) name: String,
    /// The flag, without its dashes.
    pub(crate) flag: String,
    /// The environment variable.
    pub(crate) variable: String,
    pub(crate) form: SettingForm,
    pub(crate) scope: SettingScope,
    /// The help text.
    pub(crate) summary: String,
    pub(crate) default_values: Vec<String>,
    /// The allowed values, if they are a fixed list.
    pub(crate) choices: Vec<String>,
    /// Whether the value is a path, which the configuration file gives relative to its own directory.
    pub(crate) is_path: bool,
    /// Names of conflicting settings.
    excludes: Vec<String>,
}

impl ConfigSetting {
    fn from_arg(arg: &Arg, serve: &Command) -> Option<Self> {
        let flag = arg.get_long()?.to_owned();
        let name = arg.get_id().to_string();
        let is_many = matches!(arg.get_action(), ArgAction::Append);
        let form = match (is_switch(arg), is_many) {
            (true, _) => SettingForm::Switch,
            (false, true) => SettingForm::List,
            (false, false) => SettingForm::Single,
        };
        let texts =
            |values: &[clap::builder::OsStr]| values.iter().map(|value| value.to_string_lossy().into_owned()).collect();
        let excludes = serve.get_arg_conflicts_with(arg).iter().map(|other| other.get_id().to_string()).collect();
        Some(Self {
            variable: format!("{VARIABLE_PREFIX}{}", name.to_ascii_uppercase()),
            form,
            scope: if arg.is_global_set() { SettingScope::Workspace } else { SettingScope::Serve },
            summary: arg.get_help().map(ToString::to_string).unwrap_or_default(),
            default_values: texts(arg.get_default_values()),
            choices: match form {
                SettingForm::Switch => Vec::new(),
                SettingForm::Single | SettingForm::List => {
                    arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect()
                }
            },
            is_path: arg.get_value_parser().type_id() == TypeId::of::<PathBuf>(),
            excludes,
            name,
            flag,
        })
    }

    fn conflicts_with(&self, other: &ConfigSetting) -> bool {
        self.excludes.contains(&other.name) || other.excludes.contains(&self.name)
    }
}

/// All settings, in the order of the help, server settings first.
pub(crate) fn all_settings(command: &Command) -> Vec<ConfigSetting> {
    let mut command = command.clone();
    command.build();
    let Some(serve) = command.find_subcommand(SERVE_COMMAND) else { return Vec::new() };
    let is_setting = |arg: &&Arg| !["help", "version", CONFIG_FLAG].contains(&arg.get_id().as_str());
    let mut settings: Vec<ConfigSetting> =
        serve.get_arguments().filter(is_setting).filter_map(|arg| ConfigSetting::from_arg(arg, serve)).collect();
    settings.sort_by_key(|setting| setting.scope == SettingScope::Workspace);
    settings
}

fn is_switch(arg: &Arg) -> bool {
    arg.get_value_parser().type_id() == TypeId::of::<bool>()
}

/// Lets the switches of a command take `=false`, so that a flag can override a switch that the file turned on.
pub(crate) fn with_negatable_switches(command: Command) -> Command {
    command.mut_args(|arg| {
        if !matches!(arg.get_action(), ArgAction::SetTrue) {
            return arg;
        }
        arg.action(ArgAction::Set)
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
        assert!(settings.iter().any(|setting| setting.name == "behind_proxy" && setting.form == SettingForm::Switch));
        assert!(settings.iter().any(|setting| setting.name == "host" && setting.form == SettingForm::List));
    }
}
