//! Telling a reader that what it read no longer stands: once, with its next answer. Remembers for each session which
//! version of which file it saw last, and holds that against the journal when something has been recorded since.
//!
//! Looks at the journal only when there is news, and at a file only when an editor has it open. Knows what the journal
//! knows: changes made through here, and others' where somebody watches; and what editors have not saved. Bounded: the oldest sessions and files are forgotten first.

mod typed;

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use journal::{Change, ChangeKind, State};
use serde_json::Value;
use text::visible::visible_line;

use super::{
    answer::Facts,
    changes::{cursor::Position, ranges::Ranges},
};
use crate::{
    engine::{Answer, Call},
    failure::Failure,
    limits,
    terms::Evidence,
    version::Version,
    workspace::{EntryFilter, Order, Stored, Which, Workspace},
};

/// The operation whose answers are remembered.
const READ: &str = "read";
/// Where an object says what changed; many answers have a `changed` of their own.
const CHANGED: &str = "changed_since_read";
/// Entries asked for at a time.
const BATCH: usize = 200;

/// What every session has read.
#[derive(Default)]
pub(crate) struct Reminder {
    sessions: Mutex<Sessions>,
}

#[derive(Default)]
struct Sessions {
    known: HashMap<String, Arc<Mutex<Session>>>,
    order: VecDeque<String>,
}

/// What one session has read.
struct Session {
    /// How far the journal has been held against it.
    position: Position,
    news: u64,
    read: HashMap<String, Seen>,
    order: VecDeque<String>,
    /// What was found out for an answer that had no room for it.
    untold: Vec<Stale>,
}

/// What was seen of one file.
struct Seen {
    version: String,
    rev: String,
    /// Whether it was text that an editor had not saved.
    unsaved: bool,
}

/// A file that is no longer what a session saw.
struct Stale {
    path: String,
    from: String,
    to: String,
    lines: Option<Vec<[usize; 2]>>,
    actor: String,
}

impl Reminder {
    /// Begins to remember for a session that reads for the first time. Before the read, so that nothing is missed.
    pub(crate) fn before(&self, workspace: &dyn Workspace, call: &Call<'_>) {
        if call.operation != READ || !is_native(call) {
            return;
        }
        let name = name(call);
        let mut sessions = held(&self.sessions);
        if sessions.known.contains_key(&name) {
            return;
        }
        let (Ok(position), Ok(news)) = (Position::now(workspace), workspace.news()) else { return };
        if sessions.order.len() >= limits::REMINDED_SESSIONS_MAX
            && let Some(oldest) = sessions.order.pop_front()
        {
            sessions.known.remove(&oldest);
        }
        sessions.order.push_back(name.clone());
        let session =
            Session { position, news, read: HashMap::new(), order: VecDeque::new(), untold: Vec::new() };
        sessions.known.insert(name, Arc::new(Mutex::new(session)));
    }

    /// Adds to an answer what its session should know, and remembers what it was shown.
    pub(crate) fn after(&self, workspace: &dyn Workspace, call: &Call<'_>, mut answer: Answer) -> Answer {
        if !is_native(call) {
            return answer;
        }
        let Some(session) = held(&self.sessions).known.get(&name(call)).cloned() else { return answer };
        let mut session = held(&session);
        let shown = (call.operation == READ).then(|| shown(&answer)).flatten();
        // What cannot be looked up now is looked up with the next answer.
        let mut stale = std::mem::take(&mut session.untold);
        stale.extend(session.stale(workspace, call).unwrap_or_default());
        session.written(&answer);
        if has_room(call) {
            stale.extend(session.typed(workspace).unwrap_or_default());
        }
        if let Some((path, seen)) = shown {
            stale.retain(|stale| stale.path != path);
            session.remember(path, seen);
        }
        stale.truncate(limits::REMINDED_AT_ONCE_MAX);
        if !has_room(call) {
            session.untold = stale;
            return answer;
        }
        drop(session);
        if !stale.is_empty() {
            tell(&mut answer, &stale);
        }
        answer
    }
}

