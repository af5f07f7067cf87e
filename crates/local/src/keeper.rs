//! What happens by itself: noted entries are written, the journal is signed, changes are settled on the device, the
//! trash is emptied, kept bytes are pruned. One thread for each open workspace; it never stands in a caller's way.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError, Weak},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rusqlite::params;

use crate::{
    failure,
    open::LocalWorkspace,
    store::{Sync, hold, sql},
};

/// Longest time a noted entry waits in memory.
const FLUSH_EVERY: Duration = Duration::from_millis(200);
/// Longest time the journal goes unsigned.
const SIGN_EVERY: Duration = Duration::from_secs(1);
/// Longest time applied changes stay unsettled.
const SETTLE_EVERY: Duration = Duration::from_secs(5);
/// How often the trash and the kept bytes are looked through.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Noted entries after which a caller writes them itself.
pub(crate) const NOTES_MAX: u64 = 512;
/// A half-made file older than this belongs to nobody any more.
const LITTER_AGE: Duration = Duration::from_secs(600);

/// Wakes the keeper.
#[derive(Default)]
pub(crate) struct Bell {
    state: Mutex<Ring>,
    rung: Condvar,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Ring {
    /// Nothing to do; the keeper sleeps.
    #[default]
    Quiet,
    /// There is work; the keeper lets a little more gather. Further rings cost nothing.
    Gathering,
    /// The workspace closes.
    Stop,
}

impl Bell {
    /// There is something to do.
    pub(crate) fn ring(&self) {
        let mut state = hold(&self.state);
        if *state == Ring::Quiet {
            *state = Ring::Gathering;
            self.rung.notify_one();
        }
    }

    fn stop(&self) {
        *hold(&self.state) = Ring::Stop;
        self.rung.notify_one();
    }

    /// Sleeps until there is something to do and a little more has gathered; says whether to go on.
    fn wait(&self) -> bool {
        let state = hold(&self.state);
        let quiet = |state: &mut Ring| *state == Ring::Quiet;
        let (state, _) =
            self.rung.wait_timeout_while(state, SWEEP_EVERY, quiet).unwrap_or_else(PoisonError::into_inner);
        let gathering = |state: &mut Ring| *state == Ring::Gathering;
        let (mut state, _) = self
            .rung
            .wait_timeout_while(state, FLUSH_EVERY, gathering)
            .unwrap_or_else(PoisonError::into_inner);
        if *state == Ring::Stop {
            return false;
        }
        *state = Ring::Quiet;
        true
    }
}

/// The running thread; stops it when dropped.
pub(crate) struct Keeper {
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(crate) fn start(workspace: Weak<LocalWorkspace>, bell: Arc<Bell>) -> Option<Self> {
        let heard = Arc::clone(&bell);
        let thread =
            std::thread::Builder::new().name("keeper".to_owned()).spawn(move || run(&workspace, &heard)).ok();
        thread.map(|thread| Self { bell, thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.bell.stop();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A keeper that panicked has nothing to say here; what it left is done at the next opening.
            match thread.join() {
                Ok(()) | Err(_) => {}
            }
        }
    }
}

fn run(workspace: &Weak<LocalWorkspace>, bell: &Bell) {
    let start = Instant::now();
    let (mut signed, mut swept) = (start, start);
    // What was found at opening is settled with the first work, so that nobody looks at it again.
    let mut settled: Option<Instant> = None;
    while bell.wait() {
        let Some(workspace) = workspace.upgrade() else { return };
        let now = Instant::now();
        // Whatever fails here is tried again at the next round; callers learn of a broken store by their own calls.
        let mut failed = workspace.flush().is_err();
        if now - signed >= SIGN_EVERY {
            failed |= workspace.sign_checkpoint().is_err();
            signed = now;
        } else {
            bell.ring();
        }
        if settled.is_none_or(|settled| now - settled >= SETTLE_EVERY) {
            failed |= workspace.recover().is_err() | workspace.settle().is_err();
            settled = Some(now);
        }
        if now - swept >= SWEEP_EVERY {
            failed |= workspace.empty_expired().is_err() | workspace.prune().is_err();
            workspace.sweep_litter(LITTER_AGE);
            swept = now;
        }
        if failed {
            workspace.count_background_failure();
        }
    }
}

impl LocalWorkspace {
    /// Marks applied entries as settled, once the device has them.
    pub(crate) fn settle(&self) -> Result<(), engine::Failure> {
        let applied = std::mem::take(&mut *hold(&self.applied));
        if applied.is_empty() {
            return Ok(());
        }
        let settled = self.sync_tree().and_then(|()| {
            self.store.transact(Sync::Later, self.durability, |transaction| {
                let mut delete = transaction
                    .prepare_cached("DELETE FROM pending WHERE number = ?1")
                    .map_err(|error| failure::store(&error))?;
                for number in &applied {
                    delete.execute(params![sql(*number)]).map_err(|error| failure::store(&error))?;
                }
                Ok(())
            })
        });
        if settled.is_err() {
            hold(&self.applied).extend(applied);
        } else {
            let mut verified = hold(&self.verified);
            for number in &applied {
                verified.remove(number);
            }
        }
        settled
    }

    /// Brings everything in the directory to the device.
    pub(crate) fn sync_tree(&self) -> Result<(), engine::Failure> {
        self.root.sync_file_system().map_err(|error| {
            // A failed sync is final: a second one may succeed although the bytes are lost.
            self.store.condemn();
            failure::own(&error)
        })
    }

    /// Removes half-made files that a dead process left where somebody has lately looked, once they are this old.
    pub fn sweep_litter(&self, age: Duration) {
        let suspects: Vec<path::RelPath> = hold(&self.suspects).drain().collect();
        let now_ns = i128::from(self.clock.now().wall_ms) * 1_000_000;
        let age_ns = i128::try_from(age.as_nanos()).unwrap_or(i128::MAX);
        for place in suspects {
            let Ok(directory) = self.root.open_directory(&place) else { continue };
            let Ok(names) = directory.list() else { continue };
            for listed in names
                .iter()
                .filter(|listed| listed.name.as_bytes().starts_with(path::TEMPORARY_PREFIX.as_bytes()))
            {
                let old = matches!(directory.stat(&listed.name), Ok(Some(stat))
                    if stat.file_type == disk::FileType::File && now_ns - stat.modified_ns >= age_ns);
                if old && !self.is_staged(&listed.name) {
                    match directory.remove_file(&listed.name) {
                        Ok(()) | Err(_) => {}
                    }
                }
            }
        }
    }

    /// Whether a pending step still needs this staged file.
    fn is_staged(&self, name: &path::Name) -> bool {
        let pattern = format!("%\"name\":\"{name}\"%");
        self.store
            .look(|connection| {
                connection
                    .prepare_cached("SELECT 1 FROM pending WHERE intent LIKE ?1")?
                    .exists(params![pattern])
            })
            .unwrap_or(true)
    }
}
