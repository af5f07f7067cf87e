//! Where a recording is played: a ground, the dialect over an engine on it, and the words that stand for its places.
//! Everything starts anew with every new workspace.

use std::path::{Path, PathBuf};

use engine::{Call as EngineCall, Caller, NameProfile, Principal};
use faces::dialect::{Dialect, Dialects, Place, Reach, Reply};
use local::{Durability, Options};

use super::{
    audit, compare,
    compare::{Judged, Mismatch},
    ground::Ground,
    placeholders::Placeholders,
    recording::{Call, NewWorkspace, What},
};
use crate::{
    show::Problem,
    wire::{self, Opened},
};

/// The workspace when a recording does not name it.
const WORKSPACE: &str = "$ROOT/ws";
/// Who made the recordings.
const AGENT: &str = "agent-1";
const SESSION: &str = "s1";

/// What a step was found to be; nothing when it says nothing that could be wrong.
type Played = Result<Option<Judged>, Problem>;

/// A scene that is being played.
pub(super) struct Scene {
    dialect: String,
    settings: Vec<String>,
    set: Option<Set>,
}

/// One workspace of a recording.
struct Set {
    // Dropped before the ground it stands on.
    opened: Option<Opened>,
    ground: Ground,
    workspace: PathBuf,
    words: Placeholders,
    /// What the workspace's own line sets.
    settings: Vec<String>,
    /// Rows of the log that were recorded already.
    audited: Vec<usize>,
}

impl Scene {
    pub(super) fn new(dialect: &str, settings: &[String]) -> Result<Self, Problem> {
        let scene = Self { dialect: dialect.to_owned(), settings: settings.to_vec(), set: None };
        // A setting that does not fit is said before anything is made.
        choose(&scene.dialect, &scene.settings, Path::new("/"))?;
        Ok(scene)
    }

    /// Plays one step.
    pub(super) fn play(&mut self, what: What) -> Played {
        if let What::NewWorkspace(new) = what {
            self.set = None;
            self.set = Some(self.fresh(&new)?);
            return Ok(None);
        }
        if self.set.is_none() {
            self.set = Some(self.fresh(&NewWorkspace { workspace: None, restrict: None })?);
        }
        let Some(set) = &mut self.set else { return Ok(None) };
        match what {
            What::NewWorkspace(_) => {}
            What::Mkdir { path } => set.ground.make_directory(&set.path(&path))?,
            What::Put(put) => {
                let bytes = put.bytes().map_err(Problem::Usage)?;
                set.ground.put(&set.path(&put.path), &bytes)?;
            }
            What::Symlink { path, target } => {
                set.ground.link(&set.path(&path), &set.words.filled(&target))?;
            }
            What::Chmod { path, mode } => set.ground.set_mode(&set.path(&path), &mode)?,
            What::Disk(disk) => {
                let found = set.ground.look(&set.path(&disk.path))?;
                return Ok(Some(compare::disk(&disk.facts, found.as_ref())));
            }
            What::AuditEntry { entry } => {
                let Some(opened) = &set.opened else {
                    return Ok(Some(Err(Mismatch::new("an entry", "nothing was called yet"))));
                };
                return audit::entry(&*opened.local, &entry, &mut set.audited).map(Some);
            }
            What::Call(call) => return set.call(&self.dialect, &self.settings, &call),
        }
        Ok(None)
    }

    fn fresh(&self, new: &NewWorkspace) -> Result<Set, Problem> {
        let ground = Ground::new()?;
        let named = new.workspace.as_deref().unwrap_or(WORKSPACE);
        let workspace = named.replace("$ROOT", ground.root());
        ground.make_directory(Path::new(&workspace))?;
        let words = Placeholders::new(ground.root(), &workspace);
        let chosen = choose(&self.dialect, &self.settings, Path::new(&workspace))?;
        let restrict = new.restrict.map(|restrict| ("restrict", restrict.to_string()));
        let settings = known(&chosen, restrict.into_iter());
        Ok(Set { opened: None, ground, workspace: workspace.into(), words, settings, audited: Vec::new() })
    }
}

impl Set {
    /// A path of the recording: absolute, or in the workspace.
    fn path(&self, written: &str) -> PathBuf {
        self.workspace.join(self.words.filled(written))
    }

