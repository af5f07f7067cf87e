//! The workspaces that are open: opened when somebody first comes, shared by everybody who is there, and closed when nobody
//! was there for a while. How many are open at a time is bounded; the one that was left longest goes first.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use disk::Mode;
use engine::{Engine, Failure, Kind};
use rusqlite::params;

use super::{Estate, Settled, Stage};
use crate::{open::LocalWorkspace, store::hold};

/// Whoever has the workspace besides its users: the room itself and its engine.
const OWN_HANDLES: usize = 2;

/// Everything that is open or just being opened.
#[derive(Default)]
pub(super) struct Rooms {
    pub(super) all: Mutex<HashMap<String, Arc<Room>>>,
}

/// One workspace.
pub(super) struct Room {
    open: Mutex<Option<Open>>,
    used: Mutex<Instant>,
}

struct Open {
    local: Arc<LocalWorkspace>,
    engine: Engine,
}

impl Room {
    /// Whether nobody has the workspace, and nobody opens it.
    fn is_empty(&self) -> bool {
        match self.open.try_lock() {
            Ok(open) => open.as_ref().is_none_or(|open| Arc::strong_count(&open.local) <= OWN_HANDLES),
            Err(_) => false,
        }
    }

    fn left_for(&self) -> Duration {
        hold(&self.used).elapsed()
    }
}

impl Estate {
    /// The workspace with this id, opened if it is not.
    pub fn enter(&self, id: &str) -> Result<Engine, Failure> {
        self.entered(id).map(|(_, engine)| engine)
    }

    /// The same with what only a local workspace can do.
    pub(super) fn enter_local(&self, id: &str) -> Result<Arc<LocalWorkspace>, Failure> {
        self.entered(id).map(|(local, _)| local)
    }

    fn entered(&self, id: &str) -> Result<(Arc<LocalWorkspace>, Engine), Failure> {
        loop {
            let room = self.room(id)?;
            *hold(&room.used) = Instant::now();
            let mut open = hold(&room.open);
            if let Some(open) = &*open {
                return Ok((Arc::clone(&open.local), open.engine.clone()));
            }
            // One that was given up while this one waited is nobody's: what is opened there would never be closed.
            if !self.is_kept(id, &room) {
                continue;
            }
            match self.open_workspace(id) {
                Ok(local) => {
                    let engine = Engine::new(Arc::clone(&local) as Arc<dyn engine::Workspace>)
                        .asking(self.options.asking);
                    *open = Some(Open { local: Arc::clone(&local), engine: engine.clone() });
                    return Ok((local, engine));
                }
                Err(failure) => {
                    drop(open);
                    let mut all = hold(&self.rooms.all);
                    // Another may have been made by now, and somebody be in it.
                    if all.get(id).is_some_and(|kept| Arc::ptr_eq(kept, &room)) {
                        all.remove(id);
                    }
                    return Err(failure);
                }
            }
        }
    }

    /// Whether this is still the room of the workspace.
    fn is_kept(&self, id: &str, room: &Arc<Room>) -> bool {
        hold(&self.rooms.all).get(id).is_some_and(|kept| Arc::ptr_eq(kept, room))
    }

    /// The room of a workspace, made if there is none. When there are too many, the one that was left longest is closed.
    fn room(&self, id: &str) -> Result<Arc<Room>, Failure> {
        let mut all = hold(&self.rooms.all);
        if let Some(room) = all.get(id) {
            return Ok(Arc::clone(room));
        }
        let mut closed = None;
        if all.len() >= self.options.open_max {
            let empty = all.iter().filter(|(_, room)| Arc::strong_count(room) == 1 && room.is_empty());
            let longest = empty.max_by_key(|(_, room)| room.left_for()).map(|(id, _)| id.clone());
            match longest {
                Some(longest) => closed = all.remove(&longest).map(|room| (longest, room)),
                None => {
                    return Err(Failure::new(Kind::Busy, "as many workspaces are open as may be")
                        .hint("call again a little later"));
                }
            }
        }
        let room = Arc::new(Room { open: Mutex::default(), used: Mutex::new(Instant::now()) });
        all.insert(id.to_owned(), Arc::clone(&room));
        drop(all);
        if let Some((id, room)) = closed {
            self.close_room(&id, &room);
        }
        Ok(room)
    }

    fn open_workspace(&self, id: &str) -> Result<Arc<LocalWorkspace>, Failure> {
        let gone = || Failure::new(Kind::NotFound, "the workspace is not there any more");
        let row = self.row(id)?.filter(|row| row.stage == Stage::Ready).ok_or_else(gone)?;
        if row.settled == Settled::No {
            self.settle_if_left(id)?;
        }
        // Nobody ends it between the look and the opening, which would make missing directories again.
        let _shared = self.hold(id, Mode::Shared)?;
        let settled = self.row(id)?.filter(|row| row.stage == Stage::Ready && row.settled == Settled::Yes);
        settled.ok_or_else(gone)?;
        LocalWorkspace::open(self.options_of(id))
    }

    /// Closes what nobody has used for a while, and what was ended elsewhere. What somebody uses stays.
    pub fn close_idle(&self) -> usize {
        // Only ids: whoever makes room must not find every room in somebody's hands meanwhile.
        let ids: Vec<String> = hold(&self.rooms.all).keys().cloned().collect();
        let mut closed = 0;
        for id in ids {
            let ready = self.row(&id).map_or(true, |row| row.is_some_and(|row| row.stage == Stage::Ready));
            let mut all = hold(&self.rooms.all);
            let is_kept = |room: &Arc<Room>| {
                let unused =
                    Arc::strong_count(room) == 1 && room.is_empty() && room.left_for() >= self.options.idle;
                ready && !unused
            };
            if all.get(&id).is_none_or(is_kept) {
                continue;
            }
            let room = all.remove(&id);
            drop(all);
            if let Some(room) = room {
                closed += 1;
                self.close_room(&id, &room);
            }
        }
        closed
    }

    /// How many are open.
    pub fn open_count(&self) -> usize {
        hold(&self.rooms.all).len()
    }

    /// Brings every workspace and the estate itself to rest, whoever still has one: what was noted is written. Call it before
    /// the process ends. What is just being opened is left alone: nothing was done there yet.
    pub fn close(&self) {
        let rooms: Vec<Arc<Room>> = hold(&self.rooms.all).drain().map(|(_, room)| room).collect();
        for room in rooms {
            let open = room.open.try_lock().ok().and_then(|mut open| open.take());
            if let Some(open) = open {
                open.local.close();
            }
        }
        self.own.close();
    }

    /// Closes a workspace that was ended; whoever still has it hears failures.
    pub(super) fn leave(&self, id: &str) {
        let room = hold(&self.rooms.all).remove(id);
        if let Some(room) = room {
            self.close_room(id, &room);
        }
    }

    fn close_room(&self, id: &str, room: &Room) {
        let Some(open) = hold(&room.open).take() else { return };
        open.local.close();
        let (id, used_ms) = (id.to_owned(), self.now_ms());
        // When it was last used is good to know, and no reason to fail.
        self.note(move |transaction| {
            transaction.execute("UPDATE workspaces SET used_ms = ?2 WHERE id = ?1", params![id, used_ms])?;
            Ok(Ok(()))
        })
        .unwrap_or_default();
    }
}