impl Session {
    fn remember(&mut self, path: String, seen: Seen) {
        if self.read.insert(path.clone(), seen).is_some() {
            return;
        }
        self.order.push_back(path);
        if self.order.len() > limits::REMINDED_FILES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.read.remove(&oldest);
        }
    }

    /// What is no longer as it was seen. It is forgotten, so that it is told once.
    fn stale(&mut self, workspace: &dyn Workspace, call: &Call<'_>) -> Result<Vec<Stale>, Failure> {
        let news = workspace.news()?;
        if news == self.news || self.read.is_empty() {
            return Ok(Vec::new());
        }
        let (mut stale, mut scanned) = (Vec::new(), 0);
        let mut ranges = Ranges::new(workspace);
        loop {
            let filter = EntryFilter {
                after: Some(self.position.after()),
                what: Which::Changes,
                order: Order::OldestFirst,
                limit: BATCH,
                ..EntryFilter::default()
            };
            let batch = workspace.entries(&filter)?;
            for stored in &batch {
                self.hold(stored, call, &mut ranges, &mut stale)?;
                self.position = Position::past(stored);
            }
            scanned += batch.len();
            if batch.len() < BATCH {
                self.news = news;
                return Ok(stale);
            }
            if scanned >= limits::ENTRIES_SCANNED_MAX {
                // The rest is held against it with the next answer.
                return Ok(stale);
            }
        }
    }

    fn hold(
        &mut self,
        stored: &Stored,
        call: &Call<'_>,
        ranges: &mut Ranges<'_>,
        stale: &mut Vec<Stale>,
    ) -> Result<(), Failure> {
        let entry = &stored.entry;
        let own = entry.caller.principal == call.caller.principal.to_string()
            && entry.caller.session == call.caller.session;
        for change in &entry.changes {
            let Some(seen) = self.read.get(&change.path) else { continue };
            let to = match left(change) {
                Left::Same(version) if version.to_string() == seen.version => continue,
                Left::Same(version) if own => {
                    let rev = format!("r{}", entry.number);
                    let seen = Seen { version: version.to_string(), rev, unsaved: false };
                    self.read.insert(change.path.clone(), seen);
                    continue;
                }
                Left::Same(_) => format!("r{}", entry.number),
                Left::Gone => "gone".to_owned(),
                Left::Unknown => "unknown".to_owned(),
                Left::Untouched => continue,
            };
            let Some(seen) = self.read.remove(&change.path) else { continue };
            self.order.retain(|path| *path != change.path);
            if own || stale.len() >= limits::REMINDED_AT_ONCE_MAX {
                continue;
            }
            stale.push(Stale {
                path: change.path.clone(),
                from: seen.rev,
                to,
                lines: ranges.of(change)?,
                actor: entry.caller.principal.clone(),
            });
        }
        Ok(())
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a change left where a file was read.
enum Left {
    Same(Version),
    Gone,
    Unknown,
    Untouched,
}

fn left(change: &Change) -> Left {
    match (change.kind, &change.after) {
        (ChangeKind::Rename, _) => Left::Gone,
        (ChangeKind::Copy | ChangeKind::SetMode | ChangeKind::Rescan, _) => Left::Untouched,
        (
            ChangeKind::Create
            | ChangeKind::Modify
            | ChangeKind::Remove
            | ChangeKind::MakeDir
            | ChangeKind::MakeLink,
            after,
        ) => match after {
            State::File { version, .. } | State::Tree { version: Some(version), .. } => {
                Left::Same(Version(*version))
            }
            State::Absent => Left::Gone,
            State::Directory { .. }
            | State::Link { .. }
            | State::Tree { version: None, .. }
            | State::Unknown { .. } => Left::Unknown,
        },
    }
}

/// Whether the answer can say more than the bytes of a file. What has to be said waits for one that can.
fn has_room(call: &Call<'_>) -> bool {
    match call.terms.evidence {
        Evidence::None => true,
        Evidence::Bytes => false,
    }
}

/// Dialects have answers of their own, in which nothing is added.
fn is_native(call: &Call<'_>) -> bool {
    call.terms.tool.is_none() && call.terms.objection.is_none()
}

fn name(call: &Call<'_>) -> String {
    format!("{}\n{}", call.caller.principal, call.caller.session)
}

/// The file that a read showed.
fn shown(answer: &Answer) -> Option<(String, Seen)> {
    let word = |name: &str| answer.json.get(name).and_then(Value::as_str).map(str::to_owned);
    let unsaved = answer.json.contains_key("unsaved");
    Some((word("path")?, Seen { version: word("version")?, rev: word("rev")?, unsaved }))
}

fn tell(answer: &mut Answer, stale: &[Stale]) {
    let mut objects = Vec::new();
    for stale in stale {
        let spans = stale.lines.as_deref().unwrap_or_default();
        let lines: Vec<String> = spans.iter().map(|[from, to]| format!("{from}-{to}")).collect();
        let lines = if lines.is_empty() { String::new() } else { format!(", lines {}", lines.join(",")) };
        if !answer.text.is_empty() && !answer.text.ends_with('\n') {
            answer.text.push('\n');
        }
        answer.text.push_str(&format!(
            "[changed since you read: {} ({} -> {}{lines}, {})]",
            visible_line(&stale.path),
            stale.from,
            stale.to,
            stale.actor
        ));
        let spans: Vec<Vec<usize>> = spans.iter().map(|span| span.to_vec()).collect();
        let facts = Facts::new()
            .with("path", stale.path.clone())
            .with("from", stale.from.clone())
            .with("to", stale.to.clone())
            .maybe("lines", (!spans.is_empty()).then_some(spans))
            .with("actor", stale.actor.clone());
        objects.push(Value::Object(facts.object()));
    }
    answer.json.insert(CHANGED.to_owned(), Value::Array(objects));
}
