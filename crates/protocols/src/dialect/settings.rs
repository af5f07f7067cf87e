//! Settings from `--dialect-option KEY=VALUE`, checked against the definitions.

use std::collections::BTreeMap;

use crate::definition::DialectDefinition;

/// Why a setting is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialectSettingError {
    /// The text has no `=`.
    #[error("'{0}' is not KEY=VALUE")]
    NotKeyValue(String),
    /// No chosen dialect has the option.
    #[error("no chosen dialect has an option '{key}'; available: {known}")]
    UnknownOption {
        /// The given key.
        key: String,
        /// The available options.
        known: String,
    },
    /// The option does not accept the value.
    #[error("invalid value '{value}' for the option '{key}'; expected {expected}")]
    InvalidValue {
        /// Name of the option.
        key: String,
        /// The given value.
        value: String,
        /// The accepted values.
        expected: String,
    },
}

/// Settings by name; the last one of a name counts.
#[derive(Debug, Clone, Default)]
pub struct DialectSettings(BTreeMap<String, String>);

impl DialectSettings {
    /// Parses `KEY=VALUE` settings.
    pub fn parse(settings: &[String]) -> Result<Self, DialectSettingError> {
        let pair = |text: &String| {
            let (key, value) = text.split_once('=').ok_or_else(|| DialectSettingError::NotKeyValue(text.clone()))?;
            Ok((key.trim().to_owned(), value.to_owned()))
        };
        settings.iter().map(pair).collect::<Result<_, _>>().map(Self)
    }

    /// The value of a setting.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Whether an option has this value, given its default.
    pub fn is_set_to(&self, key: &str, value: &str, default: &str) -> bool {
        self.get(key).unwrap_or(default) == value
    }

    /// Rejects unknown options and invalid values.
    pub(super) fn check_against_definitions<'a>(
        &self,
        definitions: impl Iterator<Item = &'a DialectDefinition> + Clone,
    ) -> Result<(), DialectSettingError> {
        let options = || definitions.clone().flat_map(|definition| &definition.options);
        for (key, value) in &self.0 {
            let Some(option) = options().find(|option| option.name == *key) else {
                let known: Vec<&str> = options().map(|option| option.name.as_str()).collect();
                return Err(DialectSettingError::UnknownOption { key: key.clone(), known: known.join(", ") });
            };
            if !option.values.is_empty() && !option.values.contains(value) {
                let expected = option.values.join(" or ");
                return Err(DialectSettingError::InvalidValue { key: key.clone(), value: value.clone(), expected });
            }
        }
        Ok(())
    }
}
