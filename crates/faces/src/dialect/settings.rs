//! What was set with `--dialect-option KEY=VALUE`, held against what the dialects declare.

use std::collections::BTreeMap;

use crate::definition::Definition;

/// Why a setting does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// It has no value.
    #[error("'{0}' is not KEY=VALUE")]
    Form(String),
    /// No chosen dialect has it.
    #[error("no chosen dialect has an option '{key}'; there are: {known}")]
    Unknown {
        /// What was given.
        key: String,
        /// What there is.
        known: String,
    },
    /// It cannot be that.
    #[error("the option '{key}' cannot be '{value}'; it is {expected}")]
    Value {
        /// Which option.
        key: String,
        /// What was given.
        value: String,
        /// What it may be.
        expected: String,
    },
}

/// Settings by name. The last one of a name counts.
#[derive(Debug, Clone, Default)]
pub struct Settings(BTreeMap<String, String>);

impl Settings {
    /// Reads `KEY=VALUE` settings.
    pub fn parse(written: &[String]) -> Result<Self, SettingError> {
        let pair = |text: &String| {
            let (key, value) = text.split_once('=').ok_or_else(|| SettingError::Form(text.clone()))?;
            Ok((key.trim().to_owned(), value.to_owned()))
        };
        written.iter().map(pair).collect::<Result<_, _>>().map(Self)
    }

    /// What was set.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Whether an option is set to this word, given the word it has when nothing is set.
    pub fn is(&self, key: &str, word: &str, default: &str) -> bool {
        self.get(key).unwrap_or(default) == word
    }

    /// Refuses what no dialect declares and what an option cannot be.
    pub(super) fn check<'a>(
        &self,
        definitions: impl Iterator<Item = &'a Definition> + Clone,
    ) -> Result<(), SettingError> {
        let options = || definitions.clone().flat_map(|definition| &definition.options);
        for (key, value) in &self.0 {
            let Some(option) = options().find(|option| option.name == *key) else {
                let known: Vec<&str> = options().map(|option| option.name.as_str()).collect();
                return Err(SettingError::Unknown { key: key.clone(), known: known.join(", ") });
            };
            if !option.values.is_empty() && !option.values.contains(value) {
                let expected = option.values.join(" or ");
                return Err(SettingError::Value { key: key.clone(), value: value.clone(), expected });
            }
        }
        Ok(())
    }
}
