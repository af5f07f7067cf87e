//! Combines the layers of settings: flag, environment variable, configuration file, default. Settings from environment
//! variables and the configuration file are added to the command line, so that one parser checks all settings. A
//! setting of a higher layer, such as a flag, overrides conflicting settings of lower layers.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use clap::{ArgMatches, Command, parser::ValueSource};

use super::{
    CONFIG_FLAG, ConfigSettingDefinition, SERVE_COMMAND, SettingCommandScope, SettingValueArity, VARIABLE_PREFIX,
    all_settings, file, nearest_name,
};
use crate::{
    cli, host_files,
    output::{self, CommandError},
};

const CONFIG_FILE: &str = "stead/config.toml";
const SYSTEM_CONFIG_DIRECTORY: &str = "/etc";
const LIST_SEPARATOR: char = ',';

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SettingOrigin {
    Flag,
    Variable(String),
    File(PathBuf, usize),
    Default,
}

impl std::fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SettingOrigin::Flag => write!(f, "flag"),
            SettingOrigin::Variable(name) => write!(f, "{name}"),
            SettingOrigin::File(path, line) => write!(f, "{}:{line}", path.display()),
            SettingOrigin::Default => write!(f, "default"),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct LayeredCommandLine {
    pub(crate) arguments: Vec<OsString>,
    origins: HashMap<String, SettingOrigin>,
    pub(crate) config_file: Option<PathBuf>,
}

impl LayeredCommandLine {
    pub(crate) fn origin_of(&self, matches: &ArgMatches, name: &str) -> SettingOrigin {
        let typed = || match value_source(matches, name) {
            Some(ValueSource::CommandLine) => SettingOrigin::Flag,
            Some(_) | None => SettingOrigin::Default,
        };
        self.origins.get(name).cloned().unwrap_or_else(typed)
    }

    /// Returns the origin of a setting that the parser rejected, or `None` if a flag set the setting.
    pub(crate) fn origin_of_error(&self, error: &clap::Error) -> Option<&SettingOrigin> {
        let context = error.get(clap::error::ContextKind::InvalidArg)?.to_string();
        let flag = context.trim_start_matches('-').split(['=', ' ', '[']).next()?;
        self.origins.get(&flag.replace('-', "_"))
    }
}

pub(crate) type EnvironmentVariables = Vec<(OsString, OsString)>;

pub(crate) fn apply_layers(
    command: &Command,
    line: Vec<OsString>,
    environment: &EnvironmentVariables,
) -> Result<LayeredCommandLine, CommandError> {
    if !has_other_layers(&line, environment) {
        return Ok(LayeredCommandLine { arguments: line, ..LayeredCommandLine::default() });
    }
    let Ok(typed) = command.clone().ignore_errors(true).try_get_matches_from(&line) else {
        // The parser later handles a line that asks for help or has a syntax error.
        return Ok(LayeredCommandLine { arguments: line, ..LayeredCommandLine::default() });
    };
    let takes = match typed.subcommand() {
        Some((SERVE_COMMAND, _)) => SettingCommandScope::Serve,
        Some((CONFIG_FLAG, below)) if below.subcommand().is_some() => SettingCommandScope::Serve,
        Some(_) | None => SettingCommandScope::Workspace,
    };
    let settings = all_settings(command);
    let mut adding = LayeredSettingsCollector::new(&settings, takes, &typed);
    adding.add_variables(environment)?;
    let file = find_config_file(&typed, environment, takes)?;
    if let Some((path, text)) = &file {
        adding.add_file(path, text)?;
    }
    Ok(LayeredCommandLine {
        arguments: adding.add_to_command_line(line),
        origins: adding.origins,
        config_file: file.map(|(path, _)| path),
    })
}

/// Returns whether environment variables or a configuration file can add settings to the command line.
fn has_other_layers(line: &[OsString], environment: &EnvironmentVariables) -> bool {
    let named = |word: &OsString| {
        word == SERVE_COMMAND || word == CONFIG_FLAG || word.as_encoded_bytes().starts_with(b"--config")
    };
    line.iter().any(named)
        || environment.iter().any(|(name, _)| name.as_encoded_bytes().starts_with(VARIABLE_PREFIX.as_bytes()))
}

