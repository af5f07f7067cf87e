//! Exports and imports a workspace as an archive. An archive contains the files as they were after one journal entry.
//! An import writes file by file through the engine into a workspace that nobody can open until it is complete.

use std::io::{self, Read, Write};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;
use stead_disk::{DirectoryHandle, FileType, OpenFile};
use stead_engine::{
    ApprovalMode, CallControl, CallMetadata, CallOptions, Caller, Engine, Error, ErrorKind, WrittenFileMode,
    ops::WriteArgs,
};
use stead_path::{FileName, RelPath};

use super::{
    CreateWorkspaceArgs, FILES_DIRECTORY, WorkspaceDescription, WorkspaceName, WorkspaceRegistry,
    create::{NewWorkspaceContentOrigin, WorkspaceBeingCreated},
    fork::WorkspaceCopyCounts,
    tar::{TarEntry, TarReader, TarWriter},
};
use crate::{
    errors,
    limits::{ARCHIVE_BYTES_MAX, ARCHIVE_ENTRIES_MAX, ARCHIVE_FILE_BYTES_MAX},
    open::LocalWorkspace,
    options::Durability,
};

impl WorkspaceRegistry {
    /// Exports a workspace as an archive. The export calls `begin` with the counts of archived files before it writes
    /// the first byte. Symlinks and special files are left out of the archive and counted as skipped.
    pub fn export_archive(
        &self,
        by: &Caller,
        name: &WorkspaceName,
        begin: &mut dyn FnMut(WorkspaceCopyCounts),
        out: &mut dyn Write,
    ) -> Result<WorkspaceCopyCounts, Error> {
        let id = self.find_ready_workspace(name.as_str())?.id;
        let source = self.open_local_workspace(&id)?;
        let pending = self.begin_unnamed_creation(by)?;
        let copied =
            self.create_layout(&pending.directory, None).and_then(|()| self.copy_workspace(&id, &source, &pending));
        drop(source);
        let sent = copied.and_then(|mut taken| {
            taken.counts.skipped += taken.counts.links;
            let arguments = json!({ "workspace": name.as_str(), "origin": taken.origin });
            self.record_change(by, "workspace.export", &arguments, |_| Ok(Ok(())))?;
            begin(taken.counts);
            write_archive(&pending, out).map(|()| taken.counts)
        });
        // If the copy cannot be deleted now, reconciliation deletes it later.
        self.delete_directory(&pending.row.id).unwrap_or_default();
        sent
    }

    /// Creates a workspace from an archive; if the import fails, no workspace is created.
    pub fn import_workspace(
        &self,
        by: &Caller,
        name: &WorkspaceName,
        request: &CreateWorkspaceArgs,
        from: &mut dyn Read,
    ) -> Result<WorkspaceDescription, Error> {
        self.create_with_content(by, "workspace.import", name, request, &mut |pending| {
            let mut options = self.workspace_options(&pending.row.id);
            // The files need not be synced one by one, because everything is synced before the workspace can be opened.
            options.durability = Durability::Fast;
            let workspace = LocalWorkspace::open(options)?;
            let engine = Engine::new(workspace.clone()).with_approval_mode(ApprovalMode::DenyAll);
            let imported = import_archive(&engine, by, from);
            drop(engine);
            workspace.close();
            let origin = imported?;
            Ok(NewWorkspaceContentOrigin {
                origin: Some(json!({ "archive": { "files": origin.files, "bytes": origin.bytes } })),
            })
        })
    }
}

fn write_archive(pending: &WorkspaceBeingCreated, out: &mut dyn Write) -> Result<(), Error> {
    let files_name = FileName::new(FILES_DIRECTORY.as_bytes())?;
    let files = pending.directory.open_directory(&files_name).map_err(errors::state_directory_error)?;
    let mut writer = TarWriter::new(out);
    write_tree(&mut writer, files.as_directory(), &RelPath::root())?;
    writer.finish().map_err(receiver_gone_error)
}

