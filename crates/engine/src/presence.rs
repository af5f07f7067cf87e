//! How long a caller is there. What it only has open, and nothing that it changed, ends with it.
//!
//! Owns the life of a connection: a workspace keeps something with it, and that is let go when the connection ends. Never
//! decides what is kept.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::failure::{Failure, Kind};

/// How long a caller is there.
#[derive(Debug, Clone, Default)]
pub enum Presence {
    /// As long as this process: it is the only client, or the program itself.
    #[default]
    Process,
    /// As long as its connection, one of several of this process.
    Connection(Arc<Connection>),
    /// For this call and no longer: nobody would notice that it is gone.
    Call,
}

impl Presence {
    /// Over a connection that begins now.
    pub fn connected() -> Self {
        Self::Connection(Arc::default())
    }

    /// The client is gone. A connection has ended then, whoever still knows of it.
    pub fn end(&self) {
        match self {
            Presence::Connection(connection) => connection.end(),
            Presence::Process | Presence::Call => {}
        }
    }
}

/// What is dropped when a connection ends.
type Kept = Box<dyn Send>;

/// One connection of a process that has several.
pub struct Connection {
    number: u64,
    /// Nothing once it has ended.
    kept: Mutex<Option<HashMap<String, Kept>>>,
}

impl Default for Connection {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { number: NEXT.fetch_add(1, Ordering::Relaxed), kept: Mutex::new(Some(HashMap::new())) }
    }
}

impl Connection {
    /// Told apart from every other of this process.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Keeps something under a name until the connection ends. It is made only where there is none of that name yet.
    /// Refused when the connection has ended.
    pub fn keep(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<Box<dyn Send>, Failure>,
    ) -> Result<(), Failure> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(kept) = kept.as_mut() else {
            return Err(Failure::new(Kind::Cancelled, "the connection has ended"));
        };
        if !kept.contains_key(name) {
            kept.insert(name.to_owned(), make()?);
        }
        Ok(())
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn end(&self) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Outside the mutex: whatever is kept may take its time to go.
        drop(kept);
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("number", &self.number).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_made_once_and_goes_with_the_connection() {
        let presence = Presence::connected();
        let Presence::Connection(connection) = presence.clone() else { panic!("{presence:?}") };
        let life = Arc::new(());
        for name in ["a", "a", "b"] {
            connection.keep(name, || Ok(Box::new(Arc::clone(&life)))).unwrap();
        }
        assert_eq!((Arc::strong_count(&life), connection.has_ended()), (3, false));
        presence.end();
        assert_eq!((Arc::strong_count(&life), connection.has_ended()), (1, true));
        let late = connection.keep("c", || Ok(Box::new(Arc::clone(&life))));
        assert_eq!(late.unwrap_err().kind, Kind::Cancelled);
    }
}
