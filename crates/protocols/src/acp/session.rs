//! An ACP session: its roots, its callers, its turns, and for each file the content that the agent has last seen. A
//! path inside several session roots belongs to the innermost root. A path outside the session roots reaches no engine.
//! The memory for seen texts is limited, and the oldest texts are evicted first.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
};

use stead_engine::{Caller, Engine};
use stead_path::{PathKindImpliedBySpelling, RelPath};
use tokio::sync;

use super::{AcpConnectionCallers, editor_writes::SessionEditorWriteHistory, setup::McpServerTicketEnvVar};
use crate::{
    call_executor::{CallExecutor, CallRequest, OtherRequestsPending},
    dialect::acp,
    limits::{REQUESTS_PENDING_MAX, SESSION_SEEN_BYTES_MAX, SESSION_SEEN_FILES_MAX, TURN_MARK_TIMEOUT},
};

/// An opened root of an ACP session.
pub struct OpenedAcpSessionRoot {
    pub engine: Engine,
    /// The absolute paths of the session root: the requested path, and the path with symbolic links resolved.
    pub root_paths: Vec<String>,
    /// The only accessible file, if the session root is a single file. If a session root is a single file, the proxy
    /// opens its parent directory but allows no other file.
    pub single_file: Option<AcpSingleFileRoot>,
}

/// The only accessible file of a session root that is not a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcpSingleFileRoot {
    /// The requested path of the single file, relative to its opened parent directory.
    pub requested: RelPath,
    /// The path of the single file with symbolic links resolved.
    pub resolved: RelPath,
}