    fn call(&mut self, dialect: &str, base: &[String], call: &Call) -> Played {
        let (tool, variant) = variant(&call.tool);
        let forbidden = call.forbidden_globs.as_deref().unwrap_or("none");
        let settings: Vec<String> = [base, &self.settings].concat();
        let chosen = choose(dialect, &settings, &self.workspace)?;
        let own = known(&chosen, [("forbidden_globs", forbidden.to_owned())].into_iter());
        let variant: Vec<String> = variant.into_iter().map(|setting| self.words.filled(&setting)).collect();
        let dialects = match choose(dialect, &[settings, own, variant].concat(), &self.workspace) {
            // How the original was set for this call is not offered here: that is a difference, not a mistake.
            Err(Problem::Usage(problem)) => {
                return Ok(call.expect.is_some().then(|| Err(Mismatch::new("that setting", problem))));
            }
            other => other?,
        };
        let Some(dialect) = dialects.with_tool(tool) else {
            return Ok(Some(Err(Mismatch::new(format!("a tool {tool}"), "no such tool"))));
        };
        let reply = self.answer(dialect, tool, call)?;
        let judged = compare::answer(call, &reply, &mut self.words);
        self.words.learn(&reply.json);
        Ok(judged)
    }

    fn answer(&mut self, dialect: &dyn Dialect, tool: &str, call: &Call) -> Result<Reply, Problem> {
        let opened = match self.opened.take() {
            Some(opened) => opened,
            None => open(&self.workspace, self.ground.state(), &dialect.reach())?,
        };
        let arguments = self.words.filled_in(&call.args);
        let request = dialect.ask(tool, &arguments);
        let mut caller = Caller::new(Principal::Agent(AGENT.to_owned()), SESSION, "replay");
        dialect.narrow(&mut caller);
        let mut asked = EngineCall::new(&caller, &request.operation, request.arguments);
        asked.terms = request.terms;
        let outcome = opened.engine.call(&asked);
        self.opened = Some(opened);
        Ok(dialect.reply(tool, &arguments, outcome))
    }
}

/// Opens a throw-away workspace: nothing of it has to survive a power cut, and names are as the original takes them.
fn open(workspace: &Path, state: PathBuf, reach: &Reach) -> Result<Opened, Problem> {
    let mut options = match reach {
        Reach::Workspace => Options::new(workspace.to_owned(), state),
        Reach::Machine => wire::whole_machine(workspace, state)?,
    };
    options.durability = Durability::Fast;
    options.names = NameProfile::Posix;
    wire::opened(options)
}

fn choose(dialect: &str, settings: &[String], workspace: &Path) -> Result<Dialects, Problem> {
    let place = Place { workspace: workspace.to_string_lossy().into_owned() };
    Dialects::choose(&[dialect.to_owned()], settings, &place)
        .map_err(|error| Problem::Usage(error.to_string()))
}

/// The settings among these that the dialect has.
fn known(dialects: &Dialects, wanted: impl Iterator<Item = (&'static str, String)>) -> Vec<String> {
    let has = |name: &str| {
        dialects.iter().any(|dialect| dialect.definition().options.iter().any(|option| option.name == name))
    };
    wanted.filter(|(name, _)| has(name)).map(|(name, value)| format!("{name}={value}")).collect()
}

/// A tool's name, and how the original was set for the call: `read_file(lines,max=10)`.
fn variant(tool: &str) -> (&str, Vec<String>) {
    let Some((name, inside)) = tool.strip_suffix(')').and_then(|tool| tool.split_once('(')) else {
        return (tool, Vec::new());
    };
    let setting = |word: &str| match word.split_once('=') {
        None => format!("read_mode={word}"),
        Some(("max", bytes)) => format!("read_bytes_max={bytes}"),
        Some((name, value)) => format!("{name}={value}"),
    };
    (name, inside.split(',').map(setting).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_the_original_was_set_is_read_from_the_name() {
        assert_eq!(variant("list_dir"), ("list_dir", vec![]));
        let settings = vec!["read_mode=lines".to_owned(), "read_bytes_max=10".to_owned()];
        assert_eq!(variant("read_file(lines,max=10)"), ("read_file", settings));
    }
}
