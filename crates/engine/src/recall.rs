//! What every session last saw of each file: the version, and the text where it is not too large. A write that gives no
//! base can be merged against it, and a version that the journal never had can still be compared.
//!
//! In memory, for this engine alone, and bounded: what was seen longest ago is forgotten first. Holds nothing that its
//! session was not shown or did not write itself.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use path::RelPath;

use crate::{caller::Caller, limits, version::Version};

/// What was seen of one file.
#[derive(Debug, Clone)]
pub(crate) struct LastSeen {
    pub(crate) version: Version,
    /// Its bytes, where they are remembered.
    pub(crate) bytes: Option<Arc<[u8]>>,
    /// Whether it was text that an editor had not saved.
    pub(crate) unsaved: bool,
}

/// What a session is shown of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown<'b> {
    pub(crate) version: Version,
    /// The bytes, if it is the whole.
    pub(crate) bytes: Option<&'b [u8]>,
    /// Whether it is text that an editor has not saved.
    pub(crate) unsaved: bool,
}

impl LastSeen {
    fn size(&self) -> u64 {
        self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)
    }
}

/// What sessions saw.
#[derive(Default)]
pub(crate) struct Recall(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    seen: HashMap<Key, (u64, LastSeen)>,
    /// The keys by when they were seen.
    order: BTreeMap<u64, Key>,
    clock: u64,
    bytes: u64,
}

type Key = (String, RelPath);

fn key(caller: &Caller, path: &RelPath) -> Key {
    (format!("{}\n{}", caller.principal, caller.session), path.clone())
}

impl Recall {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session was shown this of a file.
    pub(crate) fn remember(&self, caller: &Caller, path: &RelPath, seen: Shown<'_>) {
        let Shown { version, bytes, unsaved } = seen;
        let bytes =
            bytes.filter(|bytes| bytes.len() as u64 <= limits::RECALLED_FILE_BYTES_MAX).map(Arc::from);
        let mut memory = self.memory();
        let key = key(caller, path);
        let known = memory.forget(&key).filter(|known| known.version == version);
        let seen = match known {
            Some(known) if bytes.is_none() => known,
            Some(_) | None => LastSeen { version, bytes, unsaved },
        };
        memory.insert(key, seen);
    }

    /// What a session last saw of a file.
    pub(crate) fn last(&self, caller: &Caller, path: &RelPath) -> Option<LastSeen> {
        self.memory().seen.get(&key(caller, path)).map(|(_, seen)| seen.clone())
    }
}

impl Memory {
    fn forget(&mut self, key: &Key) -> Option<LastSeen> {
        let (at, seen) = self.seen.remove(key)?;
        self.order.remove(&at);
        self.bytes -= seen.size();
        Some(seen)
    }

    fn insert(&mut self, key: Key, seen: LastSeen) {
        self.clock += 1;
        self.bytes += seen.size();
        self.order.insert(self.clock, key.clone());
        self.seen.insert(key, (self.clock, seen));
        while self.bytes > limits::RECALLED_BYTES_MAX || self.seen.len() > limits::RECALLED_FILES_MAX {
            let Some(oldest) = self.order.first_key_value().map(|(_, key)| key.clone()) else { return };
            self.forget(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Principal;

    fn shown<'b>(whole: &[u8], bytes: Option<&'b [u8]>) -> Shown<'b> {
        Shown { version: Version::of(whole), bytes, unsaved: false }
    }

    #[test]
    fn the_oldest_goes_first_and_versions_stay_without_bytes() {
        let recall = Recall::default();
        let caller = Caller::new(Principal::Agent("a".to_owned()), "s", "library");
        let path = |name: String| RelPath::from_wire(&name).unwrap();
        let large = vec![b'x'; usize::try_from(limits::RECALLED_FILE_BYTES_MAX).unwrap()];
        let count = limits::RECALLED_BYTES_MAX / limits::RECALLED_FILE_BYTES_MAX + 1;
        for number in 0..count {
            recall.remember(&caller, &path(format!("f{number}")), shown(&large, Some(&large)));
        }
        assert!(recall.last(&caller, &path("f0".to_owned())).is_none());
        let last = path(format!("f{}", count - 1));
        recall.remember(&caller, &last, shown(&large, None));
        assert!(recall.last(&caller, &last).unwrap().bytes.is_some(), "the same version keeps its bytes");
        recall.remember(&caller, &last, shown(b"y", None));
        assert!(recall.last(&caller, &last).unwrap().bytes.is_none());
        let other = Caller::new(Principal::Agent("a".to_owned()), "t", "library");
        assert!(recall.last(&other, &last).is_none(), "sessions do not share");
    }
}
