//! Liveness of processes and connections. Each open workspace, and each connection with open buffers, holds a lock under
//! the name stored in its rows.
//!
//! The kernel frees the locks of a dead process, and a closing connection frees its own, so no cleanup is needed to tell
//! that an owner is gone. Never writes to the store.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, Weak},
};

use stead_engine::{BufferOpenState, CallerLifetime, Error};

use crate::{path_locks::PathLocks, store::lock_ignoring_poison};

/// Separates the process name from the connection number. Process names never contain it.
const CONNECTION_SEPARATOR: char = '.';

/// The live owners of this process.
pub(crate) struct LivenessRegistry {
    process_id: String,
    locks: Arc<PathLocks>,
    registered: Mutex<HashSet<String>>,
}

/// A registered connection; dropping it releases the lock.
struct ConnectionLiveness {
    registry: Weak<LivenessRegistry>,
    name: String,
}

impl LivenessRegistry {
    pub(crate) fn new(process: &str, locks: &Arc<PathLocks>) -> Arc<Self> {
        Arc::new(Self { process_id: process.to_owned(), locks: Arc::clone(locks), registered: Mutex::default() })
    }

    /// Registers a caller for its lifetime and returns its name.
    pub(crate) fn register(self: &Arc<Self>, presence: &CallerLifetime) -> Result<String, Error> {
        match presence {
            CallerLifetime::Process | CallerLifetime::SingleCall => {
                self.hold_lock(&self.process_id)?;
                Ok(self.process_id.clone())
            }
            CallerLifetime::Connection(connection) => {
                let name = format!("{}{CONNECTION_SEPARATOR}{}", self.process_id, connection.number());
                connection.attach_resource(&name, || {
                    self.hold_lock(&name)?;
                    Ok(Box::new(ConnectionLiveness { registry: Arc::downgrade(self), name: name.clone() }))
                })?;
                Ok(name)
            }
        }
    }

    /// The liveness of the owner with this name.
    pub(crate) fn liveness_of(&self, name: &str) -> Result<BufferOpenState, Error> {
        // A process cannot test its own locks: the kernel would grant them and the release would drop them.
        let process = name.split_once(CONNECTION_SEPARATOR).map_or(name, |(process, _)| process);
        if process == self.process_id {
            let registry = name == process || lock_ignoring_poison(&self.registered).contains(name);
            return Ok(if registry { BufferOpenState::OpenHere } else { BufferOpenState::Draft });
        }
        Ok(if self.locks.is_alive(name)? { BufferOpenState::OpenInOtherProcess } else { BufferOpenState::Draft })
    }

    fn hold_lock(&self, name: &str) -> Result<(), Error> {
        let mut registered = lock_ignoring_poison(&self.registered);
        if !registered.contains(name) {
            self.locks.hold_liveness(name)?;
            registered.insert(name.to_owned());
        }
        Ok(())
    }
}

impl Drop for ConnectionLiveness {
    fn drop(&mut self) {
        // A closed workspace has released its locks.
        let Some(registry) = self.registry.upgrade() else { return };
        lock_ignoring_poison(&registry.registered).remove(&self.name);
        registry.locks.release_liveness(&self.name);
    }
}
