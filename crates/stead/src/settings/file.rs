//! Parses the configuration file, a TOML table with the settings as keys. An unknown key is an error, because a
//! silently ignored setting is worse than a server that does not start.

use std::{borrow::Cow, ops::Range, path::Path};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{ConfigSettingDefinition, SettingValueArity, nearest_name};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParsedConfigFileSetting {
    pub(super) setting_index: usize,
    pub(super) values: Vec<String>,
    pub(super) line: usize,
}

/// An error in the configuration file, with its line number counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {reason}")]
pub(super) struct ConfigFileError {
    pub(super) line: usize,
    pub(super) reason: String,
}

pub(super) fn parse_config(
    text: &str,
    directory: &Path,
    settings: &[ConfigSettingDefinition],
) -> Result<Vec<ParsedConfigFileSetting>, ConfigFileError> {
    let wrong = |span: &Range<usize>, reason: String| ConfigFileError { line: line_of_span(text, span), reason };
    let table = DeTable::parse(text)
        .map_err(|error| wrong(&error.span().unwrap_or_default(), error.message().trim().replace('\n', " ")))?;
    let mut given = Vec::new();
    for (key, value) in table.get_ref() {
        let name: &Cow<'_, str> = key.get_ref();
        let Some(at) = settings.iter().position(|setting| setting.name == *name) else {
            return Err(wrong(&key.span(), unknown_key_reason(name, settings)));
        };
        let values = values_of(&settings[at], value, directory).map_err(|reason| wrong(&value.span(), reason))?;
        given.push(ParsedConfigFileSetting { setting_index: at, values, line: line_of_span(text, &key.span()) });
    }
    Ok(given)
}

fn unknown_key_reason(name: &str, settings: &[ConfigSettingDefinition]) -> String {
    match nearest_name(name, settings.iter().map(|setting| setting.name.as_str())) {
        Some(near) => format!("unknown setting {name}; did you mean {near}?"),
        None => format!("unknown setting {name}; to list all settings, run: stead config show"),
    }
}

fn values_of(
    setting: &ConfigSettingDefinition,
    value: &Spanned<DeValue<'_>>,
    directory: &Path,
) -> Result<Vec<String>, String> {
    let to_path = |text: String| match setting.is_path {
        true => directory.join(text).to_string_lossy().into_owned(),
        false => text,
    };
    let one = |value: &DeValue<'_>| match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    };
    let values = match (setting.form, value.get_ref()) {
        (SettingValueArity::Switch, DeValue::Boolean(word)) => Some(vec![word.to_string()]),
        (SettingValueArity::Switch, _) => None,
        (SettingValueArity::Single, value) => one(value).map(|text| vec![to_path(text)]),
        (SettingValueArity::List, DeValue::Array(values)) => {
            values.iter().map(|value| one(value.get_ref()).map(to_path)).collect()
        }
        (SettingValueArity::List, _) => None,
    };
    values.ok_or_else(|| {
        let wanted = match setting.form {
            SettingValueArity::Switch => "true or false",
            SettingValueArity::Single => "a string or a number",
            SettingValueArity::List => "a list of strings: [\"…\", \"…\"]",
        };
        format!("{} must be {wanted}", setting.name)
    })
}

fn line_of_span(text: &str, span: &Range<usize>) -> usize {
    let before = text.as_bytes().get(..span.start).unwrap_or_default();
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use stead_protocols::definition::DialectDefinition;

    use super::*;
    use crate::{cli, settings};

    fn parse_settings(text: &str) -> Result<Vec<(String, Vec<String>, usize)>, String> {
        let settings = settings::all_settings(&cli::build_command_line(&DialectDefinition::native().unwrap()));
        let given = parse_config(text, Path::new("/etc/stead"), &settings).map_err(|error| error.to_string())?;
        let to_row =
            |given: ParsedConfigFileSetting| (settings[given.setting_index].name.clone(), given.values, given.line);
        let mut given: Vec<_> = given.into_iter().map(to_row).collect();
        given.sort_by_key(|(.., line)| *line);
        Ok(given)
    }

    #[test]
    fn values_are_parsed_with_line_numbers() {
        let text =
            "# mine\nlisten = \"[::1]:1\"\n\nhost = [\"a\", \"b\"]\nbehind_proxy = true\ntls_key = \"key.pem\"\n";
        let one = |name: &str, values: &[&str], line| {
            (name.to_owned(), values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>(), line)
        };
        let expected = vec![
            one("listen", &["[::1]:1"], 2),
            one("host", &["a", "b"], 4),
            one("behind_proxy", &["true"], 5),
            one("tls_key", &["/etc/stead/key.pem"], 6),
        ];
        assert_eq!(parse_settings(text), Ok(expected));
    }

    #[test]
    fn invalid_setting_is_rejected_with_its_line() {
        for (text, expected) in [
            ("\nlisten = \"[::1]:1\"\nlistn = \"x\"", "3: unknown setting listn; did you mean listen?"),
            ("colour = 1", "1: unknown setting colour; to list all settings, run: stead config show"),
            ("[serve]\nlisten = 1", "1: unknown setting serve"),
            ("behind_proxy = \"yes\"", "1: behind_proxy must be true or false"),
            ("host = \"a\"", "1: host must be a list of strings"),
            ("listen = [\"a\"]", "1: listen must be a string"),
            ("config = \"x\"", "1: unknown setting config"),
            ("\n\nlisten = ", "3: "),
        ] {
            let refused = parse_settings(text).unwrap_err();
            assert!(refused.starts_with(expected), "{text}: {refused}");
        }
    }
}
