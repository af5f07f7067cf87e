//! Making a workspace: the name is taken first, then the directories are made, then it is ready. Whoever dies in between
//! leaves a row that is cleared with everything it stands for.

use disk::{Directory, Mode};
use engine::{Caller, Failure, Kind, Policy};
use path::Name;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Estate, FILES, Row, STATE, Settled, Stage, WORKSPACES, WORKSPACES_MAX, WorkspaceName,
    name::{self, directory_name},
    registry::{self, Lasting},
};
use crate::{failure, options::Durability, rules::POLICY_FILE, store::hold};

/// Longest remark about a workspace.
const LABEL_CHARS_MAX: usize = 200;
/// The mode of the directories of a workspace.
const DIRECTORY_MODE: u32 = 0o700;

/// What is wanted of a new workspace.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceAsk {
    /// What becomes of it when it is destroyed.
    #[serde(default)]
    pub lasting: Lasting,
    /// What it is for, in a person's words.
    #[serde(default)]
    pub label: String,
    /// The most bytes that its files may have together.
    pub bytes_max: Option<u64>,
    /// The most files, links and directories that it may have.
    pub files_max: Option<u64>,
    /// The text of its policy file. A quota is said there or above, not both.
    pub policy: Option<String>,
}

impl WorkspaceAsk {
    /// The policy file that it asks for.
    pub(super) fn policy_text(&self) -> Result<Option<String>, Failure> {
        if self.label.chars().count() > LABEL_CHARS_MAX {
            let limit = format!("a label has {LABEL_CHARS_MAX} characters at most");
            return Err(Failure::new(Kind::TooLarge, limit));
        }
        let limits = [("bytes", self.bytes_max), ("files", self.files_max)];
        let lines: String = limits
            .iter()
            .filter_map(|(key, limit)| limit.map(|limit| format!("{key} = {limit}\n")))
            .collect();
        match (&self.policy, lines.is_empty()) {
            (Some(_), false) => Err(Failure::new(Kind::BadRequest, "the quota is said twice")
                .hint("put bytes and files into [system.quota] of the policy")),
            (Some(text), true) => {
                Policy::parse(text).map_err(|error| {
                    Failure::new(Kind::BadRequest, format!("the policy cannot be used: {error}"))
                })?;
                Ok(Some(text.clone()))
            }
            (None, false) => Ok(Some(format!("[system.quota]\n{lines}"))),
            (None, true) => Ok(None),
        }
    }
}

/// A workspace whose name is taken and whose directories are there, and that nobody can open yet.
pub(super) struct Begun {
    pub(super) row: Row,
    pub(super) directory: Directory,
    _hold: super::Hold,
}

/// What was put into a new workspace.
#[derive(Debug, Default)]
pub(super) struct Filled {
    /// Where it comes from; nothing when nothing was put there.
    pub(super) origin: Option<Value>,
}

impl Estate {
    /// Makes an empty workspace.
    pub fn create(
        &self,
        by: &Caller,
        name: &WorkspaceName,
        ask: &WorkspaceAsk,
    ) -> Result<super::Description, Failure> {
        self.make(by, "workspace_create", name, ask, &mut |_| Ok(Filled::default()))
    }

    /// Makes a workspace and fills it; all of it or nothing.
    pub(super) fn make(
        &self,
        by: &Caller,
        operation: &str,
        name: &WorkspaceName,
        ask: &WorkspaceAsk,
        fill: &mut dyn FnMut(&Begun) -> Result<Filled, Failure>,
    ) -> Result<super::Description, Failure> {
        let policy = ask.policy_text()?;
        let begun = self.begin(by, name.as_str(), ask)?;
        let id = begun.row.id.clone();
        let filled = self
            .lay_out(&begun.directory, policy.as_deref())
            .and_then(|()| fill(&begun))
            .and_then(|filled| self.bring_to_rest(&begun, &filled).map(|()| filled));
        let filled = match filled {
            Ok(filled) => filled,
            Err(failure) => {
                self.clear(&id).unwrap_or_default();
                return Err(failure);
            }
        };
        let origin = filled.origin.map(|origin| origin.to_string());
        let row = Row { stage: Stage::Ready, settled: Settled::Yes, origin, ..begun.row.clone() };
        let arguments = json!({
            "workspace": name.as_str(), "id": id, "lasting": row.lasting, "label": row.label, "origin": row.origin,
            "bytes_max": ask.bytes_max, "files_max": ask.files_max, "policy": ask.policy.is_some(),
        });
        let put = row.clone();
        let recorded = self.record(by, operation, &arguments, move |transaction| {
            registry::put(transaction, &put)?;
            Ok(Ok(()))
        });
        // Nobody knows whether a record that failed is true: then the next opening finds out. Anything else is undone.
        if let Err(failure) = recorded {
            if self.own.store.usable().is_ok() {
                self.clear(&id).unwrap_or_default();
            }
            return Err(failure);
        }
        Ok(self.described(&row))
    }

