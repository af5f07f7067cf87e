//! A cache of the file versions that each session last saw, with the text of small files. A write without a base
//! version uses the cached version as the base of a merge. The cache of seen files is bounded and evicts the least
//! recently used file first. For each session, the cache contains only files that the session read or wrote.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use stead_path::RelPath;

use crate::{caller::Caller, limits, version::Version};

#[derive(Debug, Clone)]
pub(crate) struct LastSeenFile {
    pub(crate) version: Version,
    pub(crate) bytes: Option<Arc<[u8]>>,
    pub(crate) unsaved: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ShownFile<'b> {
    pub(crate) version: Version,
    /// The content of the whole file; `None` if the session sees only a part of the file.
    pub(crate) bytes: Option<&'b [u8]>,
    pub(crate) unsaved: bool,
}

impl LastSeenFile {
    fn size(&self) -> u64 {
        self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)
    }
}

#[derive(Default)]
pub(crate) struct SeenFileCache(Mutex<SeenFileLru>);

#[derive(Default)]
struct SeenFileLru {
    files: HashMap<SeenFileKey, (u64, LastSeenFile)>,
    keys_by_use: BTreeMap<u64, SeenFileKey>,
    next_use: u64,
    bytes: u64,
}

type SeenFileKey = (String, RelPath);

fn key(caller: &Caller, path: &RelPath) -> SeenFileKey {
    (format!("{}\n{}", caller.principal, caller.session), path.clone())
}

impl SeenFileCache {
    fn lock_cache(&self) -> MutexGuard<'_, SeenFileLru> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn remember(&self, caller: &Caller, path: &RelPath, shown: ShownFile<'_>) {
        let ShownFile { version, bytes, unsaved } = shown;
        let bytes = bytes.filter(|bytes| bytes.len() as u64 <= limits::SEEN_FILE_BYTES_MAX).map(Arc::from);
        let mut cache = self.lock_cache();
        let key = key(caller, path);
        let known = cache.forget(&key).filter(|known| known.version == version);
        let seen = match known {
            Some(known) if bytes.is_none() => known,
            Some(_) | None => LastSeenFile { version, bytes, unsaved },
        };
        cache.insert(key, seen);
    }

    pub(crate) fn last_seen(&self, caller: &Caller, path: &RelPath) -> Option<LastSeenFile> {
        self.lock_cache().files.get(&key(caller, path)).map(|(_, seen)| seen.clone())
    }
}

impl SeenFileLru {
    fn forget(&mut self, key: &SeenFileKey) -> Option<LastSeenFile> {
        let (at, seen) = self.files.remove(key)?;
        self.keys_by_use.remove(&at);
        self.bytes -= seen.size();
        Some(seen)
    }

    fn insert(&mut self, key: SeenFileKey, seen: LastSeenFile) {
        self.next_use += 1;
        self.bytes += seen.size();
        self.keys_by_use.insert(self.next_use, key.clone());
        self.files.insert(key, (self.next_use, seen));
        while self.bytes > limits::SEEN_FILES_BYTES_MAX || self.files.len() > limits::SEEN_FILES_MAX {
            let Some(oldest) = self.keys_by_use.first_key_value().map(|(_, key)| key.clone()) else { return };
            self.forget(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Principal;

    fn shown_file<'b>(whole: &[u8], bytes: Option<&'b [u8]>) -> ShownFile<'b> {
        ShownFile { version: Version::hash_bytes(whole), bytes, unsaved: false }
    }

    #[test]
    fn least_recently_used_file_is_evicted() {
        let cache = SeenFileCache::default();
        let caller = Caller::new(Principal::Agent("a".to_owned()), "s", "library");
        let path = |name: String| RelPath::from_wire(&name).unwrap();
        let large = vec![b'x'; usize::try_from(limits::SEEN_FILE_BYTES_MAX).unwrap()];
        let count = limits::SEEN_FILES_BYTES_MAX / limits::SEEN_FILE_BYTES_MAX + 1;
        for number in 0..count {
            cache.remember(&caller, &path(format!("f{number}")), shown_file(&large, Some(&large)));
        }
        assert!(cache.last_seen(&caller, &path("f0".to_owned())).is_none());
        let last = path(format!("f{}", count - 1));
        cache.remember(&caller, &last, shown_file(&large, None));
        assert!(cache.last_seen(&caller, &last).unwrap().bytes.is_some(), "the same version keeps its bytes");
        cache.remember(&caller, &last, shown_file(b"y", None));
        assert!(cache.last_seen(&caller, &last).unwrap().bytes.is_none());
        let other = Caller::new(Principal::Agent("a".to_owned()), "t", "library");
        assert!(cache.last_seen(&other, &last).is_none(), "sessions do not share");
    }
}
