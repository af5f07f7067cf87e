//! The inputs of the weaver tools, and the original code's sentences for invalid arguments. A reply contains only the
//! first sentence.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    super::arguments::{ArgumentIssue, ArgumentProblem, tool_inputs},
    WeaverDialect, WeaverGeneration, clean_path,
    newest_generation::{WeaverPageUnit, WeaverReadWindow},
};
use crate::definition::{ToolArgumentType, ToolDefinition};

tool_inputs! {
    WeaverToolInput with "snake_case" fields:
    "read_file" => ReadFile(WeaverReadFileInput {
        path: String, offset: Option<u64>, length: Option<u64>, start_line: Option<u64>, max_lines: Option<u64>,
    }),
    "write_file" => WriteFile(WeaverWriteFileInput { path: String, content: String, overwrite: Option<bool> }),
    "list_dir" => ListDir(WeaverListDirInput { path: String }),
    "edit_file" => EditFile(WeaverEditFileInput { path: String, old_text: String, new_text: String }),
    "append_file" => AppendFile(WeaverAppendFileInput { path: String, content: String }),
}

pub(super) struct WeaverToolCall {
    pub(super) input: WeaverToolInput,
    pub(super) dialect: Arc<WeaverDialect>,
}

pub(super) fn accepts_argument(argument: &str, generation: WeaverGeneration, unit: WeaverPageUnit) -> bool {
    match (argument, generation) {
        ("overwrite", generation) => generation == WeaverGeneration::Newest,
        ("offset" | "length", WeaverGeneration::Newest) => unit == WeaverPageUnit::Bytes,
        ("start_line" | "max_lines", WeaverGeneration::Newest) => unit == WeaverPageUnit::Lines,
        ("offset" | "length" | "start_line" | "max_lines", WeaverGeneration::V0_1_2) => false,
        (_, WeaverGeneration::V0_1_2 | WeaverGeneration::Newest) => true,
    }
}

impl WeaverToolCall {
    pub(super) fn path(&self) -> &str {
        match &self.input {
            WeaverToolInput::ReadFile(input) => &input.path,
            WeaverToolInput::WriteFile(input) => &input.path,
            WeaverToolInput::ListDir(input) => &input.path,
            WeaverToolInput::EditFile(input) => &input.path,
            WeaverToolInput::AppendFile(input) => &input.path,
        }
    }

    pub(super) fn window(&self) -> Option<WeaverReadWindow> {
        match (&self.input, self.dialect.generation) {
            (WeaverToolInput::ReadFile(input), WeaverGeneration::Newest) => {
                Some(WeaverReadWindow::from_input(input, self.dialect.paging))
            }
            (_, WeaverGeneration::V0_1_2 | WeaverGeneration::Newest) => None,
        }
    }

    pub(super) fn keeps_existing_file(&self) -> bool {
        let WeaverToolInput::WriteFile(input) = &self.input else { return false };
        self.dialect.generation == WeaverGeneration::Newest && input.overwrite != Some(true)
    }
}

/// In line mode, a reply reports an argument for byte ranges before an invalid `max_lines`, but after every other
/// issue.
pub(super) fn first_issue_sentence(
    tool: &ToolDefinition,
    issues: &[ArgumentIssue<'_>],
    arguments: &Map<String, Value>,
) -> Option<String> {
    let in_lines = tool.inputs.iter().any(|input| input.name == "start_line");
    let byte_arguments = [("offset", "start_line"), ("length", "max_lines"), ("limit", "max_lines")];
    let unsupported = byte_arguments.into_iter().find(|(name, _)| in_lines && arguments.contains_key(*name));
    let unsupported = unsupported.map(|(name, other)| format!("{name} is not supported in line mode; use {other}"));
    let first = issues.iter().find_map(|issue| Some((issue.argument_name(), issue_sentence(issue)?)));
    match first {
        Some((name, sentence)) if name != "max_lines" => Some(sentence),
        Some((_, sentence)) => unsupported.or(Some(sentence)),
        None => unsupported,
    }
}

/// The original code ignores optional strings and booleans of the wrong type, and a `max_lines` that is null.
fn issue_sentence(issue: &ArgumentIssue<'_>) -> Option<String> {
    let (argument, name) = (issue.argument?, issue.argument_name());
    if argument.kind != ToolArgumentType::Integer {
        return argument.required.then(|| format!("{name} is required"));
    }
    Some(match (issue.problem, issue.value?) {
        (ArgumentProblem::BelowMinimum(_), _) => match name {
            "offset" => "offset must be >= 0".to_owned(),
            "start_line" => "start_line must be >= 1".to_owned(),
            "max_lines" => "max_lines, if provided, must be > 0".to_owned(),
            name => format!("{name} must be > 0"),
        },
        (ArgumentProblem::Overflow, value) => format!("{name} value {value} overflows int64"),
        (_, Value::Number(number)) => {
            format!("{name} must be an integer, got float {}", number.as_f64().unwrap_or_default())
        }
        (_, text @ Value::String(_)) => {
            format!("invalid integer format for {name} parameter: strconv.ParseInt: parsing {text}: invalid syntax")
        }
        (_, Value::Null) if name == "max_lines" => return None,
        (_, Value::Null) => format!("unsupported type <nil> for {name} parameter"),
        (_, Value::Bool(_)) => format!("unsupported type bool for {name} parameter"),
        (_, Value::Array(_)) => format!("unsupported type []interface {{}} for {name} parameter"),
        (_, Value::Object(_)) => format!("unsupported type map[string]interface {{}} for {name} parameter"),
    })
}

/// A weaver reply shows the display path of a file in error sentences and page headers; no access check uses it.
#[derive(Debug, Clone, Copy)]
pub(super) struct WeaverDisplayPath<'a> {
    pub(super) workspace_root: &'a str,
    pub(super) as_given: &'a str,
}

