//! Who is there: this opening of the workspace, and each connection to it that has something open. Each shows by a lock
//! that it lives, under a name that rows of the store bear.
//!
//! The kernel frees the locks of a process that dies, and the end of a connection frees its own, so that nobody has to
//! notice either for what it had open to be left behind. Never writes to the store.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, Weak},
};

use engine::{Failure, Presence, Standing};

use crate::{locks::Locks, store::hold};

/// Between the name of a process and the number of its connection. No name of a process holds it.
const OF_CONNECTION: char = '.';

/// Everybody of this process who shows that it lives.
pub(crate) struct Lives {
    process: String,
    locks: Arc<Locks>,
    shown: Mutex<HashSet<String>>,
}

/// A connection that is there, until this is dropped.
struct Life {
    lives: Weak<Lives>,
    name: String,
}

impl Lives {
    pub(crate) fn new(process: &str, locks: &Arc<Locks>) -> Arc<Self> {
        Arc::new(Self { process: process.to_owned(), locks: Arc::clone(locks), shown: Mutex::default() })
    }

    /// Shows that a caller is there for as long as it is, and tells its name.
    pub(crate) fn show(self: &Arc<Self>, presence: &Presence) -> Result<String, Failure> {
        match presence {
            Presence::Process | Presence::Call => {
                self.begin(&self.process)?;
                Ok(self.process.clone())
            }
            Presence::Connection(connection) => {
                let name = format!("{}{OF_CONNECTION}{}", self.process, connection.number());
                connection.keep(&name, || {
                    self.begin(&name)?;
                    Ok(Box::new(Life { lives: Arc::downgrade(self), name: name.clone() }))
                })?;
                Ok(name)
            }
        }
    }

    /// How whoever bears this name stands to this process.
    pub(crate) fn standing(&self, name: &str) -> Result<Standing, Failure> {
        // What this process holds it cannot try: the kernel would let it have its own locks, and then take them.
        let process = name.split_once(OF_CONNECTION).map_or(name, |(process, _)| process);
        if process == self.process {
            let lives = name == process || hold(&self.shown).contains(name);
            return Ok(if lives { Standing::Here } else { Standing::Draft });
        }
        Ok(if self.locks.is_alive(name)? { Standing::Elsewhere } else { Standing::Draft })
    }

    fn begin(&self, name: &str) -> Result<(), Failure> {
        let mut shown = hold(&self.shown);
        if !shown.contains(name) {
            self.locks.live(name)?;
            shown.insert(name.to_owned());
        }
        Ok(())
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        // A workspace that was closed has given back its locks.
        let Some(lives) = self.lives.upgrade() else { return };
        hold(&lives.shown).remove(&self.name);
        lives.locks.die(&self.name);
    }
}
