//! The policy file: found, read, and read again when it changed. Promises: a policy that cannot be read or understood
//! lets nothing run; what was read last is used as long as the file is the same.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use disk::{Directory, ErrorKind, Root, RootOptions, Stamp};
use engine::{Failure, InForce, Kind, Policy, PolicyPlace};
use path::{Name, RelPath};

use crate::{failure, store::hold};

/// The policy in the state directory, when none is named.
pub(crate) const POLICY_FILE: &str = "policy.toml";
/// Largest policy file.
const POLICY_BYTES_MAX: u64 = 1 << 20;
/// A file that changed so lately is read at every call: a second change might not show in its times.
const SETTLED_NS: i128 = 2_000_000_000;

/// Where the policy is, and what it said when it was last read.
pub(crate) struct Rules {
    directory: Directory,
    name: Name,
    /// As people write it.
    shown: PathBuf,
    need: Need,
    /// Its place in the workspace, when it is there.
    inside: Option<RelPath>,
    last: Mutex<Last>,
}

/// Whether the file must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// It was named by the operator.
    Named,
    /// It is used when it is there.
    Usual,
}

struct Last {
    /// Which file was read; nothing when none was there.
    seen: Option<Stamp>,
    settled: Settled,
    said: Result<InForce, Failure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settled {
    Yes,
    No,
}

impl Rules {
    /// Finds the policy and reads it. A malformed one fails here, so that nothing is served.
    pub(crate) fn open(
        named: Option<&Path>,
        state: &Path,
        workspace: &str,
        now_ns: i128,
    ) -> Result<Self, Failure> {
        let (file, need) = match named {
            Some(file) => (file.to_owned(), Need::Named),
            None => (state.join(POLICY_FILE), Need::Usual),
        };
        let unusable = |what: &str| {
            Failure::new(Kind::PolicyDenied, format!("the policy {} cannot be used: {what}", file.display()))
        };
        let file_name = file.file_name().and_then(|name| Name::new(name.as_encoded_bytes()).ok());
        let name = file_name.ok_or_else(|| unusable("that is not the name of a file"))?;
        let parent = match file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            Some(_) | None => PathBuf::from("."),
        };
        let root =
            Root::open(&parent, RootOptions::default()).map_err(|error| unusable(&error.to_string()))?;
        let directory =
            root.open_directory(&RelPath::root()).map_err(|error| unusable(&error.to_string()))?;
        let inside = inside(workspace, root.absolute(), &name);
        let nothing = Last { seen: None, settled: Settled::No, said: Ok(InForce::built_in()) };
        let rules = Self { directory, name, shown: file, need, inside, last: Mutex::new(nothing) };
        rules.in_force(now_ns)?;
        Ok(rules)
    }

    /// What holds now. One look at the file; it is read again only when it is another one.
    pub(crate) fn in_force(&self, now_ns: i128) -> Result<InForce, Failure> {
        let seen = match self.directory.stat(&self.name) {
            Ok(stat) => stat.map(|stat| stat.stamp),
            Err(error) => return Err(self.unusable(error.to_string())),
        };
        let mut last = hold(&self.last);
        let is_same = last.seen == seen && last.settled == Settled::Yes;
        if !is_same {
            let settled = match seen {
                Some(stamp) if now_ns - stamp.changed_ns < SETTLED_NS => Settled::No,
                Some(_) => Settled::Yes,
                None => Settled::Yes,
            };
            *last = Last { seen, settled, said: self.read(seen) };
        }
        last.said.clone()
    }

    fn read(&self, seen: Option<Stamp>) -> Result<InForce, Failure> {
        let Some(stamp) = seen else {
            return match self.need {
                Need::Named => Err(self.unusable("there is no such file")),
                Need::Usual => Ok(InForce::built_in()),
            };
        };
        let file = self.directory.open_file(&self.name).map_err(|error| {
            let linked = error.kind == ErrorKind::IsLink;
            self.unusable(if linked {
                "it is a link; name the file itself".to_owned()
            } else {
                error.to_string()
            })
        })?;
        let bytes = file.read_all(POLICY_BYTES_MAX).map_err(|error| self.unusable(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| self.unusable("it is not UTF-8"))?;
        let policy = Policy::parse(&text).map_err(|error| {
            self.unusable(error.to_string()).fact("line", error.line).fact("reason", error.reason)
        })?;
        let identity = (stamp.id.dev, stamp.id.ino);
        let place = self.inside.clone().map(|path| PolicyPlace { path, identity });
        Ok(InForce { policy: Arc::new(policy), place })
    }

    fn unusable(&self, what: impl std::fmt::Display) -> Failure {
        let file = self.shown.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Failure::new(
            Kind::PolicyDenied,
            format!("nothing runs, because the policy {file} cannot be used: {what}"),
        )
        .hint("ask the person you work for to repair the policy")
    }

    /// The file as people write it.
    pub(crate) fn file(&self) -> &Path {
        &self.shown
    }

    /// The directory it is in, for the second wall.
    pub(crate) fn parent(&self) -> PathBuf {
        match self.shown.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            Some(_) | None => PathBuf::from("."),
        }
    }

    /// Its text now; nothing when there is no file.
    pub(crate) fn text(&self) -> Result<Option<String>, Failure> {
        match self.directory.open_file(&self.name) {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failure::own(&error)),
            Ok(file) => {
                let bytes = file.read_all(POLICY_BYTES_MAX).map_err(|error| failure::own(&error))?;
                String::from_utf8(bytes).map(Some).map_err(|_| self.unusable("it is not UTF-8"))
            }
        }
    }

    /// Puts another text there, all or nothing. Refuses one that is malformed.
    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        Policy::parse(text).map_err(|error| self.unusable(error.to_string()))?;
        let attributes = disk::Attributes::New { mode: POLICY_MODE };
        let staged = self
            .directory
            .stage(disk::Source::Bytes(text.as_bytes()), attributes)
            .map_err(|error| failure::own(&error))?;
        let placed = staged.sync().and_then(|()| self.directory.replace(&staged, &self.name));
        if let Err(error) = placed {
            staged.discard(&self.directory).unwrap_or_default();
            return Err(failure::own(&error));
        }
        self.directory.sync().map_err(|error| failure::own(&error))
    }
}

/// Permission bits of a policy that is written here.
const POLICY_MODE: u32 = 0o600;

/// The place of a file in the workspace, when it is there.
fn inside(workspace: &str, parent: &str, name: &Name) -> Option<RelPath> {
    let rest = Path::new(parent).strip_prefix(workspace).ok()?;
    let above =
        RelPath::from_components(rest.components().map(|part| part.as_os_str().as_encoded_bytes())).ok()?;
    above.join(name).ok()
}
