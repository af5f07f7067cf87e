//! The unsafe control server joins the root and the requested path. The attack corpus proves something only if the
//! unsafe control server fails the cases that stead passes.
//!
//! The corpus contains links to paths of the real machine. For a path outside the temporary directories, the control
//! server only reports that it would have followed the path.

use std::{
    fs, io,
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::mpsc,
    time::Duration,
};

use percent_encoding::percent_decode_str;
use rustix::fs::{CWD, Mode, OFlags};
use serde_json::{Map, Value, json};
use unicode_normalization::UnicodeNormalization;

use super::{
    case::UnsafeControlServerKind,
    snapshot::file_kind_name,
    subject::{AttackSubject, AttackSubjectReply, AttackSubjectRequest, SubjectJournal, SubjectOptions},
};

/// The control server limits its reads, because a device may never end.
const READ_BYTES_MAX: u64 = 1 << 20;
/// The time after which a blocked operation of the control server counts as hung.
const HANG_TIMEOUT: Duration = Duration::from_millis(300);
const COLLECT_DEPTH_MAX: usize = 8;
const LINKS_MAX: usize = 64;
/// The I/O error kind that the control server reports for a path outside the temporary directories.
const BEYOND_FENCE: io::ErrorKind = io::ErrorKind::HostUnreachable;
pub(crate) const HUNG_KIND: &str = "hung";

/// An unsafe file server that the attack corpus must detect as unsafe.
pub struct NaiveServer {
    root: PathBuf,
    trash: PathBuf,
    control: UnsafeControlServerKind,
    trashed: Vec<PathBuf>,
}

impl NaiveServer {
    /// Opens an unsafe control server on the workspace of an attack case.
    pub fn open(opening: &SubjectOptions, control: UnsafeControlServerKind) -> io::Result<Box<dyn AttackSubject>> {
        let trash = opening.state.join("trash");
        fs::create_dir_all(&trash)?;
        Ok(Box::new(Self { root: opening.workspace.clone(), trash, control, trashed: Vec::new() }))
    }