impl WeaverDisplayPath<'_> {
    pub(super) fn absolute_path(&self) -> String {
        clean_path(self.workspace_root, self.as_given)
    }

    pub(super) fn relative_path(&self) -> String {
        let absolute = self.absolute_path();
        let relative = absolute.strip_prefix(self.workspace_root).map(|rest| rest.trim_start_matches('/'));
        match relative {
            Some("") => ".".to_owned(),
            Some(relative) => relative.to_owned(),
            None => absolute,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{
            super::{
                DialectOptionValuesByName, DialectWorkspaceRootPath, arguments::tests::assert_inputs_match_definition,
            },
            DEFINITION_JSON,
        },
        *,
    };

    #[test]
    fn inputs_match_definition() {
        assert_inputs_match_definition::<WeaverToolInput>(DEFINITION_JSON);
    }

    #[test]
    fn parses_read_windows_with_published_messages() {
        let read = |mut arguments: Value, mode: &str| {
            arguments["path"] = "a".into();
            let settings = ["generation=newest", mode, "read_bytes_max=100"].map(str::to_owned);
            let location = DialectWorkspaceRootPath { root: "/srv/ws".to_owned() };
            let dialect = WeaverDialect::new(&DialectOptionValuesByName::parse(&settings).unwrap(), &location).unwrap();
            let call = Arc::new(dialect).parse_call("read_file", arguments.as_object().unwrap());
            call.map(|call| call.window().unwrap())
        };
        for (arguments, expected) in [
            (json!({ "offset": -1 }), "offset must be >= 0"),
            (json!({ "length": 0 }), "length must be > 0"),
            (json!({ "offset": 1.5 }), "offset must be an integer, got float 1.5"),
            (json!({ "offset": true }), "unsupported type bool for offset parameter"),
        ] {
            assert_eq!(read(arguments, "read_mode=bytes"), Err(expected.to_owned()));
        }
        assert_eq!(
            read(json!({ "offset": "3", "length": 500 }), "read_mode=bytes"),
            Ok(WeaverReadWindow::Bytes { offset: 3, length: 100 })
        );
        assert_eq!(
            read(json!({ "start_line": 2.0, "max_lines": null }), "read_mode=lines"),
            Ok(WeaverReadWindow::Lines { start: 2, max_lines: None })
        );
        assert!(read(json!({ "limit": 1 }), "read_mode=lines").is_err());
    }

    #[test]
    fn paths_are_shown_absolute_and_relative() {
        for (path, absolute, relative) in [
            ("a", "/srv/ws/a", "a"),
            ("./x/../a/", "/srv/ws/a", "a"),
            ("", "/srv/ws", "."),
            ("../ws/a", "/srv/ws/a", "a"),
            ("../../../..", "/", "/"),
            ("/etc//hosts", "/etc/hosts", "/etc/hosts"),
        ] {
            let shown = WeaverDisplayPath { workspace_root: "/srv/ws", as_given: path };
            assert_eq!(
                (shown.absolute_path().as_str(), shown.relative_path().as_str()),
                (absolute, relative),
                "{path}"
            );
        }
    }
}
