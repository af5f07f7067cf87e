//! Where settings come from: a flag, else a variable, else the file, else what is usual. What comes from a variable or the
//! file is put on the command line as if it had been typed, so that one parser judges all of it; where it came from is kept
//! for whoever asks. A setting of a higher layer takes away those of lower ones that it cannot stand beside.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use clap::{ArgMatches, Command, parser::ValueSource};

use super::{CONFIG, Form, PREFIX, SERVE, Scope, Setting, file, near, table};
use crate::{
    cli, outside,
    show::{self, Problem},
};

/// The file in each of its usual places.
const FILE: &str = "stead/config.toml";
/// Where machines keep configuration.
const MACHINE: &str = "/etc";
/// What separates the values of a list in a variable.
const SEPARATOR: char = ',';

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The command line.
    Flag,
    /// This variable.
    Variable(String),
    /// This line of the file.
    File(PathBuf, usize),
    /// Nobody said anything.
    Usual,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Flag => write!(f, "flag"),
            Origin::Variable(name) => write!(f, "{name}"),
            Origin::File(path, line) => write!(f, "{}:{line}", path.display()),
            Origin::Usual => write!(f, "default"),
        }
    }
}

/// A command line with everything that other layers say.
#[derive(Debug, Default)]
pub(crate) struct Layered {
    /// As if it had been typed.
    pub(crate) line: Vec<OsString>,
    /// Where settings that were not typed came from, by name.
    origins: HashMap<String, Origin>,
    /// The file, if one was read.
    pub(crate) file: Option<PathBuf>,
}

impl Layered {
    /// Where a setting came from.
    pub(crate) fn origin(&self, matches: &ArgMatches, name: &str) -> Origin {
        let typed = || match value_source(matches, name) {
            Some(ValueSource::CommandLine) => Origin::Flag,
            Some(_) | None => Origin::Usual,
        };
        self.origins.get(name).cloned().unwrap_or_else(typed)
    }

    /// Where the setting came from that the parser does not take, if it was not typed.
    pub(crate) fn blamed(&self, error: &clap::Error) -> Option<&Origin> {
        let context = error.get(clap::error::ContextKind::InvalidArg)?.to_string();
        let flag = context.trim_start_matches('-').split(['=', ' ', '[']).next()?;
        self.origins.get(&flag.replace('-', "_"))
    }
}

/// The environment of a process, as far as it matters here.
pub(crate) type Environment = Vec<(OsString, OsString)>;

/// Which flags a command takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// All of them.
    Everything,
    /// Those that say which workspace.
    Workspace,
}

/// Adds what the environment and the file say.
pub(crate) fn layered(
    command: &Command,
    line: Vec<OsString>,
    environment: &Environment,
) -> Result<Layered, Problem> {
    if !concerns(&line, environment) {
        return Ok(Layered { line, ..Layered::default() });
    }
    let Ok(typed) = command.clone().ignore_errors(true).try_get_matches_from(&line) else {
        // Help and the like: the parser answers that itself.
        return Ok(Layered { line, ..Layered::default() });
    };
    let takes = match typed.subcommand() {
        Some((SERVE, _)) => Takes::Everything,
        Some((CONFIG, below)) if below.subcommand().is_some() => Takes::Everything,
        Some(_) | None => Takes::Workspace,
    };
    let settings = table(command);
    let mut adding = Adding::new(&settings, takes, &typed);
    adding.variables(environment)?;
    let file = find(&typed, environment, takes)?;
    if let Some((path, text)) = &file {
        adding.file(path, text)?;
    }
    Ok(Layered { line: adding.onto(line), origins: adding.origins, file: file.map(|(path, _)| path) })
}

/// Whether anything but the command line can have a say: most commands are parsed once.
fn concerns(line: &[OsString], environment: &Environment) -> bool {
    let named =
        |word: &OsString| word == SERVE || word == CONFIG || word.as_encoded_bytes().starts_with(b"--config");
    line.iter().any(named)
        || environment.iter().any(|(name, _)| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()))
}

/// Settings on their way to the command line.
struct Adding<'a> {
    settings: &'a [Setting],
    takes: Takes,
    /// Places in the table of what has been said so far.
    said: Vec<usize>,
    words: Vec<(Scope, OsString)>,
    origins: HashMap<String, Origin>,
}

impl<'a> Adding<'a> {
    fn new(settings: &'a [Setting], takes: Takes, typed: &ArgMatches) -> Self {
        let is_typed =
            |setting: &Setting| value_source(typed, &setting.name) == Some(ValueSource::CommandLine);
        let said = (0..settings.len()).filter(|at| is_typed(&settings[*at])).collect();
        Self { settings, takes, said, words: Vec::new(), origins: HashMap::new() }
    }

    /// Whether a setting is this command's, and not said or excluded by a higher layer.
    fn is_open(&self, at: usize) -> bool {
        let setting = &self.settings[at];
        let is_taken = self.takes == Takes::Everything || setting.scope == Scope::Workspace;
        is_taken && !self.said.iter().any(|said| *said == at || self.settings[*said].excludes(setting))
    }

    fn variables(&mut self, environment: &Environment) -> Result<(), Problem> {
        let mut said = Vec::new();
        for (name, value) in environment.iter().filter(|(_, value)| !value.is_empty()) {
            let at = self.settings.iter().position(|setting| name == setting.variable.as_str());
            let Some(at) = at else {
                self.odd_variable(name);
                continue;
            };
            if self.is_open(at) {
                let values = split(&self.settings[at], value)?;
                let origin = Origin::Variable(self.settings[at].variable.clone());
                said.push((at, values, origin));
            }
        }
        self.take(said);
        Ok(())
    }

