//! Opening and closing a workspace on this machine.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use disk::{Directory, ErrorKind, Root, RootOptions, StateDirectory, wall::WallReport};
use engine::{Failure, InForce, Kind, Profile};
use path::{Name, RelPath};

use crate::{
    checkpoint,
    clock::Clock,
    desk::Tallies,
    failure,
    group::Group,
    holding::Recount,
    index::Index,
    keeper::{Bell, Keeper},
    lives::Lives,
    locks::Locks,
    options::{Durability, Listening, Options, Wall},
    outside::Outside,
    recover::Recovery,
    rules::Rules,
    store::{Store, hold},
};

/// The database in the state directory.
const DATABASE: &str = "stead.db";
/// Directories remembered for sweeping.
const SUSPECTS_MAX: usize = 1_000;

/// An open workspace.
pub struct LocalWorkspace {
    pub(crate) root: Root,
    pub(crate) state: StateDirectory,
    pub(crate) trash_place: Directory,
    pub(crate) store: Store,
    pub(crate) group: Group,
    pub(crate) locks: Arc<Locks>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) durability: Durability,
    pub(crate) profile: Profile,
    /// The policy file and what it says.
    pub(crate) rules: Rules,
    pub(crate) kept_bytes_max: u64,
    /// Bytes taken into keeping since it was last looked whether they are too many.
    pub(crate) kept_lately: AtomicU64,
    /// Whether what the workspace holds must be counted again.
    pub(crate) recount: Mutex<Recount>,
    /// Where relative paths start.
    home: RelPath,
    /// Mount points inside that belong to the workspace.
    pub(crate) mounts: Vec<RelPath>,
    /// This opening, told apart from every other.
    pub(crate) process: String,
    /// Who of this process shows others that it lives.
    pub(crate) lives: Arc<Lives>,
    /// Entries that are true in the directory but not yet settled on the device.
    pub(crate) applied: Mutex<Vec<u64>>,
    /// Pending entries of other processes that were seen to be done.
    pub(crate) verified: Mutex<HashSet<u64>>,
    /// Entries of this process that could neither be finished nor taken back.
    pub(crate) stuck: Mutex<HashSet<u64>>,
    /// Directories in which half-made files were seen.
    pub(crate) suspects: Mutex<HashSet<RelPath>>,
    /// Where callers wait for the next entry.
    pub(crate) news: (Mutex<u64>, Condvar),
    pub(crate) index: Index,
    /// What was counted of sessions.
    pub(crate) tallies: Mutex<Tallies>,
    /// When the last change of anybody was looked up, and which it was.
    others: Mutex<(Option<Instant>, u64)>,
    pub(crate) outside: Outside,
    pub(crate) listening: Listening,
    bell: Arc<Bell>,
    keeper: Mutex<Option<Keeper>>,
    background_failures: AtomicU64,
    recovery: Recovery,
    wall: Option<WallReport>,
    /// Names of users, by their numbers. Read before the wall stands.
    pub(crate) users: HashMap<u32, String>,
}

impl LocalWorkspace {
    /// Opens a workspace, finishing first what a dead process left in it.
    pub fn open(options: Options) -> Result<Arc<Self>, Failure> {
        let state = StateDirectory::open(&options.state).map_err(|error| {
            Failure::new(Kind::AuditUnavailable, format!("the state directory cannot be used: {error}"))
        })?;
        let mut workspace = Self::assemble(&options, state)?;
        workspace.recovery = workspace.recover()?;
        if options.wall == Wall::Raise {
            // The policy is read again when it changes, so its directory stays readable.
            let policy = workspace.rules.parent();
            let beside: Vec<_> =
                options.beside.iter().map(PathBuf::as_path).chain([policy.as_path()]).collect();
            workspace.wall = Some(disk::wall::raise_beside(&[&options.workspace, &options.state], &beside));
        }
        if options.listening == Listening::AtOnce {
            workspace.distrust_count();
        }
        let workspace = Arc::new(workspace);
        let keeper = Keeper::start(Arc::downgrade(&workspace), Arc::clone(&workspace.bell));
        *hold(&workspace.keeper) = keeper;
        workspace.outside.belongs_to(&workspace);
        // Where nobody can listen, whoever asks for a watch is told; where nothing can be written, callers are.
        for prepared in [workspace.listen_if_watched(), workspace.note_clock()] {
            match prepared {
                Ok(()) => {}
                Err(_) => workspace.count_background_failure(),
            }
        }
        Ok(workspace)
    }

