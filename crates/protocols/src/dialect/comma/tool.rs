//! The tools of the dialect.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommaTool {
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

impl CommaTool {
    /// In documentation order.
    const ALL: [CommaTool; 11] = [
        CommaTool::ReadFile,
        CommaTool::ListDirectory,
        CommaTool::SearchFiles,
        CommaTool::Glob,
        CommaTool::CreateFile,
        CommaTool::WriteFile,
        CommaTool::EditFile,
        CommaTool::DeleteFile,
        CommaTool::RestoreFile,
        CommaTool::MoveFile,
        CommaTool::ApplyPatch,
    ];

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            CommaTool::ReadFile => "read_file",
            CommaTool::ListDirectory => "list_directory",
            CommaTool::SearchFiles => "search_files",
            CommaTool::Glob => "glob",
            CommaTool::CreateFile => "create_file",
            CommaTool::WriteFile => "write_file",
            CommaTool::EditFile => "edit_file",
            CommaTool::DeleteFile => "delete_file",
            CommaTool::RestoreFile => "restore_file",
            CommaTool::MoveFile => "move_file",
            CommaTool::ApplyPatch => "apply_patch",
        }
    }

    /// The arguments that are paths, in the order in which they are checked.
    pub(super) fn path_argument_names(self) -> &'static [&'static str] {
        match self {
            CommaTool::ReadFile
            | CommaTool::ListDirectory
            | CommaTool::CreateFile
            | CommaTool::WriteFile
            | CommaTool::EditFile
            | CommaTool::DeleteFile => &["path"],
            CommaTool::SearchFiles | CommaTool::Glob => &["root"],
            CommaTool::RestoreFile => &["targetPath"],
            CommaTool::MoveFile => &["fromPath", "toPath"],
            CommaTool::ApplyPatch => &[],
        }
    }

    /// The kind of access, as errors name it.
    pub(super) fn access_word(self) -> &'static str {
        match self {
            CommaTool::ReadFile | CommaTool::ListDirectory | CommaTool::SearchFiles | CommaTool::Glob => "fs.read",
            CommaTool::CreateFile
            | CommaTool::WriteFile
            | CommaTool::EditFile
            | CommaTool::DeleteFile
            | CommaTool::RestoreFile
            | CommaTool::MoveFile
            | CommaTool::ApplyPatch => "fs.write",
        }
    }
}
