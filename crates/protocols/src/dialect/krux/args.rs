//! Validates the inputs of a call against the definition of its capability, and rejects unknown, missing and wrongly
//! typed inputs. The absolute paths of the dialect are also converted to paths in the workspace here.

use serde_json::{Map, Value};
use stead_engine::Error;
use stead_path::{
    AbsolutePathRule, DotDotRule, EmptyPathRule, PathBackslashRule, PathSyntax, RelPath, TrailingSlashRule,
};

use super::errors::invalid_input;
use crate::{
    definition::{ToolArgumentDefinition, ToolArgumentType, ToolDefinition},
    limits::ECHOED_NAME_CHARS_MAX,
};

pub(super) struct ValidatedKruxCallArgs<'a>(&'a Map<String, Value>);

impl<'a> ValidatedKruxCallArgs<'a> {
    pub(super) fn validate(declared: &ToolDefinition, given: &'a Map<String, Value>) -> Result<Self, Error> {
        for (name, value) in given {
            let Some(input) = declared.inputs.iter().find(|input| input.name == *name) else {
                let shortened: String = name.chars().take(ECHOED_NAME_CHARS_MAX).collect();
                return Err(invalid_input(&shortened, "the capability has no such input"));
            };
            check_input(input, value)?;
        }
        match declared.inputs.iter().find(|input| input.required && !given.contains_key(&input.name)) {
            Some(input) => Err(invalid_input(&input.name, "is required")),
            None => Ok(Self(given)),
        }
    }

    pub(super) fn optional_text(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).and_then(Value::as_str)
    }

    pub(super) fn text_or_empty(&self, name: &str) -> &'a str {
        self.optional_text(name).unwrap_or_default()
    }

    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name)
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64)
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(true))
    }

    pub(super) fn is_explicitly_false(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(false))
    }
}

fn check_input(input: &ToolArgumentDefinition, value: &Value) -> Result<(), Error> {
    let (fits, expected) = match input.kind {
        ToolArgumentType::String => (value.is_string(), "must be a string".to_owned()),
        ToolArgumentType::StringOrList => {
            let texts = |items: &Vec<Value>| items.iter().all(Value::is_string);
            let fits = value.is_string() || value.as_array().is_some_and(texts);
            (fits, "must be a string or several".to_owned())
        }
        ToolArgumentType::Integer => (value.is_u64(), "must be a whole number that is not negative".to_owned()),
        ToolArgumentType::Boolean => (value.is_boolean(), "must be true or false".to_owned()),
        ToolArgumentType::Enum => (
            value.as_str().is_some_and(|word| input.values.iter().any(|known| known == word)),
            format!("must be one of {}", input.values.join(", ")),
        ),
        ToolArgumentType::Json => (true, String::new()),
    };
    if fits { Ok(()) } else { Err(invalid_input(&input.name, &expected)) }
}

/// Backslash escapes make it possible to write every file name in the `krux` dialect.
pub(super) fn path_syntax() -> PathSyntax {
    PathSyntax {
        default_directory: RelPath::root(),
        dot_dot: DotDotRule::Fold,
        absolute_paths: AbsolutePathRule::BelowRoot,
        backslash: PathBackslashRule::Escape,
        trailing_slash: TrailingSlashRule::Ignored,
        empty_path: EmptyPathRule::Refuse,
    }
}

pub(super) struct KruxPathMapper {
    pub(super) workspace_root: String,
}

impl KruxPathMapper {
    pub(super) fn new(workspace: &str) -> Self {
        Self { workspace_root: workspace.to_owned() }
    }

    pub(super) fn absolute_path(&self, path: &str) -> String {
        match (self.workspace_root.trim_end_matches('/'), path) {
            ("", ".") => "/".to_owned(),
            (root, ".") => root.to_owned(),
            (root, path) => format!("{root}/{path}"),
        }
    }

    /// An absolute path is converted without resolving symbolic links; a path outside the workspace gives `None`.
    pub(super) fn parse(&self, given: &str) -> Option<RelPath> {
        let roots = [self.workspace_root.clone()];
        stead_path::parse_path(given, &roots, &path_syntax()).ok().map(|parsed| parsed.path)
    }

    /// The parent of the workspace root, or of a path outside the workspace, is the workspace root.
    pub(super) fn parent_path(&self, given: &str) -> String {
        let parent = self.parse(given).and_then(|path| path.parent());
        parent.map_or_else(|| self.workspace_root.clone(), |parent| self.absolute_path(&parent.to_string()))
    }
}

/// The dialect's document does not say which directory relative paths start from, so relative paths are rejected.
pub(super) fn require_absolute<'a>(field: &str, given: &'a str) -> Result<&'a str, Error> {
    if given.starts_with('/') {
        return Ok(given);
    }
    Err(invalid_input(field, "must be an absolute path"))
}

pub(super) fn file_name(given: &str) -> &str {
    given.trim_end_matches('/').rsplit('/').next().unwrap_or(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_workspace_paths_to_absolute_paths() {
        let paths = KruxPathMapper::new("/srv/ws");
        assert_eq!(paths.absolute_path("."), "/srv/ws");
        assert_eq!(paths.absolute_path("a/b"), "/srv/ws/a/b");
        assert_eq!(KruxPathMapper::new("/").absolute_path("a"), "/a");
        assert_eq!(paths.parent_path("/srv/ws/a/b"), "/srv/ws/a");
        assert_eq!(paths.parent_path("/srv/ws/a"), "/srv/ws");
        assert_eq!(paths.parent_path("/etc/passwd"), "/srv/ws");
        assert_eq!(file_name("/srv/ws/a/b/"), "b");
    }
}
