//! The control: a file server that joins the root and the spelling and trusts the operating system with the rest. What
//! the corpus proves about the real server it must disprove about this one, or the corpus proves nothing.
//!
//! It is wrong on purpose, and the corpus holds links to places of the real machine. So it is fenced: where a path leads
//! out of the temporary ground altogether it does nothing and says that it would have. It never runs outside a test.

use std::{
    fs, io,
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::mpsc,
    time::Duration,
};

use rustix::fs::{CWD, Mode, OFlags};
use serde_json::{Map, Value, json};
use unicode_normalization::UnicodeNormalization;

use super::{
    case::Control,
    snapshot::kind_of,
    subject::{Asked, Ledger, Opening, Reply, Subject},
};

/// Bytes of a file that it reads; a device would never end.
const READ_BYTES_MAX: u64 = 1 << 20;
/// How long it may hang.
const HANG: Duration = Duration::from_millis(300);
/// How deep it looks for what is below a place.
const GATHER_DEPTH_MAX: usize = 8;
/// Links that the fence follows for one path.
const LINKS_MAX: usize = 64;
/// How a place beyond the fence is told from one that is not there.
const BEYOND: io::ErrorKind = io::ErrorKind::HostUnreachable;
/// The kind of a reply that never came.
pub(crate) const HUNG: &str = "hung";

/// The control.
pub struct Naive {
    root: PathBuf,
    trash: PathBuf,
    control: Control,
    trashed: Vec<PathBuf>,
}

impl Naive {
    /// Opens one of this kind.
    pub fn open(opening: &Opening, control: Control) -> io::Result<Box<dyn Subject>> {
        let trash = opening.state.join("trash");
        fs::create_dir_all(&trash)?;
        Ok(Box::new(Self { root: opening.workspace.clone(), trash, control, trashed: Vec::new() }))
    }