struct LayeredSettingsCollector<'a> {
    settings: &'a [ConfigSettingDefinition],
    /// The server also accepts the settings of the workspace.
    accepted: SettingCommandScope,
    already_set: Vec<usize>,
    added_arguments: Vec<(SettingCommandScope, OsString)>,
    origins: HashMap<String, SettingOrigin>,
}

impl<'a> LayeredSettingsCollector<'a> {
    fn new(settings: &'a [ConfigSettingDefinition], accepted: SettingCommandScope, typed: &ArgMatches) -> Self {
        let is_typed =
            |setting: &ConfigSettingDefinition| value_source(typed, &setting.name) == Some(ValueSource::CommandLine);
        let already_set = (0..settings.len()).filter(|at| is_typed(&settings[*at])).collect();
        Self { settings, accepted, already_set, added_arguments: Vec::new(), origins: HashMap::new() }
    }

    /// Returns whether the command accepts a setting that conflicts with no setting of a higher layer.
    fn may_set(&self, at: usize) -> bool {
        let setting = &self.settings[at];
        let is_taken = self.accepted == SettingCommandScope::Serve || setting.scope == SettingCommandScope::Workspace;
        is_taken && !self.already_set.iter().any(|set| *set == at || self.settings[*set].conflicts_with(setting))
    }

    fn add_variables(&mut self, environment: &EnvironmentVariables) -> Result<(), CommandError> {
        let mut layer = Vec::new();
        for (name, value) in environment.iter().filter(|(_, value)| !value.is_empty()) {
            let at = self.settings.iter().position(|setting| name == setting.variable.as_str());
            let Some(at) = at else {
                self.warn_unknown_variable(name);
                continue;
            };
            if self.may_set(at) {
                let values = split_values(&self.settings[at], value)?;
                let origin = SettingOrigin::Variable(self.settings[at].variable.clone());
                layer.push((at, values, origin));
            }
        }
        self.add_layer(layer);
        Ok(())
    }

    fn warn_unknown_variable(&self, name: &OsStr) {
        let known = self.settings.iter().map(|setting| setting.variable.as_str());
        let Some(name) = name.to_str().filter(|name| name.starts_with(VARIABLE_PREFIX)) else { return };
        if self.accepted == SettingCommandScope::Serve
            && let Some(near) = nearest_name(name, known)
        {
            output::print_note(&format!("unknown setting {name}; did you mean {near}?"));
        }
    }

    fn add_file(&mut self, path: &Path, text: &str) -> Result<(), CommandError> {
        let directory = path.parent().unwrap_or(Path::new("/"));
        let given = file::parse_config(text, directory, self.settings)
            .map_err(|error| CommandError::Usage(format!("{}:{error}", path.display())))?;
        let open = given.into_iter().filter(|given| self.may_set(given.setting_index));
        let layer = open
            .map(|given| {
                let values = given.values.into_iter().map(OsString::from).collect();
                (given.setting_index, values, SettingOrigin::File(path.to_path_buf(), given.line))
            })
            .collect();
        self.add_layer(layer);
        Ok(())
    }

    fn add_layer(&mut self, layer: Vec<(usize, Vec<OsString>, SettingOrigin)>) {
        for (at, values, origin) in layer {
            let setting = &self.settings[at];
            for value in values {
                let mut word = OsString::from(format!("--{}=", setting.flag));
                word.push(value);
                self.added_arguments.push((setting.scope, word));
            }
            self.already_set.push(at);
            self.origins.insert(setting.name.clone(), origin);
        }
    }

    /// Adds workspace settings before the typed arguments, and server settings after the typed arguments.
    fn add_to_command_line(&self, line: Vec<OsString>) -> Vec<OsString> {
        let of = |scope| self.added_arguments.iter().filter(move |(of, _)| *of == scope).map(|(_, word)| word.clone());
        let mut words = line.into_iter();
        let program = words.next().unwrap_or_else(|| "stead".into());
        [program]
            .into_iter()
            .chain(of(SettingCommandScope::Workspace))
            .chain(words)
            .chain(of(SettingCommandScope::Serve))
            .collect()
    }
}

