//! A workspace as an archive, and an archive as a workspace. What goes out is a copy at one position of the journal; what
//! comes in is written file by file through the engine, as if a person had written it, into a workspace that nobody can open
//! before all of it is there.

use std::io::{self, Read, Write};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use disk::{Directory, FileType, OpenFile};
use engine::{Asking, Call, Caller, Engine, Failure, Kind, Privacy};
use path::{Name, RelPath};
use serde_json::{Map, json};

use super::{
    Description, Estate, FILES, WorkspaceAsk, WorkspaceName,
    fork::Copied,
    make::{Begun, Filled},
    tar::{Entry, Reader, Writer},
};
use crate::{failure, open::LocalWorkspace, options::Durability};

/// Entries of an archive that is taken in.
const ENTRIES_MAX: u64 = 200_000;
/// Bytes of all its files together.
const BYTES_MAX: u64 = 8 << 30;
/// Bytes of one of its files: what one write takes.
const FILE_BYTES_MAX: u64 = engine::limits::WRITE_BYTES_MAX;

impl Estate {
    /// Writes a workspace as an archive. What it holds is told to `begin` before the first byte; links, and what else no
    /// archive carries, are left out and counted.
    pub fn export(
        &self,
        by: &Caller,
        name: &WorkspaceName,
        begin: &mut dyn FnMut(Copied),
        out: &mut dyn Write,
    ) -> Result<Copied, Failure> {
        let id = self.ready(name.as_str())?.id;
        let source = self.enter_local(&id)?;
        let begun = self.begin_unnamed(by)?;
        let copied = self.lay_out(&begun.directory, None).and_then(|()| self.take(&id, &source, &begun));
        drop(source);
        let sent = copied.and_then(|mut taken| {
            taken.copied.left_out += taken.copied.links;
            let arguments = json!({ "workspace": name.as_str(), "origin": taken.origin });
            self.record(by, "workspace_export", &arguments, |_| Ok(Ok(())))?;
            begin(taken.copied);
            send(&begun, out).map(|()| taken.copied)
        });
        // What is left of the copy goes when the estate is tidied.
        self.clear(&begun.row.id).unwrap_or_default();
        sent
    }

    /// Makes a workspace from an archive: all of it or nothing.
    pub fn import(
        &self,
        by: &Caller,
        name: &WorkspaceName,
        ask: &WorkspaceAsk,
        from: &mut dyn Read,
    ) -> Result<Description, Failure> {
        self.make(by, "workspace_import", name, ask, &mut |begun| {
            let mut options = self.options_of(&begun.row.id);
            // Nobody is told that it is there before everything is on the device.
            options.durability = Durability::Fast;
            let workspace = LocalWorkspace::open(options)?;
            let engine = Engine::new(workspace.clone()).asking(Asking::Deny);
            let filled = fill(&engine, by, from);
            drop(engine);
            workspace.close();
            let origin = filled?;
            Ok(Filled {
                origin: Some(json!({ "archive": { "files": origin.files, "bytes": origin.bytes } })),
            })
        })
    }
}

/// Sends a copy.
fn send(begun: &Begun, out: &mut dyn Write) -> Result<(), Failure> {
    let own = |error: disk::DiskError| failure::own(&error);
    let files = begun.directory.open_directory(&Name::new(FILES.as_bytes())?).map_err(own)?;
    let mut writer = Writer::new(out);
    send_tree(&mut writer, &files, &RelPath::root())?;
    writer.finish().map_err(|error| gone(&error))
}

fn send_tree(writer: &mut Writer<'_>, from: &Directory, at: &RelPath) -> Result<(), Failure> {
    let own = |error: disk::DiskError| failure::own(&error);
    let mut entries = from.list().map_err(own)?;
    entries.sort_unstable_by(|one, two| one.name.cmp(&two.name));
    for listed in entries {
        let path = at.join(&listed.name)?;
        match listed.file_type {
            FileType::File => {
                let file = from.open_file(&listed.name).map_err(own)?;
                let stat = file.stat();
                let mut content = Content { file: &file, offset: 0 };
                writer
                    .file(path.as_bytes(), stat.mode, seconds(stat.modified_ns), stat.size, &mut content)
                    .map_err(|error| gone(&error))?;
            }
            FileType::Directory => {
                let below = from.open_directory(&listed.name).map_err(own)?;
                let stat = below.stat_self().map_err(own)?;
                writer
                    .directory(path.as_bytes(), stat.mode, seconds(stat.modified_ns))
                    .map_err(|error| gone(&error))?;
                send_tree(writer, &below, &path)?;
            }
            // Counted when it was copied.
            FileType::Link
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharDevice
            | FileType::BlockDevice
            | FileType::Unknown => {}
        }
    }
    Ok(())
}

fn seconds(nanoseconds: i128) -> u64 {
    u64::try_from(nanoseconds / 1_000_000_000).unwrap_or_default()
}

fn gone(error: &io::Error) -> Failure {
    Failure::new(Kind::Io, format!("the archive could not be written: {}", error.kind()))
}

/// A file as a stream.
struct Content<'a> {
    file: &'a OpenFile,
    offset: u64,
}

impl Read for Content<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let failed = |error: disk::DiskError| io::Error::other(error.to_string());
        let count = self.file.read_at(self.offset, buffer).map_err(failed)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// Takes an archive in.
fn fill(engine: &Engine, by: &Caller, from: &mut dyn Read) -> Result<Copied, Failure> {
    let mut reader = Reader::new(from);
    let mut taken = Copied::default();
    while let Some(entry) = reader.next()? {
        if taken.files + taken.directories >= ENTRIES_MAX {
            return Err(reader.bad(&format!("there are more than {ENTRIES_MAX}")));
        }
        match entry {
            // Directories come with the files in them, as in every call.
            Entry::Directory(_) => taken.directories += 1,
            Entry::File { path, runnable, size } => {
                taken.files += 1;
                taken.bytes = taken.bytes.saturating_add(size);
                if size > FILE_BYTES_MAX || taken.bytes > BYTES_MAX {
                    let limit =
                        format!("a file has more than {FILE_BYTES_MAX} bytes, or all more than {BYTES_MAX}");
                    let mut failure = reader.bad(&limit);
                    failure.kind = Kind::TooLarge;
                    return Err(failure);
                }
                let mut bytes = vec![0; usize::try_from(size).unwrap_or_default()];
                let mut at = 0;
                while at < bytes.len() {
                    at += reader.content(&mut bytes[at..])?;
                }
                let privacy = if runnable { Privacy::Runnable } else { Privacy::AsUsual };
                put(engine, by, &path, &bytes, privacy).map_err(|mut failure| {
                    failure.detail = format!("{}: {}", reader.bad("it was refused").detail, failure.detail);
                    failure
                })?;
            }
        }
    }
    Ok(taken)
}

/// Writes one file that is not there yet.
fn put(engine: &Engine, by: &Caller, path: &RelPath, bytes: &[u8], privacy: Privacy) -> Result<(), Failure> {
    let arguments: Map<_, _> = [
        ("path", path.to_wire().into_owned()),
        ("content", STANDARD.encode(bytes)),
        ("encoding", "base64".to_owned()),
        ("base", String::new()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.into()))
    .collect();
    let mut call = Call::new(by, "write", arguments);
    call.terms.privacy = privacy;
    engine.call(&call).map(drop)
}
