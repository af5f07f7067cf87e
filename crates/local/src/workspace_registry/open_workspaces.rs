//! The open workspaces of a registry. A workspace is opened for its first client, shared by all clients, and closed
//! after some time without use. The number of open workspaces is limited; the workspace that was unused for the longest
//! time is closed first.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use rusqlite::params;
use stead_disk::LockMode;
use stead_engine::{Engine, Error, ErrorKind, NextStep};

use super::{WorkspaceRegistry, WorkspaceRowLifecycleState, WorkspaceRowReconciliationStatus};
use crate::{open::LocalWorkspace, store::lock_ignoring_poison};

/// The registry itself holds this many references to an open workspace: one in the slot and one in the engine.
const INTERNAL_REFERENCES: usize = 2;

#[derive(Default)]
pub(super) struct OpenWorkspaces {
    pub(super) slots: Mutex<HashMap<String, Arc<OpenWorkspaceSlot>>>,
}

pub(super) struct OpenWorkspaceSlot {
    opened: Mutex<Option<OpenedWorkspace>>,
    last_used: Mutex<Instant>,
}

struct OpenedWorkspace {
    workspace: Arc<LocalWorkspace>,
    engine: Engine,
}

impl OpenWorkspaceSlot {
    fn is_unused(&self) -> bool {
        match self.opened.try_lock() {
            Ok(open) => open.as_ref().is_none_or(|open| Arc::strong_count(&open.workspace) <= INTERNAL_REFERENCES),
            Err(_) => false,
        }
    }

    fn idle_time(&self) -> Duration {
        lock_ignoring_poison(&self.last_used).elapsed()
    }
}

impl WorkspaceRegistry {
    /// Returns the engine of the workspace with this id, and opens the workspace if necessary.
    pub fn open_engine(&self, id: &str) -> Result<Engine, Error> {
        self.open_workspace_and_engine(id).map(|(_, engine)| engine)
    }

    pub(super) fn open_local_workspace(&self, id: &str) -> Result<Arc<LocalWorkspace>, Error> {
        self.open_workspace_and_engine(id).map(|(local, _)| local)
    }

    fn open_workspace_and_engine(&self, id: &str) -> Result<(Arc<LocalWorkspace>, Engine), Error> {
        loop {
            let slot = self.slot_for(id)?;
            *lock_ignoring_poison(&slot.last_used) = Instant::now();
            let mut open = lock_ignoring_poison(&slot.opened);
            if let Some(open) = &*open {
                return Ok((Arc::clone(&open.workspace), open.engine.clone()));
            }
            // If the slot was removed meanwhile, a workspace that is opened in the slot would never be closed.
            if !self.is_current_slot(id, &slot) {
                continue;
            }
            match self.open_from_disk(id) {
                Ok(local) => {
                    let engine = Engine::new(Arc::clone(&local) as Arc<dyn stead_engine::Workspace>)
                        .with_approval_mode(self.options.approval_mode);
                    *open = Some(OpenedWorkspace { workspace: Arc::clone(&local), engine: engine.clone() });
                    return Ok((local, engine));
                }
                Err(error) => {
                    drop(open);
                    let mut all = lock_ignoring_poison(&self.open_workspaces.slots);
                    // Another thread may have replaced the slot with a slot that is in use.
                    if all.get(id).is_some_and(|current| Arc::ptr_eq(current, &slot)) {
                        all.remove(id);
                    }
                    return Err(error);
                }
            }
        }
    }

    fn is_current_slot(&self, id: &str, slot: &Arc<OpenWorkspaceSlot>) -> bool {
        lock_ignoring_poison(&self.open_workspaces.slots).get(id).is_some_and(|current| Arc::ptr_eq(current, slot))
    }

    /// If too many workspaces are open, the workspace that was unused for the longest time is closed.
    fn slot_for(&self, id: &str) -> Result<Arc<OpenWorkspaceSlot>, Error> {
        let mut all = lock_ignoring_poison(&self.open_workspaces.slots);
        if let Some(slot) = all.get(id) {
            return Ok(Arc::clone(slot));
        }
        let mut closed = None;
        if all.len() >= self.options.open_workspaces_max {
            let unused = all.iter().filter(|(_, slot)| Arc::strong_count(slot) == 1 && slot.is_unused());
            let longest = unused.max_by_key(|(_, slot)| slot.idle_time()).map(|(id, _)| id.clone());
            match longest {
                Some(longest) => closed = all.remove(&longest).map(|slot| (longest, slot)),
                None => {
                    return Err(Error::new(ErrorKind::Busy, "too many workspaces are open and in use")
                        .with_next_step(NextStep::repeat().or_ask_person("raise --open-max")));
                }
            }
        }
        let slot = Arc::new(OpenWorkspaceSlot { opened: Mutex::default(), last_used: Mutex::new(Instant::now()) });
        all.insert(id.to_owned(), Arc::clone(&slot));
        drop(all);
        if let Some((id, slot)) = closed {
            self.close_slot(&id, &slot);
        }
        Ok(slot)
    }

