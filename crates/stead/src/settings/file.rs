//! The configuration file: one TOML table whose keys are the settings. Whatever is not known, or not of the right kind, is an
//! error with its line: a setting that is silently not in force is worse than a server that does not start.

use std::{borrow::Cow, ops::Range, path::Path};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{Form, Setting, near};

/// One setting as the file gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Given {
    /// Its place in the table.
    pub(super) setting: usize,
    pub(super) values: Vec<String>,
    pub(super) line: usize,
}

/// What is wrong, and where, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {reason}")]
pub(super) struct FileError {
    pub(super) line: usize,
    pub(super) reason: String,
}

/// Reads the text of a file that lies in this directory.
pub(super) fn read(text: &str, directory: &Path, settings: &[Setting]) -> Result<Vec<Given>, FileError> {
    let wrong = |span: &Range<usize>, reason: String| FileError { line: line(text, span), reason };
    let table = DeTable::parse(text).map_err(|error| {
        wrong(&error.span().unwrap_or_default(), error.message().trim().replace('\n', " "))
    })?;
    let mut given = Vec::new();
    for (key, value) in table.get_ref() {
        let name: &Cow<'_, str> = key.get_ref();
        let Some(at) = settings.iter().position(|setting| setting.name == *name) else {
            return Err(wrong(&key.span(), unknown(name, settings)));
        };
        let values =
            values(&settings[at], value, directory).map_err(|reason| wrong(&value.span(), reason))?;
        given.push(Given { setting: at, values, line: line(text, &key.span()) });
    }
    Ok(given)
}

fn unknown(name: &str, settings: &[Setting]) -> String {
    match near::nearest(name, settings.iter().map(|setting| setting.name.as_str())) {
        Some(near) => format!("there is no setting {name}; perhaps {near}?"),
        None => format!("there is no setting {name}; `stead config show` lists them"),
    }
}

fn values(setting: &Setting, value: &Spanned<DeValue<'_>>, directory: &Path) -> Result<Vec<String>, String> {
    let placed = |text: String| match setting.is_path {
        true => directory.join(text).to_string_lossy().into_owned(),
        false => text,
    };
    let one = |value: &DeValue<'_>| match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => None,
    };
    let values = match (setting.form, value.get_ref()) {
        (Form::Switch, DeValue::Boolean(word)) => Some(vec![word.to_string()]),
        (Form::Switch, _) => None,
        (Form::One, value) => one(value).map(|text| vec![placed(text)]),
        (Form::Many, DeValue::Array(values)) => {
            values.iter().map(|value| one(value.get_ref()).map(placed)).collect()
        }
        (Form::Many, _) => None,
    };
    values.ok_or_else(|| {
        let wanted = match setting.form {
            Form::Switch => "true or false",
            Form::One => "one text in quotes, or a number",
            Form::Many => "a list of texts: [\"…\", \"…\"]",
        };
        format!("{} is {wanted}", setting.name)
    })
}

fn line(text: &str, span: &Range<usize>) -> usize {
    let before = text.as_bytes().get(..span.start).unwrap_or_default();
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use faces::definition::Definition;

    use super::*;
    use crate::{cli, settings};

    fn given(text: &str) -> Result<Vec<(String, Vec<String>, usize)>, String> {
        let settings = settings::table(&cli::command(&Definition::stead().unwrap()));
        let given = read(text, Path::new("/etc/stead"), &settings).map_err(|error| error.to_string())?;
        let told = |given: Given| (settings[given.setting].name.clone(), given.values, given.line);
        let mut given: Vec<_> = given.into_iter().map(told).collect();
        given.sort_by_key(|(.., line)| *line);
        Ok(given)
    }

    #[test]
    fn values_are_read_with_their_lines() {
        let text = "# mine\nlisten = \"[::1]:1\"\n\nhost = [\"a\", \"b\"]\nbehind_proxy = true\ntls_key = \"key.pem\"\n";
        let one = |name: &str, values: &[&str], line| {
            (name.to_owned(), values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>(), line)
        };
        let expected = vec![
            one("listen", &["[::1]:1"], 2),
            one("host", &["a", "b"], 4),
            one("behind_proxy", &["true"], 5),
            one("tls_key", &["/etc/stead/key.pem"], 6),
        ];
        assert_eq!(given(text), Ok(expected));
    }

    #[test]
    fn what_is_not_understood_is_refused_where_it_stands() {
        for (text, said) in [
            ("\nlisten = \"[::1]:1\"\nlistn = \"x\"", "3: there is no setting listn; perhaps listen?"),
            ("colour = 1", "1: there is no setting colour; `stead config show` lists them"),
            ("[serve]\nlisten = 1", "1: there is no setting serve"),
            ("behind_proxy = \"yes\"", "1: behind_proxy is true or false"),
            ("host = \"a\"", "1: host is a list of texts"),
            ("listen = [\"a\"]", "1: listen is one text"),
            ("config = \"x\"", "1: there is no setting config"),
            ("\n\nlisten = ", "3: "),
        ] {
            let refused = given(text).unwrap_err();
            assert!(refused.starts_with(said), "{text}: {refused}");
        }
    }
}
