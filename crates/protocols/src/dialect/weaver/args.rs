//! Parses a tool call from its arguments. A missing or wrongly typed argument is rejected with the sentence of the
//! original code. Unknown arguments are ignored, as in the original code.

use serde_json::{Map, Value, json};

use super::{
    WeaverGeneration, clean_path,
    newest_generation::{WeaverPageUnit, WeaverPagingSettings, WeaverReadWindow},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WeaverTool {
    ReadFile,
    WriteFile,
    ListDir,
    EditFile,
    AppendFile,
}

impl WeaverTool {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "read_file" => Some(WeaverTool::ReadFile),
            "write_file" => Some(WeaverTool::WriteFile),
            "list_dir" => Some(WeaverTool::ListDir),
            "edit_file" => Some(WeaverTool::EditFile),
            "append_file" => Some(WeaverTool::AppendFile),
            _ => None,
        }
    }

    pub(super) fn engine_operation(self) -> &'static str {
        match self {
            WeaverTool::ReadFile => "read",
            WeaverTool::WriteFile => "write",
            WeaverTool::ListDir => "list",
            WeaverTool::EditFile => "edit",
            WeaverTool::AppendFile => "append",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WeaverWriteExistingFileRule {
    Replace,
    Refuse,
}

#[derive(Debug)]
enum WeaverToolAction<'a> {
    Read(Option<WeaverReadWindow>),
    Write(&'a str, WeaverWriteExistingFileRule),
    List,
    Edit { old: &'a str, new: &'a str },
    Append(&'a str),
}

#[derive(Debug)]
pub(super) struct WeaverToolCall<'a> {
    path: &'a str,
    action: WeaverToolAction<'a>,
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

impl<'a> WeaverToolCall<'a> {
    /// Arguments are checked in the same order as in the original code, and only the first problem is reported.
    pub(super) fn validate(
        tool: &str,
        arguments: &'a Map<String, Value>,
        generation: WeaverGeneration,
        paging: WeaverPagingSettings,
    ) -> Result<Self, String> {
        let tool = WeaverTool::from_name(tool).ok_or_else(|| format!("tool \"{tool}\" not found"))?;
        let text =
            |name: &str| arguments.get(name).and_then(Value::as_str).ok_or_else(|| format!("{name} is required"));
        let path = match tool {
            WeaverTool::ListDir => text("path").unwrap_or("."),
            WeaverTool::ReadFile | WeaverTool::WriteFile | WeaverTool::EditFile | WeaverTool::AppendFile => {
                text("path")?
            }
        };
        let action = match tool {
            WeaverTool::ReadFile => WeaverToolAction::Read(match generation {
                WeaverGeneration::V0_1_2 => None,
                WeaverGeneration::Newest => Some(WeaverReadWindow::from_arguments(arguments, paging)?),
            }),
            WeaverTool::WriteFile => {
                let overwrite = arguments.get("overwrite") == Some(&Value::Bool(true));
                let rule = match generation {
                    WeaverGeneration::Newest if !overwrite => WeaverWriteExistingFileRule::Refuse,
                    WeaverGeneration::V0_1_2 | WeaverGeneration::Newest => WeaverWriteExistingFileRule::Replace,
                };
                WeaverToolAction::Write(text("content")?, rule)
            }
            WeaverTool::ListDir => WeaverToolAction::List,
            WeaverTool::EditFile => WeaverToolAction::Edit { old: text("old_text")?, new: text("new_text")? },
            WeaverTool::AppendFile => WeaverToolAction::Append(text("content")?),
        };
        Ok(Self { path, action })
    }

    pub(super) fn path(&self) -> &'a str {
        self.path
    }

    pub(super) fn tool(&self) -> WeaverTool {
        match self.action {
            WeaverToolAction::Read(_) => WeaverTool::ReadFile,
            WeaverToolAction::Write(..) => WeaverTool::WriteFile,
            WeaverToolAction::List => WeaverTool::ListDir,
            WeaverToolAction::Edit { .. } => WeaverTool::EditFile,
            WeaverToolAction::Append(_) => WeaverTool::AppendFile,
        }
    }

    /// A read of the whole file, or a call of another tool, has no window.
    pub(super) fn window(&self) -> Option<WeaverReadWindow> {
        match self.action {
            WeaverToolAction::Read(window) => window,
            WeaverToolAction::Write(..)
            | WeaverToolAction::List
            | WeaverToolAction::Edit { .. }
            | WeaverToolAction::Append(_) => None,
        }
    }

    pub(super) fn existing_file_rule(&self) -> WeaverWriteExistingFileRule {
        match self.action {
            WeaverToolAction::Write(_, rule) => rule,
            WeaverToolAction::Read(_)
            | WeaverToolAction::List
            | WeaverToolAction::Edit { .. }
            | WeaverToolAction::Append(_) => WeaverWriteExistingFileRule::Replace,
        }
    }

    pub(super) fn engine_arguments(&self) -> Value {
        let path = self.path;
        match self.action {
            WeaverToolAction::Read(window) => match window.and_then(WeaverReadWindow::byte_range) {
                Some(range) => json!({ "path": path, "bytes": range }),
                None => json!({ "path": path }),
            },
            WeaverToolAction::Write(content, WeaverWriteExistingFileRule::Replace) => {
                json!({ "path": path, "content": content, "encoding": "utf-8" })
            }
            // An empty base version means that the file must not exist.
            WeaverToolAction::Write(content, WeaverWriteExistingFileRule::Refuse) => {
                json!({ "path": path, "content": content, "encoding": "utf-8", "base": "" })
            }
            WeaverToolAction::List => json!({ "path": path, "all": true }),
            WeaverToolAction::Edit { old, new } => json!({ "path": path, "edits": [{ "old": old, "new": new }] }),
            WeaverToolAction::Append(content) => json!({ "path": path, "content": content }),
        }
    }
}

/// A display path is shown in error sentences and page headers; no access check uses a display path.
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
    use super::*;

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