    fn assemble(options: &Options, state: StateDirectory) -> Result<Self, Failure> {
        let own = |error: disk::DiskError| failure::own(&error);
        let (root, trash_place) = open_root(options, &state)?;
        let fresh_id = random_name("ws-").map_err(own)?;
        let bell = state.lock_file().map_err(own)?;
        let store = Store::open(options.state.join(DATABASE), bell, &fresh_id)?;
        checkpoint::prepare_key(&store)?;
        let now_ns = i128::from(options.clock.now().wall_ms) * 1_000_000;
        let rules = Rules::open(options.policy.as_deref(), &options.state, root.absolute(), now_ns)?;
        let locks = Arc::new(Locks::new(state.lock_file().map_err(own)?));
        let process = random_name("p-").map_err(own)?;
        let lives = Lives::new(&process, &locks);
        let profile = Profile {
            id: store.origin.workspace_id().to_owned(),
            roots: root.spellings().to_vec(),
            names: options.names,
            own: own_places(options),
        };
        Ok(Self {
            root,
            state,
            trash_place,
            store,
            group: Group::default(),
            locks,
            clock: Arc::clone(&options.clock),
            durability: options.durability,
            profile,
            rules,
            kept_bytes_max: options.kept_bytes_max,
            kept_lately: AtomicU64::new(0),
            recount: Mutex::default(),
            home: options.home.clone(),
            mounts: options.mounts.clone(),
            process,
            lives,
            applied: Mutex::default(),
            verified: Mutex::default(),
            stuck: Mutex::default(),
            suspects: Mutex::default(),
            news: (Mutex::new(0), Condvar::new()),
            index: Index::new(options),
            tallies: Mutex::default(),
            others: Mutex::default(),
            outside: Outside::default(),
            listening: options.listening,
            bell: Arc::default(),
            keeper: Mutex::default(),
            background_failures: AtomicU64::new(0),
            recovery: Recovery::default(),
            wall: None,
            users: options.users.clone().unwrap_or_else(disk::users),
        })
    }

    /// What opening had to finish.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// What became of the second wall, when it was asked for.
    pub fn wall(&self) -> Option<&WallReport> {
        self.wall.as_ref()
    }

