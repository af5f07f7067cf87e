//! A tool call, read from its arguments. What is missing or of another type is answered with the origin's sentence;
//! what is not known is passed over, as the origin does.

use serde_json::{Map, Value};

use super::{
    Generation,
    pages::{Paging, Unit, Window},
};

/// The tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    ReadFile,
    WriteFile,
    ListDir,
    EditFile,
    AppendFile,
}

impl Tool {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "read_file" => Some(Tool::ReadFile),
            "write_file" => Some(Tool::WriteFile),
            "list_dir" => Some(Tool::ListDir),
            "edit_file" => Some(Tool::EditFile),
            "append_file" => Some(Tool::AppendFile),
            _ => None,
        }
    }

    /// The engine's word for it.
    pub(super) fn operation(self) -> &'static str {
        match self {
            Tool::ReadFile => "read",
            Tool::WriteFile => "write",
            Tool::ListDir => "list",
            Tool::EditFile => "edit",
            Tool::AppendFile => "append",
        }
    }
}

/// What happens to a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is written over.
    Replaced,
    /// It stays, and the call is refused.
    Stays,
}

/// What a call asks for.
#[derive(Debug)]
enum What<'a> {
    Read(Option<Window>),
    Write(&'a str, Standing),
    List,
    Edit { old: &'a str, new: &'a str },
    Append(&'a str),
}

/// A call whose arguments fit.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    path: &'a str,
    what: What<'a>,
}

/// Whether an argument belongs to this generation.
pub(super) fn is_taken(argument: &str, generation: Generation, unit: Unit) -> bool {
    match (argument, generation) {
        ("overwrite", generation) => generation == Generation::Newest,
        ("offset" | "length", Generation::Newest) => unit == Unit::Bytes,
        ("start_line" | "max_lines", Generation::Newest) => unit == Unit::Lines,
        ("offset" | "length" | "start_line" | "max_lines", Generation::First) => false,
        (_, Generation::First | Generation::Newest) => true,
    }
}

impl<'a> Asked<'a> {
    /// Reads the arguments in the origin's order; the first thing that is wrong is the one that is told.
    pub(super) fn read(
        tool: &str,
        arguments: &'a Map<String, Value>,
        generation: Generation,
        paging: Paging,
    ) -> Result<Self, String> {
        let tool = Tool::named(tool).ok_or_else(|| format!("tool \"{tool}\" not found"))?;
        let text = |name: &str| {
            arguments.get(name).and_then(Value::as_str).ok_or_else(|| format!("{name} is required"))
        };
        let path = match tool {
            Tool::ListDir => text("path").unwrap_or("."),
            Tool::ReadFile | Tool::WriteFile | Tool::EditFile | Tool::AppendFile => text("path")?,
        };
        let what = match tool {
            Tool::ReadFile => What::Read(match generation {
                Generation::First => None,
                Generation::Newest => Some(Window::read(arguments, paging)?),
            }),
            Tool::WriteFile => {
                let asked = arguments.get("overwrite") == Some(&Value::Bool(true));
                let standing = match generation {
                    Generation::Newest if !asked => Standing::Stays,
                    Generation::First | Generation::Newest => Standing::Replaced,
                };
                What::Write(text("content")?, standing)
            }
            Tool::ListDir => What::List,
            Tool::EditFile => What::Edit { old: text("old_text")?, new: text("new_text")? },
            Tool::AppendFile => What::Append(text("content")?),
        };
        Ok(Self { path, what })
    }

    pub(super) fn path(&self) -> &'a str {
        self.path
    }

    pub(super) fn tool(&self) -> Tool {
        match self.what {
            What::Read(_) => Tool::ReadFile,
            What::Write(..) => Tool::WriteFile,
            What::List => Tool::ListDir,
            What::Edit { .. } => Tool::EditFile,
            What::Append(_) => Tool::AppendFile,
        }
    }

    pub(super) fn operation(&self) -> &'static str {
        self.tool().operation()
    }

    /// Which part of a file is wanted.
    pub(super) fn window(&self) -> Option<Window> {
        match self.what {
            What::Read(window) => window,
            What::Write(..) | What::List | What::Edit { .. } | What::Append(_) => None,
        }
    }

    /// What happens to a file that is there already.
    pub(super) fn standing(&self) -> Standing {
        match self.what {
            What::Write(_, standing) => standing,
            What::Read(_) | What::List | What::Edit { .. } | What::Append(_) => Standing::Replaced,
        }
    }

    /// The engine's arguments.
    pub(super) fn arguments(&self) -> Map<String, Value> {
        let mut arguments = Map::new();
        let mut with = |name: &str, value: Value| drop(arguments.insert(name.to_owned(), value));
        with("path", self.path.into());
        match self.what {
            What::Read(window) => {
                if let Some(range) = window.and_then(Window::byte_range) {
                    with("bytes", range.into());
                }
            }
            What::Write(content, standing) => {
                with("content", content.into());
                with("encoding", "utf-8".into());
                if standing == Standing::Stays {
                    with("base", "".into());
                }
            }
            What::List => with("all", true.into()),
            What::Edit { old, new } => {
                with("edits", serde_json::json!([{ "old": old, "new": new }]));
            }
            What::Append(content) => with("content", content.into()),
        }
        arguments
    }
}