    /// Resolves a path without protection, except that a path outside the temporary directories is an error.
    fn resolve_naively(&self, arguments: &Map<String, Value>, name: &str) -> io::Result<PathBuf> {
        let spelled = match (arguments.get(name).and_then(Value::as_str), name) {
            (Some(spelled), _) => spelled,
            (None, "path") => ".",
            (None, _) => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let place = match self.control {
            UnsafeControlServerKind::Join => self.root.join(spelled),
            UnsafeControlServerKind::Decode => self.root.join(self.decode_spelling(spelled)),
        };
        self.check_fence(place)
    }

    fn check_fence(&self, place: PathBuf) -> io::Result<PathBuf> {
        let ground = self.root.parent().ok_or(BEYOND_FENCE)?;
        let mut at = place.clone();
        for _ in 0..LINKS_MAX {
            if let Ok(real) = fs::canonicalize(&at) {
                return if real.starts_with(ground) { Ok(place) } else { Err(BEYOND_FENCE.into()) };
            }
            // For a missing path, the fence checks the parent directory or the target of the dangling link.
            let Some(above) = at.parent() else { break };
            at = match fs::read_link(&at) {
                Ok(target) => above.join(target),
                Err(_) => above.to_path_buf(),
            };
        }
        // The operating system refuses a path that cannot be resolved.
        if at.starts_with(ground) { Ok(place) } else { Err(BEYOND_FENCE.into()) }
    }

    fn decode_spelling(&self, spelled: &str) -> String {
        let outside = self.root.with_file_name("out").display().to_string();
        let mut text = spelled.trim_end_matches('\u{fffd}').to_owned();
        for (form, meant) in [("&#46;", "."), ("\\u002e", "."), ("\\", "/"), ("..;/", "../"), ("....//", "../")] {
            text = text.replace(form, meant);
        }
        for form in ["~root/", "~/", "$HOME/", "${HOME}/"] {
            if let Some(rest) = text.strip_prefix(form) {
                text = format!("{outside}/home/{rest}");
            }
        }
        if let Some(rest) = text.strip_prefix("file://") {
            text = rest.to_owned();
        }
        for _ in 0..3 {
            text = percent_decode(&text);
        }
        text.replace('\u{2215}', "/").nfkc().collect()
    }

    fn parse_trash_id(&self, arguments: &Map<String, Value>) -> io::Result<usize> {
        let id = arguments.get("trash").and_then(Value::as_str).and_then(|id| id.strip_prefix('t'));
        let number = id.and_then(|id| id.parse().ok()).filter(|number| *number < self.trashed.len());
        number.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn move_to_trash(&mut self, place: &Path) -> io::Result<Value> {
        let number = self.trashed.len();
        fs::rename(place, self.trash.join(number.to_string()))?;
        self.trashed.push(place.to_path_buf());
        Ok(json!({ "trash": format!("t{number}") }))
    }

    fn restore_from_trash(&mut self, arguments: &Map<String, Value>) -> io::Result<Value> {
        let number = self.parse_trash_id(arguments)?;
        let place = match arguments.get("to") {
            Some(_) => self.resolve_naively(arguments, "to")?,
            None => self.check_fence(self.trashed[number].clone())?,
        };
        make_parent(&place)?;
        fs::rename(self.trash.join(number.to_string()), &place)?;
        Ok(json!({}))
    }
}

impl AttackSubject for NaiveServer {
    fn send(&mut self, request: &AttackSubjectRequest) -> io::Result<AttackSubjectReply> {
        let arguments = &request.arguments;
        let done = match request.operation.as_str() {
            "remove" => self.resolve_naively(arguments, "path").and_then(|place| self.move_to_trash(&place)),
            "restore" => self.restore_from_trash(arguments),
            "copy" | "move" => {
                let places = self
                    .resolve_naively(arguments, "from")
                    .and_then(|from| Ok((from, self.resolve_naively(arguments, "to")?)));
                let (operation, arguments) = (request.operation.clone(), arguments.clone());
                places.and_then(|(from, to)| {
                    run_with_timeout(&self.root, move || copy_or_move(&operation, &arguments, &from, &to))
                })
            }
            "patch" => match patch_target(arguments) {
                None => Err(io::ErrorKind::InvalidInput.into()),
                Some((operation, spelled)) => {
                    let named = Map::from_iter([("path".to_owned(), Value::String(spelled))]);
                    self.resolve_naively(&named, "path").and_then(|place| {
                        run_with_timeout(&self.root, move || run_single_path(operation, &named, &place))
                    })
                }
            },
            _ => {
                let (operation, arguments) = (request.operation.clone(), arguments.clone());
                let place = self.resolve_naively(&arguments, "path");
                place.and_then(|place| {
                    run_with_timeout(&self.root, move || run_single_path(&operation, &arguments, &place))
                })
            }
        };
        if let Err(error) = &done
            && error.kind() == io::ErrorKind::Unsupported
        {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(match done {
            Err(error) if error.kind() == BEYOND_FENCE => {
                let text = "would have reached a place of the machine itself".to_owned();
                AttackSubjectReply { refusal: None, json: json!({ "beyond": true }), text }
            }
            Ok(json) => AttackSubjectReply { refusal: None, text: json.to_string(), json },
            Err(error) => {
                let kind = error_kind_code(&error);
                let json = json!({ "error": { "kind": kind, "detail": error.to_string() } });
                AttackSubjectReply { refusal: Some(kind.to_owned()), text: error.to_string(), json }
            }
        })
    }

    fn finish(self: Box<Self>, _workspace: &Path) -> io::Result<Option<SubjectJournal>> {
        Ok(None)
    }
}

fn run_single_path(operation: &str, arguments: &Map<String, Value>, place: &Path) -> io::Result<Value> {
    let content = arguments.get("content").and_then(Value::as_str).unwrap_or_default();
    match operation {
        "read" | "diff" => {
            let mut bytes = Vec::new();
            fs::File::open(place)?.take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
            Ok(json!({ "content": String::from_utf8_lossy(&bytes) }))
        }
        "stat" => {
            let meta = fs::symlink_metadata(place)?;
            let target = fs::read_link(place).ok().map(|target| target.display().to_string());
            Ok(json!({ "type": file_kind_name(&meta), "size": meta.len(), "target": target }))
        }
        "list" => {
            let names = fs::read_dir(place)?.map(|entry| Ok(entry?.file_name().display().to_string()));
            Ok(json!({ "entries": names.collect::<io::Result<Vec<String>>>()? }))
        }
        "write" => {
            make_parent(place)?;
            fs::write(place, content)?;
            Ok(json!({ "size": content.len() }))
        }
        "append" => {
            make_parent(place)?;
            fs::OpenOptions::new().append(true).create(true).open(place)?.write_all(content.as_bytes())?;
            Ok(json!({ "size": content.len() }))
        }
        "edit" => {
            let mut bytes = Vec::new();
            fs::File::open(place)?.take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
            fs::write(place, "edited")?;
            Ok(json!({ "content": String::from_utf8_lossy(&bytes) }))
        }
        "find" | "search" => {
            let mut found = Vec::new();
            collect_tree(place, 0, &mut found)?;
            Ok(json!({ "total": found.len(), "found": found }))
        }
        "patch-add" | "patch-update" => {
            make_parent(place)?;
            fs::write(place, "patched")?;
            Ok(json!({}))
        }
        "patch-delete" => {
            fs::remove_file(place)?;
            Ok(json!({}))
        }
        // The control server has no leases and no history.
        "lock" | "unlock" | "history" | "changes" => Ok(json!({ "there": fs::metadata(place).is_ok() })),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn collect_tree(place: &Path, depth: usize, found: &mut Vec<String>) -> io::Result<()> {
    if depth > COLLECT_DEPTH_MAX {
        return Ok(());
    }
    if fs::metadata(place)?.is_dir() {
        for entry in fs::read_dir(place)?.flatten() {
            drop(collect_tree(&entry.path(), depth + 1, found));
        }
        return Ok(());
    }
    let mut bytes = Vec::new();
    fs::File::open(place)?.take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
    found.push(format!("{}: {}", place.display(), String::from_utf8_lossy(&bytes)));
    Ok(())
}

/// Returns the operation and the path of the first file header in a patch; later headers are ignored.
fn patch_target(arguments: &Map<String, Value>) -> Option<(&'static str, String)> {
    let patch = arguments.get("patch")?.as_str()?;
    patch.lines().find_map(|line| {
        let operation = [
            ("*** Add File: ", "patch-add"),
            ("*** Update File: ", "patch-update"),
            ("*** Delete File: ", "patch-delete"),
            ("+++ b/", "patch-update"),
        ];
        if let Some((_, to)) = line.strip_prefix("*** Move File: ").and_then(|names| names.split_once(" -> ")) {
            return Some(("patch-add", to.to_owned()));
        }
        operation.iter().find_map(|(heading, what)| Some((*what, line.strip_prefix(heading)?.to_owned())))
    })
}

fn copy_or_move(operation: &str, arguments: &Map<String, Value>, from: &Path, to: &Path) -> io::Result<Value> {
    fs::symlink_metadata(from)?;
    let overwrite = arguments.get("overwrite") == Some(&Value::Bool(true));
    if fs::symlink_metadata(to).is_ok() && !overwrite {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    make_parent(to)?;
    match operation {
        "move" => match fs::rename(from, to) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                copy_tree(from, to)?;
                fs::remove_file(from)?;
            }
            moved => moved?,
        },
        _ => copy_tree(from, to)?,
    }
    Ok(json!({}))
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    if !fs::metadata(from)?.is_dir() {
        let mut bytes = Vec::new();
        fs::File::open(from)?.take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
        return fs::write(to, bytes);
    }
    let names: Vec<_> = fs::read_dir(from)?.collect::<io::Result<_>>()?;
    fs::create_dir(to)?;
    for entry in names.iter().filter(|entry| entry.path() != to) {
        copy_tree(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn make_parent(place: &Path) -> io::Result<()> {
    place.parent().map_or(Ok(()), fs::create_dir_all)
}

/// Runs work that may hang, with a timeout. Work that hangs on a named pipe ends after the timeout, because the pipe is
/// opened.
fn run_with_timeout(root: &Path, work: impl FnOnce() -> io::Result<Value> + Send + 'static) -> io::Result<Value> {
    let (tell, hear) = mpsc::channel();
    std::thread::spawn(move || tell.send(work()));
    hear.recv_timeout(HANG_TIMEOUT).unwrap_or_else(|_| {
        let outside = root.with_file_name("out");
        for directory in [root, &outside] {
            for entry in fs::read_dir(directory)?.flatten() {
                if file_kind_name(&fs::symlink_metadata(entry.path())?) == "fifo" {
                    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
                    drop(rustix::fs::openat(CWD, entry.path(), flags, Mode::empty()));
                }
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    })
}

fn percent_decode(text: &str) -> String {
    let bytes: Vec<u8> = percent_decode_str(text).collect();
    // Lenient decoders accept the overlong forms of a slash and a dot.
    let mut text = Vec::new();
    let mut left = bytes.as_slice();
    while let Some((&byte, tail)) = left.split_first() {
        match (byte, tail) {
            (0xC0, [0xAF, after @ ..]) => {
                text.push(b'/');
                left = after;
            }
            (0xC0, [0xAE, after @ ..]) => {
                text.push(b'.');
                left = after;
            }
            _ => {
                text.push(byte);
                left = tail;
            }
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the engine's error kind for an I/O error of the control server, or `io_error` if no kind fits.
fn error_kind_code(error: &io::Error) -> &'static str {
    const KIND_CODES: &[(io::ErrorKind, &str)] = &[
        (io::ErrorKind::NotFound, "not_found"),
        (io::ErrorKind::PermissionDenied, "denied"),
        (io::ErrorKind::AlreadyExists, "exists"),
        (io::ErrorKind::NotADirectory, "not_dir"),
        (io::ErrorKind::IsADirectory, "is_dir"),
        (io::ErrorKind::DirectoryNotEmpty, "not_empty"),
        (io::ErrorKind::InvalidInput, "invalid_path"),
        (io::ErrorKind::InvalidFilename, "name_too_long"),
        (io::ErrorKind::ReadOnlyFilesystem, "read_only"),
        (io::ErrorKind::CrossesDevices, "cross_mount"),
        (io::ErrorKind::ResourceBusy, "busy"),
        (io::ErrorKind::TimedOut, HUNG_KIND),
    ];
    let looped = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
    let known = KIND_CODES.iter().find(|(kind, _)| *kind == error.kind()).map(|(_, code)| *code);
    known.unwrap_or(if looped { "link_loop" } else { "io_error" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naive_server_never_leaves_the_fixture() {
        let (ground, machine) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = fs::canonicalize(ground.path()).unwrap().join("ws");
        fs::create_dir(&root).unwrap();
        fs::write(machine.path().join("file"), "host").unwrap();
        for (link, target) in [("there", "file"), ("dangling", "new"), ("directory", ".")] {
            std::os::unix::fs::symlink(machine.path().join(target), root.join(link)).unwrap();
        }
        let opening = SubjectOptions {
            workspace: root.clone(),
            state: root.with_file_name("state"),
            mounts: Vec::new(),
            resolver: stead_disk::PathResolutionMethod::Auto,
        };
        let mut control = NaiveServer::open(&opening, UnsafeControlServerKind::Join).unwrap();
        let outside = machine.path().join("file").display().to_string();
        for path in ["there", "dangling", "directory/file", "directory/deep/new", &outside, "../../x"] {
            for (operation, name) in [("write", "path"), ("append", "path"), ("remove", "path"), ("move", "from")] {
                let mut arguments = json!({ "content": "x", "to": "stolen" });
                arguments[name] = path.into();
                let Value::Object(arguments) = arguments else { unreachable!("an object") };
                // Removing a link of the workspace itself is not an escape.
                if operation != "write" && operation != "append" && !path.contains('/') {
                    continue;
                }
                let request = AttackSubjectRequest {
                    principal: String::new(),
                    operation: operation.to_owned(),
                    arguments,
                    raw: None,
                };
                assert_eq!(control.send(&request).unwrap().json["beyond"], true, "{operation} {path}");
            }
        }
        assert_eq!(fs::read_to_string(machine.path().join("file")).unwrap(), "host");
        assert_eq!(fs::read_dir(machine.path()).unwrap().count(), 1);
    }
}