    /// Stops what happens by itself and brings everything to rest: noted entries are written, changes settled, the
    /// journal signed. The workspace can still be used. What fails here is finished by the next opening.
    pub fn close(&self) {
        self.index.stop();
        self.outside.stop();
        drop(hold(&self.keeper).take());
        for step in [Self::flush, Self::settle, Self::sign_checkpoint] {
            match step(self) {
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// How many calls that changed nothing are not in the journal yet. More than none after [`Self::close`] means that they
    /// could not be recorded.
    pub fn unrecorded(&self) -> usize {
        self.group.noted()
    }

    /// Writes every noted entry now.
    pub fn flush(&self) -> Result<(), Failure> {
        self.group.flush(&self.store, self.durability)
    }

    /// Writes noted entries before somebody reads the journal. Reading goes on when nothing can be written; the entries
    /// wait for a later try.
    pub(crate) fn flush_if_possible(&self) {
        match self.flush() {
            Ok(()) => {}
            Err(_) => self.count_background_failure(),
        }
    }

    /// The policy that holds now. One that sets a quota needs a workspace that can be counted.
    pub(crate) fn policy_now(&self) -> Result<InForce, Failure> {
        let in_force = self.rules.in_force(i128::from(self.clock.now().wall_ms) * 1_000_000)?;
        if in_force.policy.has_quota() && !self.home.is_root() {
            return Err(Failure::new(
                Kind::PolicyDenied,
                "nothing runs, because the policy sets a quota and this workspace is the whole machine",
            )
            .hint("ask the person you work for to leave the quota out, or to restrict the workspace"));
        }
        Ok(in_force)
    }

    /// Version of the policy in force; zero when it cannot be used.
    pub(crate) fn policy_version(&self) -> u64 {
        engine::Workspace::in_force(self).map_or(0, |in_force| in_force.policy.version())
    }

    /// Where the policy file is, whether it is there or not.
    pub fn policy_file(&self) -> &std::path::Path {
        self.rules.file()
    }

    /// The text of the policy file; nothing when there is none.
    pub fn policy_text(&self) -> Result<Option<String>, Failure> {
        self.rules.text()
    }

    /// Writes the policy file, all or nothing. A malformed text is refused.
    pub fn write_policy(&self, text: &str) -> Result<(), Failure> {
        self.rules.write(text)
    }

    /// Whether a change must be on the device before it is acknowledged.
    pub(crate) fn durable(&self) -> bool {
        self.durability == Durability::Full
    }

    /// An entry's steps are all done.
    pub(crate) fn applied(&self, number: u64) {
        hold(&self.applied).push(number);
    }

    /// Tells whoever waits that there is a new entry, and the keeper that there is work.
    pub(crate) fn announce(&self) {
        *hold(&self.news.0) += 1;
        self.news.1.notify_all();
        self.bell.ring();
    }

    /// Half-made files were seen in this directory.
    pub(crate) fn suspect(&self, path: &RelPath) {
        let mut suspects = hold(&self.suspects);
        if suspects.len() < SUSPECTS_MAX {
            suspects.insert(path.clone());
        }
    }

    pub(crate) fn ring_keeper(&self) {
        self.bell.ring();
    }

    pub(crate) fn count_background_failure(&self) {
        self.background_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Facts for people.
    pub(crate) fn facts(&self) -> HashMap<&'static str, String> {
        let wall = self.wall.as_ref().map_or_else(|| "not raised".to_owned(), |wall| format!("{wall:?}"));
        HashMap::from([
            ("workspace", self.profile.id.clone()),
            ("durability", format!("{:?}", self.durability).to_lowercase()),
            ("resolver", format!("{:?}", self.root.resolver()).to_lowercase()),
            ("wall", wall),
            ("index", self.index_facts().to_string()),
            ("background_failures", self.background_failures.load(Ordering::Relaxed).to_string()),
        ])
    }
}

impl Drop for LocalWorkspace {
    fn drop(&mut self) {
        self.close();
    }
}

/// Opens the root with the state directory hidden in it, and the place of the trash: in the state directory when that
/// is on the same mount, otherwise in a hidden directory of the workspace, because a thing goes to the trash by
/// one rename or not at all.
fn open_root(options: &Options, state: &StateDirectory) -> Result<(Root, Directory), Failure> {
    let open = |hidden| {
        let root_options = RootOptions { resolver: options.resolver, mounts: options.mounts.clone(), hidden };
        Root::open(&options.workspace, root_options).map_err(|error| {
            Failure::new(Kind::NotFound, format!("the workspace directory cannot be opened: {error}"))
        })
    };
    let own = |error: disk::DiskError| failure::own(&error);
    let root = open(vec![state.id()])?;
    let top = root.open_directory(&options.home).map_err(own)?;
    let beside = state.directory("trash").map_err(own)?;
    if top.shares_mount(&beside) {
        return Ok((root, beside));
    }
    let place = options.home.join(&Name::new(TRASH_INSIDE.as_bytes())?)?;
    let trash = match root.make_directories(&place, 0o700) {
        Ok((trash, _)) => trash,
        // Nothing is removed from where nobody can write, so no trash is needed there. Below a directory that is closed
        // there may be one that is not: what is removed from it cannot be kept, and that is refused then.
        Err(error) if matches!(error.kind, ErrorKind::ReadOnly | ErrorKind::Denied) => {
            return Ok((root, beside));
        }
        Err(error) => {
            let detail = format!("the trash cannot be made in the workspace: {error}");
            return Err(Failure::new(Kind::AuditUnavailable, detail)
                .hint("use a state directory on the same file system as the workspace"));
        }
    };
    let root = open(vec![state.id(), trash.id()])?;
    Ok((root, trash))
}

/// The trash of a workspace whose state directory is on another mount.
const TRASH_INSIDE: &str = ".stead~trash";

/// The state directory's place inside the workspace, when it was put there.
fn own_places(options: &Options) -> Vec<RelPath> {
    let inside = options.state.strip_prefix(&options.workspace).ok();
    let place = inside.and_then(|rest| rest.to_str()).and_then(|rest| RelPath::from_wire(rest).ok());
    place.into_iter().filter(|place| !place.is_root()).chain(options.own.iter().cloned()).collect()
}

pub(crate) fn random_name(prefix: &str) -> Result<String, disk::DiskError> {
    let bytes: [u8; 8] = disk::random_bytes()?;
    Ok(format!("{prefix}{:016x}", u64::from_be_bytes(bytes)))
}

/// How often a waiting caller looks for entries of other processes, when nobody listens for them.
const NEWS_POLL: Duration = Duration::from_millis(50);
/// The same when somebody does, in case a word was lost.
const NEWS_LISTENING: Duration = Duration::from_secs(60);

/// How often it is looked whether other processes changed something, when nobody listens.
const OTHERS_LOOK: Duration = Duration::from_secs(1);

impl LocalWorkspace {
    /// How often something was announced, in this process or by a look at what others wrote.
    pub(crate) fn count_news(&self) -> Result<u64, Failure> {
        if !self.outside.is_listening() {
            let mut others = hold(&self.others);
            if others.0.is_none_or(|looked| looked.elapsed() >= OTHERS_LOOK) {
                let last = self.store.look(crate::query::last_change)?;
                if others.1 != last {
                    self.hear();
                }
                *others = (Some(Instant::now()), last);
            }
        }
        Ok(*hold(&self.news.0))
    }

    /// Waits until the journal is longer, or the deadline passes.
    pub(crate) fn wait_for_news(&self, number: u64, deadline: Instant) -> Result<(), Failure> {
        loop {
            let heard = *hold(&self.news.0);
            self.flush_if_possible();
            let tip = self.store.look(|connection| crate::store::tip(connection, &self.store.origin))?;
            let left = deadline.saturating_duration_since(Instant::now());
            if tip.number > number || left.is_zero() {
                return Ok(());
            }
            let pause = if self.outside.is_listening() { NEWS_LISTENING } else { NEWS_POLL };
            let same = |news: &mut u64| *news == heard;
            let news = hold(&self.news.0);
            drop(self.news.1.wait_timeout_while(news, left.min(pause), same));
        }
    }
}