fn value_source(matches: &ArgMatches, name: &str) -> Option<ValueSource> {
    let deepest = cli::innermost_matches(matches);
    // `try_contains_id` fails if the command does not have the flag.
    deepest.try_contains_id(name).is_ok().then(|| deepest.value_source(name)).flatten()
}

fn split_values(setting: &ConfigSettingDefinition, value: &OsStr) -> Result<Vec<OsString>, CommandError> {
    match setting.form {
        SettingValueArity::Single | SettingValueArity::Switch => Ok(vec![value.to_owned()]),
        SettingValueArity::List => {
            let unreadable = || CommandError::Usage(format!("{} is not UTF-8", setting.variable));
            let text = value.to_str().ok_or_else(unreadable)?;
            Ok(text.split(LIST_SEPARATOR).map(|part| part.trim().into()).collect())
        }
    }
}

/// Finds and reads the configuration file. Only `stead serve` reads files in default locations, so that the server's
/// file never changes the workspace of other commands.
fn find_config_file(
    typed: &ArgMatches,
    environment: &EnvironmentVariables,
    takes: SettingCommandScope,
) -> Result<Option<(PathBuf, String)>, CommandError> {
    let variable = |wanted: &str| {
        let known = environment.iter().find(|(name, value)| name == wanted && !value.is_empty());
        known.map(|(_, value)| PathBuf::from(value))
    };
    let named = cli::innermost_matches(typed).try_get_one::<PathBuf>(CONFIG_FLAG).ok().flatten().cloned();
    if let Some(path) = named.or_else(|| variable(&format!("{VARIABLE_PREFIX}CONFIG"))) {
        let path = std::path::absolute(&path).map_err(|error| host_files::file_error("read", &path, &error))?;
        let text = host_files::read_text(&path)?;
        return Ok(Some((path, text)));
    }
    if takes == SettingCommandScope::Workspace {
        return Ok(None);
    }
    let own = variable("XDG_CONFIG_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| variable("HOME").map(|home| home.join(".config")));
    for directory in own.into_iter().chain([PathBuf::from(SYSTEM_CONFIG_DIRECTORY)]) {
        let path = directory.join(CONFIG_FILE);
        if host_files::exists(&path) {
            let text = host_files::read_text(&path)?;
            return Ok(Some((path, text)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use stead_protocols::definition::DialectDefinition;

    use super::*;

    fn environment_of(variables: &[(&str, &str)]) -> EnvironmentVariables {
        variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn layered_line(words: &str, variables: &[(&str, &str)]) -> String {
        let command = cli::build_command_line(&DialectDefinition::native().unwrap());
        let words = words.split(' ').map(OsString::from).collect();
        let layered = apply_layers(&command, words, &environment_of(variables)).unwrap();
        layered.arguments.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn variable_applies_only_without_a_flag() {
        let variables = [("STEAD_HOST", "a, b"), ("STEAD_STATE", "/s"), ("STEAD_PRINT_TOKEN", "false")];
        assert_eq!(
            layered_line("stead serve", &variables),
            "stead --state=/s serve --host=a --host=b --print-token=false"
        );
        assert_eq!(
            layered_line("stead serve --host c --state /t", &variables),
            "stead serve --host c --state /t --print-token=false"
        );
        assert_eq!(layered_line("stead read a.txt", &variables), "stead --state=/s read a.txt");
        assert_eq!(layered_line("stead serve", &[("STEAD_HOST", "")]), "stead serve");
    }

    #[test]
    fn higher_layer_removes_conflicting_settings() {
        let variables = [("STEAD_SOCKET", "/s")];
        assert_eq!(layered_line("stead serve --listen 127.0.0.1:1", &variables), "stead serve --listen 127.0.0.1:1");
        assert_eq!(layered_line("stead serve", &variables), "stead serve --socket=/s");
    }
}
