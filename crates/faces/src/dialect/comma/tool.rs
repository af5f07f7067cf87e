//! The tools, and what each of them becomes.

/// The tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    ReadFile,
    ListDirectory,
    SearchFiles,
    Glob,
    CreateFile,
    WriteFile,
    EditFile,
    DeleteFile,
    RestoreFile,
    MoveFile,
    ApplyPatch,
}

impl Tool {
    /// All of them, in documentation order.
    const ALL: [Tool; 11] = [
        Tool::ReadFile,
        Tool::ListDirectory,
        Tool::SearchFiles,
        Tool::Glob,
        Tool::CreateFile,
        Tool::WriteFile,
        Tool::EditFile,
        Tool::DeleteFile,
        Tool::RestoreFile,
        Tool::MoveFile,
        Tool::ApplyPatch,
    ];

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Tool::ReadFile => "read_file",
            Tool::ListDirectory => "list_directory",
            Tool::SearchFiles => "search_files",
            Tool::Glob => "glob",
            Tool::CreateFile => "create_file",
            Tool::WriteFile => "write_file",
            Tool::EditFile => "edit_file",
            Tool::DeleteFile => "delete_file",
            Tool::RestoreFile => "restore_file",
            Tool::MoveFile => "move_file",
            Tool::ApplyPatch => "apply_patch",
        }
    }

    /// The arguments that spell places, in the order in which they are judged.
    pub(super) fn places(self) -> &'static [&'static str] {
        match self {
            Tool::ReadFile
            | Tool::ListDirectory
            | Tool::CreateFile
            | Tool::WriteFile
            | Tool::EditFile
            | Tool::DeleteFile => &["path"],
            Tool::SearchFiles | Tool::Glob => &["root"],
            Tool::RestoreFile => &["targetPath"],
            Tool::MoveFile => &["fromPath", "toPath"],
            Tool::ApplyPatch => &[],
        }
    }

    /// The word for what it does to a place, as refusals show it.
    pub(super) fn access(self) -> &'static str {
        match self {
            Tool::ReadFile | Tool::ListDirectory | Tool::SearchFiles | Tool::Glob => "fs.read",
            Tool::CreateFile
            | Tool::WriteFile
            | Tool::EditFile
            | Tool::DeleteFile
            | Tool::RestoreFile
            | Tool::MoveFile
            | Tool::ApplyPatch => "fs.write",
        }
    }
}