    fn open_from_disk(&self, id: &str) -> Result<Arc<LocalWorkspace>, Error> {
        let gone = || {
            Error::new(ErrorKind::NotFound, "the workspace no longer exists")
                .with_next_step(NextStep::ask_person("restore or to create the workspace"))
        };
        let row =
            self.load_row(id)?.filter(|row| row.lifecycle == WorkspaceRowLifecycleState::Ready).ok_or_else(gone)?;
        if row.reconciliation == WorkspaceRowReconciliationStatus::Pending {
            self.reconcile_if_unlocked(id)?;
        }
        // While the lock is held, the workspace cannot be deleted. Without the lock, opening a deleted workspace would
        // create its directories again.
        let _shared = self.lock_workspace(id, LockMode::Shared)?;
        let settled = self.load_row(id)?.filter(|row| {
            row.lifecycle == WorkspaceRowLifecycleState::Ready
                && row.reconciliation == WorkspaceRowReconciliationStatus::Done
        });
        settled.ok_or_else(gone)?;
        LocalWorkspace::open(self.workspace_options(id))
    }

    /// Closes destroyed workspaces, and workspaces that were not used for some time; returns their number.
    pub fn close_idle_workspaces(&self) -> usize {
        // Only ids are collected, because references to the slots would count as use for other threads.
        let ids: Vec<String> = lock_ignoring_poison(&self.open_workspaces.slots).keys().cloned().collect();
        let mut closed = 0;
        for id in ids {
            let ready = self
                .load_row(&id)
                .map_or(true, |row| row.is_some_and(|row| row.lifecycle == WorkspaceRowLifecycleState::Ready));
            let mut all = lock_ignoring_poison(&self.open_workspaces.slots);
            let must_stay = |slot: &Arc<OpenWorkspaceSlot>| {
                let is_idle =
                    Arc::strong_count(slot) == 1 && slot.is_unused() && slot.idle_time() >= self.options.idle_timeout;
                ready && !is_idle
            };
            if all.get(&id).is_none_or(must_stay) {
                continue;
            }
            let slot = all.remove(&id);
            drop(all);
            if let Some(slot) = slot {
                closed += 1;
                self.close_slot(&id, &slot);
            }
        }
        closed
    }

    /// The number of open workspaces of the registry.
    pub fn open_count(&self) -> usize {
        lock_ignoring_poison(&self.open_workspaces.slots).len()
    }

    /// Closes the registry and every workspace, even those in use, and writes deferred entries. A process must close
    /// the registry before it ends. A workspace that is still being opened is not closed, because no call has used the
    /// workspace yet.
    pub fn close_all(&self) {
        let slots: Vec<Arc<OpenWorkspaceSlot>> =
            lock_ignoring_poison(&self.open_workspaces.slots).drain().map(|(_, slot)| slot).collect();
        for slot in slots {
            let open = slot.opened.try_lock().ok().and_then(|mut open| open.take());
            if let Some(open) = open {
                open.workspace.close();
            }
        }
        self.registry_workspace.close();
    }

    /// After a destroyed workspace is closed, the calls of its users fail.
    pub(super) fn close_destroyed(&self, id: &str) {
        let slot = lock_ignoring_poison(&self.open_workspaces.slots).remove(id);
        if let Some(slot) = slot {
            self.close_slot(id, &slot);
        }
    }

    fn close_slot(&self, id: &str, slot: &OpenWorkspaceSlot) {
        let Some(open) = lock_ignoring_poison(&slot.opened).take() else { return };
        open.workspace.close();
        let (id, used_ms) = (id.to_owned(), self.now_ms());
        // A failure is ignored, because the time of the last use is only shown to people.
        self.update_without_entry(move |transaction| {
            transaction.execute("UPDATE workspaces SET used_ms = ?2 WHERE id = ?1", params![id, used_ms])?;
            Ok(Ok(()))
        })
        .unwrap_or_default();
    }
}