fn write_tree(writer: &mut TarWriter<'_>, from: &DirectoryHandle, at: &RelPath) -> Result<(), Error> {
    let mut entries = from.list().map_err(errors::at_path(at))?;
    entries.sort_unstable_by(|one, two| one.name.cmp(&two.name));
    for entry in entries {
        let path = at.join(&entry.name)?;
        let failed = errors::at_path(&path);
        match entry.file_type {
            FileType::RegularFile => {
                let file = from.open_file(&entry.name).map_err(failed)?;
                let stat = file.stat();
                let mut content = SequentialOpenFileReader { file: &file, offset: 0 };
                writer
                    .write_file(path.as_bytes(), stat.mode, whole_seconds(stat.modified_ns), stat.size, &mut content)
                    .map_err(receiver_gone_error)?;
            }
            FileType::Directory => {
                let below = from.open_directory(&entry.name).map_err(failed)?;
                let stat = below.stat_self().map_err(failed)?;
                writer
                    .write_directory(path.as_bytes(), stat.mode, whole_seconds(stat.modified_ns))
                    .map_err(receiver_gone_error)?;
                write_tree(writer, &below, &path)?;
            }
            // Symlinks and special files were counted when the workspace was copied.
            FileType::Symlink
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => {}
        }
    }
    Ok(())
}

fn whole_seconds(nanoseconds: i128) -> u64 {
    u64::try_from(nanoseconds / 1_000_000_000).unwrap_or_default()
}

fn receiver_gone_error(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write the archive: {}", error.kind()))
        .with_next_step("check the free space and the permissions of the destination, then export again")
}

struct SequentialOpenFileReader<'a> {
    file: &'a OpenFile,
    offset: u64,
}

impl Read for SequentialOpenFileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let failed = |error: stead_disk::DiskError| io::Error::other(error.to_string());
        let count = self.file.read_at(self.offset, buffer).map_err(failed)?;
        self.offset += count as u64;
        Ok(count)
    }
}

fn import_archive(engine: &Engine, by: &Caller, from: &mut dyn Read) -> Result<WorkspaceCopyCounts, Error> {
    let mut reader = TarReader::new(from);
    let mut taken = WorkspaceCopyCounts::default();
    while let Some(entry) = reader.next()? {
        if taken.files + taken.directories >= ARCHIVE_ENTRIES_MAX {
            return Err(reader.malformed(&format!("the archive has more than {ARCHIVE_ENTRIES_MAX} entries")));
        }
        match entry {
            // A directory is created together with the first file in it, as in every call.
            TarEntry::Directory(_) => taken.directories += 1,
            TarEntry::File { path, is_executable: runnable, size } => {
                taken.files += 1;
                taken.bytes = taken.bytes.saturating_add(size);
                if size > ARCHIVE_FILE_BYTES_MAX || taken.bytes > ARCHIVE_BYTES_MAX {
                    let limit = format!(
                        "the file is larger than {ARCHIVE_FILE_BYTES_MAX} bytes, or all files are larger than {ARCHIVE_BYTES_MAX}"
                    );
                    let mut error = reader.malformed(&limit);
                    error.kind = ErrorKind::TooLarge;
                    return Err(error);
                }
                let mut bytes = vec![0; usize::try_from(size).unwrap_or_default()];
                let mut at = 0;
                while at < bytes.len() {
                    at += reader.read_content(&mut bytes[at..])?;
                }
                let privacy = if runnable { WrittenFileMode::Executable } else { WrittenFileMode::Default };
                write_file(engine, by, &path, &bytes, privacy).map_err(|mut error| {
                    error.message = format!("{}: {}", reader.malformed("the file was refused").message, error.message);
                    error
                })?;
            }
        }
    }
    Ok(taken)
}

fn write_file(
    engine: &Engine,
    by: &Caller,
    path: &RelPath,
    bytes: &[u8],
    privacy: WrittenFileMode,
) -> Result<(), Error> {
    let operation = WriteArgs {
        path: path.to_wire().into_owned(),
        content: STANDARD.encode(bytes),
        base: Some(String::new()),
        encoding: Some("base64".to_owned()),
        ..WriteArgs::default()
    };
    let options = CallOptions { written_file_mode: privacy, ..CallOptions::default() };
    let control = CallControl::default();
    let call = CallMetadata { caller: by, idempotency_key: None, options: &options, control: &control };
    engine.run(operation, &call).map(drop)
}