    /// Where a spelling leads. This is the mistake.
    fn place(&self, arguments: &Map<String, Value>, name: &str) -> io::Result<PathBuf> {
        let spelled = match (arguments.get(name).and_then(Value::as_str), name) {
            (Some(spelled), _) => spelled,
            (None, "path") => ".",
            (None, _) => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let place = match self.control {
            Control::Join => self.root.join(spelled),
            Control::Decode => self.root.join(self.decoded(spelled)),
        };
        self.fenced(place)
    }

    /// The place, unless it is beyond the ground that may be harmed.
    fn fenced(&self, place: PathBuf) -> io::Result<PathBuf> {
        let ground = self.root.parent().ok_or(BEYOND)?;
        let mut at = place.clone();
        for _ in 0..LINKS_MAX {
            if let Ok(real) = fs::canonicalize(&at) {
                return if real.starts_with(ground) { Ok(place) } else { Err(BEYOND.into()) };
            }
            // Nothing is there: what counts is the directory it would be made in, or where a dangling link leads.
            let Some(above) = at.parent() else { break };
            at = match fs::read_link(&at) {
                Ok(target) => above.join(target),
                Err(_) => above.to_path_buf(),
            };
        }
        // A path that cannot be followed to its end: the operating system refuses the same ones.
        if at.starts_with(ground) { Ok(place) } else { Err(BEYOND.into()) }
    }

    /// What a server that means well makes of a spelling.
    fn decoded(&self, spelled: &str) -> String {
        let outside = self.root.with_file_name("out").display().to_string();
        let mut text = spelled.trim_end_matches('\u{fffd}').to_owned();
        for (form, meant) in
            [("&#46;", "."), ("\\u002e", "."), ("\\", "/"), ("..;/", "../"), ("....//", "../")]
        {
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
            text = percent_decoded(&text);
        }
        text.replace('\u{2215}', "/").nfkc().collect()
    }

    fn trash_id(&self, arguments: &Map<String, Value>) -> io::Result<usize> {
        let id = arguments.get("trash").and_then(Value::as_str).and_then(|id| id.strip_prefix('t'));
        let number = id.and_then(|id| id.parse().ok()).filter(|number| *number < self.trashed.len());
        number.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn remove(&mut self, place: &Path) -> io::Result<Value> {
        let number = self.trashed.len();
        fs::rename(place, self.trash.join(number.to_string()))?;
        self.trashed.push(place.to_path_buf());
        Ok(json!({ "trash": format!("t{number}") }))
    }

    fn restore(&mut self, arguments: &Map<String, Value>) -> io::Result<Value> {
        let number = self.trash_id(arguments)?;
        let place = match arguments.get("to") {
            Some(_) => self.place(arguments, "to")?,
            None => self.fenced(self.trashed[number].clone())?,
        };
        make_parent(&place)?;
        fs::rename(self.trash.join(number.to_string()), &place)?;
        Ok(json!({}))
    }
}

impl Subject for Naive {
    fn ask(&mut self, asked: &Asked) -> io::Result<Reply> {
        let arguments = &asked.arguments;
        let done = match asked.operation.as_str() {
            "remove" => self.place(arguments, "path").and_then(|place| self.remove(&place)),
            "restore" => self.restore(arguments),
            "copy" | "move" => {
                let places =
                    self.place(arguments, "from").and_then(|from| Ok((from, self.place(arguments, "to")?)));
                let (operation, arguments) = (asked.operation.clone(), arguments.clone());
                places.and_then(|(from, to)| {
                    patiently(&self.root, move || carry(&operation, &arguments, &from, &to))
                })
            }
            "patch" => match patched(arguments) {
                None => Err(io::ErrorKind::InvalidInput.into()),
                Some((operation, spelled)) => {
                    let named = Map::from_iter([("path".to_owned(), Value::String(spelled))]);
                    self.place(&named, "path")
                        .and_then(|place| patiently(&self.root, move || simple(operation, &named, &place)))
                }
            },
            _ => {
                let (operation, arguments) = (asked.operation.clone(), arguments.clone());
                let place = self.place(&arguments, "path");
                place.and_then(|place| patiently(&self.root, move || simple(&operation, &arguments, &place)))
            }
        };
        if let Err(error) = &done
            && error.kind() == io::ErrorKind::Unsupported
        {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(match done {
            Err(error) if error.kind() == BEYOND => {
                let text = "would have reached a place of the machine itself".to_owned();
                Reply { refused: None, json: json!({ "beyond": true }), text }
            }
            Ok(json) => Reply { refused: None, text: json.to_string(), json },
            Err(error) => {
                let kind = kind_code(&error);
                let json = json!({ "error": { "kind": kind, "detail": error.to_string() } });
                Reply { refused: Some(kind.to_owned()), text: error.to_string(), json }
            }
        })
    }

    fn finish(self: Box<Self>, _workspace: &Path) -> io::Result<Option<Ledger>> {
        Ok(None)
    }
}

/// Operations on one place.
fn simple(operation: &str, arguments: &Map<String, Value>, place: &Path) -> io::Result<Value> {
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
            Ok(json!({ "type": kind_of(&meta), "size": meta.len(), "target": target }))
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
            gather(place, 0, &mut found)?;
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
        // It keeps no leases and no history, and says so of any place.
        "lock" | "unlock" | "history" | "changes" => Ok(json!({ "there": fs::metadata(place).is_ok() })),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Everything below a place, through links, with its bytes.
fn gather(place: &Path, depth: usize, found: &mut Vec<String>) -> io::Result<()> {
    if depth > GATHER_DEPTH_MAX {
        return Ok(());
    }
    if fs::metadata(place)?.is_dir() {
        for entry in fs::read_dir(place)?.flatten() {
            drop(gather(&entry.path(), depth + 1, found));
        }
        return Ok(());
    }
    let mut bytes = Vec::new();
    fs::File::open(place)?.take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
    found.push(format!("{}: {}", place.display(), String::from_utf8_lossy(&bytes)));
    Ok(())
}

/// What a patch does, and where. The control reads only the first heading.
fn patched(arguments: &Map<String, Value>) -> Option<(&'static str, String)> {
    let patch = arguments.get("patch")?.as_str()?;
    patch.lines().find_map(|line| {
        let operation = [
            ("*** Add File: ", "patch-add"),
            ("*** Update File: ", "patch-update"),
            ("*** Delete File: ", "patch-delete"),
            ("+++ b/", "patch-update"),
        ];
        if let Some((_, to)) = line.strip_prefix("*** Move File: ").and_then(|names| names.split_once(" -> "))
        {
            return Some(("patch-add", to.to_owned()));
        }
        operation.iter().find_map(|(heading, what)| Some((*what, line.strip_prefix(heading)?.to_owned())))
    })
}

/// Copy and move.
fn carry(operation: &str, arguments: &Map<String, Value>, from: &Path, to: &Path) -> io::Result<Value> {
    fs::symlink_metadata(from)?;
    let overwrite = arguments.get("overwrite") == Some(&Value::Bool(true));
    if fs::symlink_metadata(to).is_ok() && !overwrite {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    make_parent(to)?;
    match operation {
        "move" => match fs::rename(from, to) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                copy(from, to)?;
                fs::remove_file(from)?;
            }
            moved => moved?,
        },
        _ => copy(from, to)?,
    }
    Ok(json!({}))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !fs::metadata(from)?.is_dir() {
        let mut bytes = Vec::new();
        fs::File::open(from)?.take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
        return fs::write(to, bytes);
    }
    let names: Vec<_> = fs::read_dir(from)?.collect::<io::Result<_>>()?;
    fs::create_dir(to)?;
    for entry in names.iter().filter(|entry| entry.path() != to) {
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn make_parent(place: &Path) -> io::Result<()> {
    place.parent().map_or(Ok(()), fs::create_dir_all)
}

/// Runs something that may never come back. A thread that hangs on a pipe is let go by opening the other end.
fn patiently(root: &Path, work: impl FnOnce() -> io::Result<Value> + Send + 'static) -> io::Result<Value> {
    let (tell, hear) = mpsc::channel();
    std::thread::spawn(move || tell.send(work()));
    hear.recv_timeout(HANG).unwrap_or_else(|_| {
        let outside = root.with_file_name("out");
        for directory in [root, &outside] {
            for entry in fs::read_dir(directory)?.flatten() {
                if kind_of(&fs::symlink_metadata(entry.path())?) == "fifo" {
                    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
                    drop(rustix::fs::openat(CWD, entry.path(), flags, Mode::empty()));
                }
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    })
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let pair = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()).filter(|_| byte == b'%') {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &tail[2..];
            }
            None => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    // The over-long form of a slash is a slash to whoever does not look closely.
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

/// The kind that a plain error comes closest to: given the benefit of every doubt.
fn kind_code(error: &io::Error) -> &'static str {
    const CODES: &[(io::ErrorKind, &str)] = &[
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
        (io::ErrorKind::TimedOut, HUNG),
    ];
    let looped = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
    let known = CODES.iter().find(|(kind, _)| *kind == error.kind()).map(|(_, code)| *code);
    known.unwrap_or(if looped { "link_loop" } else { "io_error" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The control follows links, as it must, and stops where the temporary ground ends.
    #[test]
    fn the_control_never_leaves_the_ground() {
        let (ground, machine) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = fs::canonicalize(ground.path()).unwrap().join("ws");
        fs::create_dir(&root).unwrap();
        fs::write(machine.path().join("file"), "host").unwrap();
        for (link, target) in [("there", "file"), ("dangling", "new"), ("directory", ".")] {
            std::os::unix::fs::symlink(machine.path().join(target), root.join(link)).unwrap();
        }
        let opening = Opening {
            workspace: root.clone(),
            state: root.with_file_name("state"),
            mounts: Vec::new(),
            resolver: disk::Resolver::Auto,
        };
        let mut control = Naive::open(&opening, Control::Join).unwrap();
        let outside = machine.path().join("file").display().to_string();
        for path in ["there", "dangling", "directory/file", "directory/deep/new", &outside, "../../x"] {
            for (operation, name) in
                [("write", "path"), ("append", "path"), ("remove", "path"), ("move", "from")]
            {
                let mut arguments = json!({ "content": "x", "to": "stolen" });
                arguments[name] = path.into();
                let Value::Object(arguments) = arguments else { unreachable!("an object") };
                // Taking away a link of the workspace itself is no escape.
                if operation != "write" && operation != "append" && !path.contains('/') {
                    continue;
                }
                let asked =
                    Asked { principal: String::new(), operation: operation.to_owned(), arguments, raw: None };
                assert_eq!(control.ask(&asked).unwrap().json["beyond"], true, "{operation} {path}");
            }
        }
        assert_eq!(fs::read_to_string(machine.path().join("file")).unwrap(), "host");
        assert_eq!(fs::read_dir(machine.path()).unwrap().count(), 1);
    }
}