    /// A place for a copy that will never be a workspace. Its name is none, so it is in nobody's way.
    pub(super) fn begin_unnamed(&self, by: &Caller) -> Result<Begun, Failure> {
        let name = format!("~{}", name::fresh_id()?);
        self.begin(by, &name, &WorkspaceAsk::default())
    }

    /// Takes the name and makes the directory.
    fn begin(&self, by: &Caller, name: &str, ask: &WorkspaceAsk) -> Result<Begun, Failure> {
        let id = name::fresh_id()?;
        let held = self.hold(&id, Mode::Exclusive)?;
        let now_ms = self.now_ms();
        let row = Row {
            id: id.clone(),
            name: name.to_owned(),
            stage: Stage::Making,
            lasting: ask.lasting,
            label: ask.label.clone(),
            maker: by.principal.to_string(),
            created_ms: now_ms,
            used_ms: now_ms,
            ends_ms: None,
            settled: Settled::No,
            origin: None,
        };
        self.take_name(&row)?;
        let directory_name = directory_name(&id)?;
        let directory = self
            .workspaces
            .make_directory(&directory_name, DIRECTORY_MODE)
            .and_then(|()| self.workspaces.open_directory(&directory_name));
        match directory {
            Ok(directory) => Ok(Begun { row, directory, _hold: held }),
            Err(error) => {
                self.clear(&id).unwrap_or_default();
                Err(room_for(&error))
            }
        }
    }

    /// Puts the row there if nobody has the name. A name that a dead process took is given back first.
    fn take_name(&self, row: &Row) -> Result<(), Failure> {
        for last in [false, true] {
            let wanted = row.clone();
            let taken = self.note(move |transaction| {
                if registry::live(transaction, &wanted.name)?.is_some() {
                    let taken = format!("there is a workspace {} already", wanted.name);
                    return Ok(Err(Failure::new(Kind::Exists, taken)));
                }
                if registry::count(transaction)? >= WORKSPACES_MAX {
                    let full = format!("there are {WORKSPACES_MAX} workspaces already");
                    return Ok(Err(Failure::new(Kind::TooMany, full).hint("destroy some")));
                }
                registry::put(transaction, &wanted)?;
                Ok(Ok(()))
            });
            match taken {
                Err(failure) if failure.kind == Kind::Exists && !last => {
                    let other = self.own.store.look(|connection| registry::live(connection, &row.name))?;
                    match other {
                        Some(other) if other.stage == Stage::Making => self.settle_if_left(&other.id)?,
                        Some(_) => return Err(failure),
                        None => {}
                    }
                }
                other => return other,
            }
        }
        Err(Failure::new(Kind::Exists, format!("there is a workspace {} already", row.name)))
    }

    /// Makes what is in the directory of every workspace.
    pub(super) fn lay_out(&self, directory: &Directory, policy: Option<&str>) -> Result<(), Failure> {
        let failed = |error: disk::DiskError| room_for(&error);
        for name in [FILES, STATE] {
            directory.make_directory(&Name::new(name.as_bytes())?, DIRECTORY_MODE).map_err(failed)?;
        }
        let Some(text) = policy else { return Ok(()) };
        let state = directory.open_directory(&Name::new(STATE.as_bytes())?).map_err(failed)?;
        let content = disk::Source::Bytes(text.as_bytes());
        let staged = state.stage(content, disk::Attributes::New { mode: 0o600 }).map_err(failed)?;
        staged.sync().map_err(failed)?;
        state.place_new(&staged, &Name::new(POLICY_FILE.as_bytes())?).map_err(failed)?;
        state.sync().map_err(failed)
    }

    /// Brings a new workspace to the device, with everything that was put into it.
    fn bring_to_rest(&self, begun: &Begun, filled: &Filled) -> Result<(), Failure> {
        let synced = match (&filled.origin, self.options.durability) {
            (Some(_), Durability::Full) => self.place.sync_file_system(),
            (Some(_), Durability::Fast) | (None, _) => Ok(()),
        };
        synced
            .and_then(|()| begun.directory.sync())
            .and_then(|()| self.workspaces.sync())
            .map_err(|error| room_for(&error))
    }

    /// The path of a workspace's files, as dialects with absolute paths write them.
    pub fn files_of(&self, id: &str) -> String {
        self.path.join(WORKSPACES).join(id).join(FILES).to_string_lossy().into_owned()
    }

    /// Whether a workspace is open here.
    pub(super) fn is_open(&self, id: &str) -> bool {
        hold(&self.rooms.all).contains_key(id)
    }
}

/// What a failed step of making means to who asked.
pub(super) fn room_for(error: &disk::DiskError) -> Failure {
    if matches!(error.kind, disk::ErrorKind::NoSpace | disk::ErrorKind::Quota) {
        return Failure::new(Kind::NoSpace, "the disk is full; nothing was changed");
    }
    failure::own(error)
}
