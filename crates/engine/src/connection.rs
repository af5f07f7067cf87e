//! The lifetime of a caller. Open resources, such as buffers, end with it; changes do not.
//!
//! Owns the end of a connection: a workspace attaches resources, and they are dropped when the connection ends.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::errors::{Error, ErrorKind};

/// How long a caller exists.
#[derive(Debug, Clone, Default)]
pub enum CallerLifetime {
    /// As long as the process: the only client, or the program itself.
    #[default]
    Process,
    /// As long as one of several connections of the process.
    Connection(Arc<ClientConnection>),
    /// For one call; there is no connection whose end could be noticed.
    SingleCall,
}

impl CallerLifetime {
    /// The lifetime of a new connection.
    pub fn connected() -> Self {
        Self::Connection(Arc::default())
    }

    /// Ends the connection, even if other references to it exist.
    pub fn end(&self) {
        match self {
            CallerLifetime::Connection(connection) => connection.end(),
            CallerLifetime::Process | CallerLifetime::SingleCall => {}
        }
    }
}

/// A value dropped when a connection ends.
type ConnectionResource = Box<dyn Send>;

/// One connection of a process that has several.
pub struct ClientConnection {
    number: u64,
    /// `None` once the connection has ended.
    resources: Mutex<Option<HashMap<String, ConnectionResource>>>,
}

impl Default for ClientConnection {
    fn default() -> Self {
        static NEXT_CONNECTION_NUMBER: AtomicU64 = AtomicU64::new(1);
        Self {
            number: NEXT_CONNECTION_NUMBER.fetch_add(1, Ordering::Relaxed),
            resources: Mutex::new(Some(HashMap::new())),
        }
    }
}

impl ClientConnection {
    /// A number unique within this process.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Attaches a resource under a name until the connection ends, unless the name is taken. Fails if the connection
    /// has ended.
    pub fn attach_resource(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<Box<dyn Send>, Error>,
    ) -> Result<(), Error> {
        let mut resources = self.resources.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(resources) = resources.as_mut() else {
            return Err(Error::new(ErrorKind::Cancelled, "the connection has ended"));
        };
        if !resources.contains_key(name) {
            resources.insert(name.to_owned(), make()?);
        }
        Ok(())
    }

    /// Whether the connection has ended.
    pub fn has_ended(&self) -> bool {
        self.resources.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn end(&self) {
        let resources = self.resources.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Dropped outside the mutex, because dropping may take time.
        drop(resources);
    }
}

impl fmt::Debug for ClientConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("number", &self.number).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_created_once_and_dropped_with_connection() {
        let lifetime = CallerLifetime::connected();
        let CallerLifetime::Connection(connection) = lifetime.clone() else { panic!("{lifetime:?}") };
        let resource = Arc::new(());
        for name in ["a", "a", "b"] {
            connection.attach_resource(name, || Ok(Box::new(Arc::clone(&resource)))).unwrap();
        }
        assert_eq!((Arc::strong_count(&resource), connection.has_ended()), (3, false));
        lifetime.end();
        assert_eq!((Arc::strong_count(&resource), connection.has_ended()), (1, true));
        let late = connection.attach_resource("c", || Ok(Box::new(Arc::clone(&resource))));
        assert_eq!(late.unwrap_err().kind, ErrorKind::Cancelled);
    }
}
