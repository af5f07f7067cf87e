//! What an operator can set for `stead serve`, and for the workspace of every command. Owns the one table that flags, keys of
//! the configuration file and variables of the environment come from, so that whatever is a flag is all three. The table is
//! read from the command line's own declaration; nothing is listed twice.

use std::{any::TypeId, path::PathBuf};

use clap::{Arg, ArgAction, Command, builder::BoolishValueParser};

mod file;
mod layers;
mod near;
mod reference;

pub(crate) use layers::{Layered, Origin, layered};
pub(crate) use reference::reference;

/// What every variable begins with.
pub(crate) const PREFIX: &str = "STEAD_";
/// The flag that names the configuration file. It is the one flag that the file cannot hold.
pub(crate) const CONFIG: &str = "config";
/// The command whose flags are the settings.
pub(crate) const SERVE: &str = "serve";

/// How often, and how, a setting is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One value.
    One,
    /// A list.
    Many,
    /// Yes or no.
    Switch,
}

/// Whose setting it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Every command's that opens a workspace.
    Workspace,
    /// The server's.
    Serve,
}

/// One setting.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    /// The key in the file.
    pub(crate) name: String,
    /// The flag, without its dashes.
    pub(crate) flag: String,
    /// The variable.
    pub(crate) variable: String,
    pub(crate) form: Form,
    pub(crate) scope: Scope,
    /// What it is for.
    pub(crate) summary: String,
    /// What it is when nobody says anything.
    pub(crate) usual: Vec<String>,
    /// What it may be, where that is a short list.
    pub(crate) choices: Vec<String>,
    /// Whether it is the place of a file: in the file that is relative to the file's directory.
    pub(crate) is_path: bool,
    /// Settings that it cannot stand beside.
    excludes: Vec<String>,
}

impl Setting {
    fn of(arg: &Arg, serve: &Command) -> Option<Self> {
        let flag = arg.get_long()?.to_owned();
        let name = arg.get_id().to_string();
        let is_many = matches!(arg.get_action(), ArgAction::Append);
        let form = match (is_switch(arg), is_many) {
            (true, _) => Form::Switch,
            (false, true) => Form::Many,
            (false, false) => Form::One,
        };
        let texts = |values: &[clap::builder::OsStr]| {
            values.iter().map(|value| value.to_string_lossy().into_owned()).collect()
        };
        let excludes =
            serve.get_arg_conflicts_with(arg).iter().map(|other| other.get_id().to_string()).collect();
        Some(Self {
            variable: format!("{PREFIX}{}", name.to_ascii_uppercase()),
            form,
            scope: if arg.is_global_set() { Scope::Workspace } else { Scope::Serve },
            summary: arg.get_help().map(ToString::to_string).unwrap_or_default(),
            usual: texts(arg.get_default_values()),
            choices: match form {
                Form::Switch => Vec::new(),
                Form::One | Form::Many => {
                    arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect()
                }
            },
            is_path: arg.get_value_parser().type_id() == TypeId::of::<PathBuf>(),
            excludes,
            name,
            flag,
        })
    }

    /// Whether it cannot stand beside another.
    fn excludes(&self, other: &Setting) -> bool {
        self.excludes.contains(&other.name) || other.excludes.contains(&self.name)
    }
}

/// Every setting, in the order of the help: the server's first.
pub(crate) fn table(command: &Command) -> Vec<Setting> {
    let mut command = command.clone();
    command.build();
    let Some(serve) = command.find_subcommand(SERVE) else { return Vec::new() };
    let is_setting = |arg: &&Arg| !["help", "version", CONFIG].contains(&arg.get_id().as_str());
    let mut settings: Vec<Setting> =
        serve.get_arguments().filter(is_setting).filter_map(|arg| Setting::of(arg, serve)).collect();
    settings.sort_by_key(|setting| setting.scope == Scope::Workspace);
    settings
}

fn is_switch(arg: &Arg) -> bool {
    arg.get_value_parser().type_id() == TypeId::of::<bool>()
}

/// Lets the switches of a command be turned off as well: what a file turned on must not be out of a flag's reach.
pub(crate) fn with_both_ways(command: Command) -> Command {
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
    use faces::definition::Definition;

    use super::*;
    use crate::cli;

    #[test]
    fn every_flag_of_the_server_is_a_key_and_a_variable() {
        let mut command = cli::command(&Definition::stead().unwrap());
        let settings = table(&command);
        command.build();
        let serve = command.find_subcommand(SERVE).unwrap();
        let flags: Vec<&str> = serve.get_arguments().filter_map(|arg| arg.get_long()).collect();
        for flag in flags.iter().filter(|flag| !["help", "version", CONFIG].contains(flag)) {
            let setting = settings.iter().find(|setting| setting.flag == *flag).expect(flag);
            assert_eq!(setting.name, flag.replace('-', "_"));
            assert_eq!(setting.variable, format!("STEAD_{}", flag.replace('-', "_").to_uppercase()));
            assert!(!setting.summary.is_empty(), "{flag} is not explained");
        }
        assert!(settings.iter().any(|setting| setting.name == "workspace" && setting.is_path));
        assert!(
            settings.iter().any(|setting| setting.name == "behind_proxy" && setting.form == Form::Switch)
        );
        assert!(settings.iter().any(|setting| setting.name == "host" && setting.form == Form::Many));
    }
}