pub(super) struct AcpSessionRootWithCallers {
    pub(super) executor: CallExecutor,
    pub(super) agent: Caller,
    pub(super) person: Caller,
    root_paths: Vec<String>,
    single_file: Option<AcpSingleFileRoot>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AcpResolvedPath {
    pub(super) root_index: usize,
    pub(super) path: RelPath,
    pub(super) engine_path: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum LastSeenContent {
    Missing,
    /// The agent has not seen changes of other callers that the engine merged into the agent's write.
    Text(Arc<str>),
}

impl LastSeenContent {
    fn byte_len(&self) -> usize {
        match self {
            LastSeenContent::Missing => 0,
            LastSeenContent::Text(text) => text.len(),
        }
    }
}

pub(super) struct AcpSession {
    pub(super) id: String,
    roots: Vec<AcpSessionRootWithCallers>,
    seen_files: Mutex<AcpSessionSeenFileContents>,
    editor_writes: Mutex<SessionEditorWriteHistory>,
    rejected_paths: Mutex<HashSet<AcpResolvedPath>>,
    write_locks: Mutex<HashMap<AcpResolvedPath, Arc<sync::Mutex<()>>>>,
    cancel_count: sync::watch::Sender<u64>,
    /// The number of turn marks that the session is writing to the journal. A turn mark is the journal entry at which a
    /// prompt starts.
    open_turn_marks: sync::watch::Sender<usize>,
    pub(super) mcp_server: Option<AcpProxyAddedMcpServer>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AcpProxyAddedMcpServer {
    pub(super) directory: String,
    pub(super) ticket: McpServerTicketEnvVar,
}

/// The session's writes wait until every turn mark guard is dropped.
pub(super) struct TurnMarkRecordingGuard(sync::watch::Sender<usize>);

impl Drop for TurnMarkRecordingGuard {
    fn drop(&mut self) {
        self.0.send_modify(|marks| *marks -= 1);
    }
}

impl AcpSession {
    pub(super) fn new(callers: &AcpConnectionCallers, opened: impl IntoIterator<Item = OpenedAcpSessionRoot>) -> Self {
        let root = |opened: OpenedAcpSessionRoot| {
            let in_root = |mut caller: Caller| {
                caller.session_started_ms = opened.engine.workspace().now_ms();
                if let Some(only) = &opened.single_file {
                    caller.grants.readable = vec![only.resolved.clone()];
                    caller.grants.writable = vec![only.resolved.clone()];
                }
                caller
            };
            AcpSessionRootWithCallers {
                agent: in_root(callers.agent.clone()),
                person: in_root(callers.person.clone()),
                executor: CallExecutor::new(opened.engine),
                root_paths: opened.root_paths,
                single_file: opened.single_file,
            }
        };
        Self {
            id: String::new(),
            roots: opened.into_iter().map(root).collect(),
            seen_files: Mutex::default(),
            editor_writes: Mutex::default(),
            rejected_paths: Mutex::default(),
            write_locks: Mutex::default(),
            cancel_count: sync::watch::Sender::new(0),
            open_turn_marks: sync::watch::Sender::new(0),
            mcp_server: None,
        }
    }

    /// The parameter `journal_id` is the name of the ACP session in the journal.
    pub(super) fn with_id(mut self, id: String, journal_id: String) -> Self {
        self.id = id;
        for root in &mut self.roots {
            root.agent.session.clone_from(&journal_id);
        }
        self
    }

    pub(super) fn journal_id(&self) -> &str {
        self.roots.first().map_or("", |root| &root.agent.session)
    }

    pub(super) fn roots(&self) -> &[AcpSessionRootWithCallers] {
        &self.roots
    }

    pub(super) fn root_of(&self, path: &AcpResolvedPath) -> Option<&AcpSessionRootWithCallers> {
        self.roots.get(path.root_index)
    }

    pub(super) fn resolve_path(&self, path: &str) -> Option<AcpResolvedPath> {
        let candidates = self.roots.iter().enumerate().filter_map(|(index, root)| Some((index, root.resolve(path)?)));
        let (root, (path, trailing)) = candidates.min_by_key(|(_, (path, _))| path.components().count())?;
        let engine_path = acp::engine_path(&path, trailing);
        Some(AcpResolvedPath { root_index: root, path, engine_path })
    }

    /// The absolute path of a file starts with the root path that the editor requested.
    pub(super) fn absolute_path(&self, path: &AcpResolvedPath) -> Option<String> {
        let root = self.roots.get(path.root_index)?.root_paths.first()?;
        let names = path.path.components().map(std::str::from_utf8).collect::<Result<Vec<_>, _>>().ok()?;
        Some(format!("{}/{}", root.trim_end_matches('/'), names.join("/")))
    }

    pub(super) fn seen_content(&self, path: &AcpResolvedPath) -> Option<LastSeenContent> {
        crate::lock(&self.seen_files).contents.get(path).cloned()
    }

    /// Returns the number of the last update of a file's remembered content; a file without remembered content has
    /// none. A read of a file gets the update number first, and finally passes it to [`AcpSession::remember_read`].
    pub(super) fn seen_revision(&self, path: &AcpResolvedPath) -> Option<u64> {
        crate::lock(&self.seen_files).last_revision.get(path).copied()
    }

    /// Remembers the content from a read, unless the remembered content of the file has changed during the read.
    pub(super) fn remember_read(&self, path: &AcpResolvedPath, revision: Option<u64>, seen: LastSeenContent) {
        let mut seen_files = crate::lock(&self.seen_files);
        if seen_files.last_revision.get(path).copied() == revision {
            seen_files.remember(path, seen);
        }
    }

    pub(super) fn remember(&self, path: &AcpResolvedPath, seen: LastSeenContent) {
        crate::lock(&self.seen_files).remember(path, seen);
    }

    pub(super) fn editor_writes(&self) -> MutexGuard<'_, SessionEditorWriteHistory> {
        crate::lock(&self.editor_writes)
    }

    pub(super) fn root_path(&self, root: usize) -> AcpResolvedPath {
        AcpResolvedPath { root_index: root, path: RelPath::root(), engine_path: String::new() }
    }

    pub(super) fn path_in_root(&self, root: usize, engine_path: &str) -> Option<AcpResolvedPath> {
        Some(AcpResolvedPath {
            root_index: root,
            path: RelPath::from_wire(engine_path).ok()?,
            engine_path: engine_path.to_owned(),
        })
    }

    pub(super) fn reject_writes(&self, path: &AcpResolvedPath) {
        crate::lock(&self.rejected_paths).insert(path.clone());
    }

    pub(super) fn rejects_writes(&self, path: &AcpResolvedPath) -> bool {
        crate::lock(&self.rejected_paths).contains(path)
    }

    /// Blocks the session's writes while a turn mark is recorded. Returns `None` if the session is already recording
    /// the maximum number of turn marks.
    pub(super) fn begin_turn_mark(&self) -> Option<TurnMarkRecordingGuard> {
        let started = self.open_turn_marks.send_if_modified(|marks| {
            let has_room = *marks < REQUESTS_PENDING_MAX;
            *marks += usize::from(has_room);
            has_room
        });
        self.editor_writes().begin_turn();
        started.then(|| TurnMarkRecordingGuard(self.open_turn_marks.clone()))
    }

    /// Locks a file for a write of this session. Writes get the lock in the order of their requests. A write waits
    /// until the turn marks of all earlier prompts are recorded, so that it belongs to the right turn.
    pub(super) async fn lock_for_write(&self, path: &AcpResolvedPath) -> sync::OwnedMutexGuard<()> {
        let lock = {
            let mut locks = crate::lock(&self.write_locks);
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            locks.entry(path.clone()).or_default().clone()
        };
        let guard = lock.lock_owned().await;
        // The channel cannot close during the wait, because its sender lives in `self`.
        drop(self.open_turn_marks.subscribe().wait_for(|marks| *marks == 0).await);
        guard
    }

    /// Cancels the requests of this session that wait for a person or for the editor.
    pub(super) fn cancel(&self) {
        self.cancel_count.send_modify(|times| *times += 1);
    }

    /// Waits for the next cancellation of the session's requests; earlier cancellations do not count.
    pub(super) fn until_cancelled(&self) -> impl Future<Output = ()> + use<> {
        let mut cancelled = self.cancel_count.subscribe();
        async move {
            if cancelled.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl AcpSessionRootWithCallers {
    fn resolve(&self, path: &str) -> Option<(RelPath, PathKindImpliedBySpelling)> {
        let spelling = acp::path_beneath_root(path, &self.root_paths)?;
        match &self.single_file {
            None => Some((spelling.path, spelling.required_kind)),
            Some(only) => (spelling.path == only.requested).then(|| (only.resolved.clone(), spelling.required_kind)),
        }
    }
}

/// Starts to record a turn for a prompt, so that the agent's changes after the prompt can be reviewed and undone
/// together. The proxy forwards the prompt to the agent only after `record_turn` has returned.
///
/// The session's file methods wait for the turn mark, so that no write comes between a prompt and its turn mark. The
/// proxy cannot delay the writes of an MCP server in another process. If the session has an MCP server, the prompt
/// waits until the turn mark is recorded or a timeout expires.
pub(super) async fn record_turn(session: Arc<AcpSession>) {
    // While a turn mark is being recorded, all writes wait. If too many marks are being recorded, another mark would
    // not separate any writes and is left out.
    let Some(mark_guard) = session.begin_turn_mark() else { return };
    let has_server = session.mcp_server.is_some();
    let marks = tokio::spawn(async move {
        // Several roots can share one journal, and each of these roots adds a mark. Marks without a write between them
        // form one turn.
        for root in session.roots() {
            record_turn_in_root(root).await;
        }
        drop(mark_guard);
    });
    if has_server {
        // After the timeout the prompt is forwarded, but file methods still wait for the mark.
        drop(tokio::time::timeout(TURN_MARK_TIMEOUT, marks).await);
    }
}

async fn record_turn_in_root(root: &AcpSessionRootWithCallers) {
    let request = CallRequest::new(root.agent.clone(), acp::turn_mark_call());
    // The prompt is forwarded even if the mark cannot be recorded. If the engine refused the call, it has recorded the
    // refusal.
    drop(root.executor.run(request, OtherRequestsPending::Waiting, None, |_| std::future::pending()).await);
}

#[derive(Default)]
struct AcpSessionSeenFileContents {
    contents: HashMap<AcpResolvedPath, LastSeenContent>,
    /// The files whose content the session remembers, with one entry per update, oldest first. Only the entry with a
    /// file's last update number is valid.
    age_order: VecDeque<(AcpResolvedPath, u64)>,
    last_revision: HashMap<AcpResolvedPath, u64>,
    revision: u64,
    bytes: usize,
}

impl AcpSessionSeenFileContents {
    fn remember(&mut self, path: &AcpResolvedPath, seen: LastSeenContent) {
        self.revision += 1;
        self.bytes += seen.byte_len();
        if let Some(before) = self.contents.insert(path.clone(), seen) {
            self.bytes -= before.byte_len();
        }
        self.last_revision.insert(path.clone(), self.revision);
        self.age_order.push_back((path.clone(), self.revision));
        while self.bytes > SESSION_SEEN_BYTES_MAX || self.contents.len() > SESSION_SEEN_FILES_MAX {
            let Some((oldest, number)) = self.age_order.pop_front() else { return };
            self.forget(&oldest, number);
        }
        // Outdated revisions are removed once they take up much of the queue.
        if self.age_order.len() > 2 * SESSION_SEEN_FILES_MAX {
            let last = &self.last_revision;
            self.age_order.retain(|(path, number)| last.get(path) == Some(number));
        }
    }

    fn forget(&mut self, path: &AcpResolvedPath, number: u64) {
        if self.last_revision.get(path) != Some(&number) {
            return;
        }
        self.last_revision.remove(path);
        if let Some(seen) = self.contents.remove(path) {
            self.bytes -= seen.byte_len();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::Arc,
        task::{Context, Waker},
    };

    use stead_engine::Principal;
    use testkit::MemoryWorkspace;

    use super::*;

    fn opened_root(root_paths: &[&str], only: Option<&str>) -> OpenedAcpSessionRoot {
        OpenedAcpSessionRoot {
            engine: Engine::new(Arc::new(MemoryWorkspace::new())),
            root_paths: root_paths.iter().map(|text| (*text).to_owned()).collect(),
            single_file: only.map(|name| {
                let path = RelPath::from_wire(name).unwrap();
                AcpSingleFileRoot { requested: path.clone(), resolved: path }
            }),
        }
    }

    fn new_session(roots: Vec<OpenedAcpSessionRoot>) -> AcpSession {
        let agent = Caller::new(Principal::Agent("a".to_owned()), "s", "acp");
        let person = Caller::new(Principal::User("p".to_owned()), "s", "acp");
        AcpSession::new(&AcpConnectionCallers { agent, person }, roots)
    }

    #[test]
    fn path_resolves_to_innermost_root_or_none() {
        let session = new_session(vec![
            opened_root(&["/p/link", "/p/real"], None),
            opened_root(&["/p/real/sub"], None),
            opened_root(&["/etc"], Some("hosts")),
        ]);
        let resolve =
            |path: &str| session.resolve_path(path).map(|resolved| (resolved.root_index, resolved.engine_path));
        assert_eq!(resolve("/p/link/a"), Some((0, "a".into())));
        assert_eq!(resolve("/p/real//b/./c"), Some((0, "b/c".into())));
        assert_eq!(resolve("/p/real/sub/a"), Some((1, "a".into())));
        assert_eq!(resolve("/p/real/x/../sub/a"), Some((1, "a".into())));
        assert_eq!(resolve("/etc/hosts"), Some((2, "hosts".into())));
        assert_eq!(resolve("/p/real/d/"), Some((0, "d/".into())));
        assert_eq!(resolve("/p/real/back\\slash"), Some((0, "back\\\\slash".into())));
        for outside in ["/", "/p", "/p/realm/a", "/p/real/../x", "/etc", "/etc/passwd", "a", "", "/p/real/a\0b"] {
            assert_eq!(resolve(outside), None, "{outside}");
        }
    }

    #[test]
    fn oldest_texts_are_evicted_first() {
        let session = new_session(vec![opened_root(&["/p"], None)]);
        let text: Arc<str> = "x".repeat(SESSION_SEEN_BYTES_MAX / 4).into();
        let seen = || LastSeenContent::Text(text.clone());
        let paths: Vec<AcpResolvedPath> =
            (0..6).map(|number| session.resolve_path(&format!("/p/{number}")).unwrap()).collect();
        for path in &paths[..4] {
            session.remember(path, seen());
        }
        session.remember(&paths[0], seen());
        session.remember(&paths[4], seen());
        session.remember(&paths[5], LastSeenContent::Missing);
        let known: Vec<bool> = paths.iter().map(|path| session.seen_content(path).is_some()).collect();
        assert_eq!(known, [true, false, true, true, true, true]);
    }

    #[test]
    fn writes_wait_for_pending_turn_marks() {
        let session = new_session(vec![opened_root(&["/p"], None)]);
        let path = session.resolve_path("/p/a").unwrap();
        let (first, second) = (session.begin_turn_mark().unwrap(), session.begin_turn_mark().unwrap());
        let mut write = Box::pin(session.lock_for_write(&path));
        let mut context = Context::from_waker(Waker::noop());
        assert!(write.as_mut().poll(&mut context).is_pending());
        drop(first);
        assert!(write.as_mut().poll(&mut context).is_pending());
        drop(second);
        assert!(write.as_mut().poll(&mut context).is_ready());
        let many: Vec<_> = std::iter::repeat_with(|| session.begin_turn_mark()).take_while(Option::is_some).collect();
        assert_eq!(many.len(), REQUESTS_PENDING_MAX);
    }
}