    /// A variable that looks like one of ours and is none.
    fn odd_variable(&self, name: &OsStr) {
        let known = self.settings.iter().map(|setting| setting.variable.as_str());
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { return };
        if self.takes == Takes::Everything
            && let Some(near) = near::nearest(name, known)
        {
            show::remark(&format!("{name} is no setting; perhaps {near}?"));
        }
    }

    fn file(&mut self, path: &Path, text: &str) -> Result<(), Problem> {
        let directory = path.parent().unwrap_or(Path::new("/"));
        let given = file::read(text, directory, self.settings)
            .map_err(|error| Problem::Usage(format!("{}:{error}", path.display())))?;
        let open = given.into_iter().filter(|given| self.is_open(given.setting));
        let said = open
            .map(|given| {
                let values = given.values.into_iter().map(OsString::from).collect();
                (given.setting, values, Origin::File(path.to_path_buf(), given.line))
            })
            .collect();
        self.take(said);
        Ok(())
    }

    /// Takes one layer.
    fn take(&mut self, said: Vec<(usize, Vec<OsString>, Origin)>) {
        for (at, values, origin) in said {
            let setting = &self.settings[at];
            for value in values {
                let mut word = OsString::from(format!("--{}=", setting.flag));
                word.push(value);
                self.words.push((setting.scope, word));
            }
            self.said.push(at);
            self.origins.insert(setting.name.clone(), origin);
        }
    }

    /// What every command has goes first, the server's own last: there may be free text between.
    fn onto(&self, line: Vec<OsString>) -> Vec<OsString> {
        let of = |scope| self.words.iter().filter(move |(of, _)| *of == scope).map(|(_, word)| word.clone());
        let mut words = line.into_iter();
        let program = words.next().unwrap_or_else(|| "stead".into());
        [program].into_iter().chain(of(Scope::Workspace)).chain(words).chain(of(Scope::Serve)).collect()
    }
}

fn value_source(matches: &ArgMatches, name: &str) -> Option<ValueSource> {
    let deepest = cli::deepest(matches);
    // Not every command has every flag.
    deepest.try_contains_id(name).is_ok().then(|| deepest.value_source(name)).flatten()
}

fn split(setting: &Setting, value: &OsStr) -> Result<Vec<OsString>, Problem> {
    match setting.form {
        Form::One | Form::Switch => Ok(vec![value.to_owned()]),
        Form::Many => {
            let unreadable = || Problem::Usage(format!("{} is not text", setting.variable));
            let text = value.to_str().ok_or_else(unreadable)?;
            Ok(text.split(SEPARATOR).map(|part| part.trim().into()).collect())
        }
    }
}

/// The file that holds, with its text. One that is named must be there; the usual places count for the server alone, so
/// that its file never moves another command to another workspace.
fn find(
    typed: &ArgMatches,
    environment: &Environment,
    takes: Takes,
) -> Result<Option<(PathBuf, String)>, Problem> {
    let variable = |wanted: &str| {
        let known = environment.iter().find(|(name, value)| name == wanted && !value.is_empty());
        known.map(|(_, value)| PathBuf::from(value))
    };
    let named = cli::deepest(typed).try_get_one::<PathBuf>(CONFIG).ok().flatten().cloned();
    if let Some(path) = named.or_else(|| variable(&format!("{PREFIX}CONFIG"))) {
        let path = std::path::absolute(&path).map_err(|error| outside::problem(&path, &error))?;
        let text = outside::read(&path)?;
        return Ok(Some((path, text)));
    }
    if takes == Takes::Workspace {
        return Ok(None);
    }
    let own = variable("XDG_CONFIG_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| variable("HOME").map(|home| home.join(".config")));
    for place in own.into_iter().chain([PathBuf::from(MACHINE)]) {
        let path = place.join(FILE);
        if outside::is_there(&path) {
            let text = outside::read(&path)?;
            return Ok(Some((path, text)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use faces::definition::Definition;

    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn line(words: &str, variables: &[(&str, &str)]) -> String {
        let command = cli::command(&Definition::stead().unwrap());
        let words = words.split(' ').map(OsString::from).collect();
        let layered = layered(&command, words, &environment(variables)).unwrap();
        layered.line.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_variable_counts_where_no_flag_does() {
        let variables = [("STEAD_HOST", "a, b"), ("STEAD_STATE", "/s"), ("STEAD_PRINT_TOKEN", "false")];
        assert_eq!(
            line("stead serve", &variables),
            "stead --state=/s serve --host=a --host=b --print-token=false"
        );
        assert_eq!(
            line("stead serve --host c --state /t", &variables),
            "stead serve --host c --state /t --print-token=false"
        );
        // The server's own settings are not another command's.
        assert_eq!(line("stead read a.txt", &variables), "stead --state=/s read a.txt");
        assert_eq!(line("stead serve", &[("STEAD_HOST", "")]), "stead serve");
    }

    #[test]
    fn a_higher_layer_takes_away_what_cannot_stand_beside_it() {
        let variables = [("STEAD_SOCKET", "/s")];
        assert_eq!(line("stead serve --listen 127.0.0.1:1", &variables), "stead serve --listen 127.0.0.1:1");
        assert_eq!(line("stead serve", &variables), "stead serve --socket=/s");
    }
}
