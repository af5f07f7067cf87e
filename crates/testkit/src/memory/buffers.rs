//! Open buffers in memory. Everybody is one process, until all editors are lost; who came over a connection is lost with it.

use engine::{
    Becomes, Buffer, BufferAsk, BufferStep, BufferText, Buffers, Committed, Failure, Kind, Presence, Record,
    Standing, Version, limits,
};
use journal::Link;

use super::{MemoryWorkspace, State};

/// One buffer with its texts.
pub(super) type Kept = BufferText;

impl Buffers for MemoryWorkspace {
    fn buffers(&self) -> Result<Vec<Buffer>, Failure> {
        let mut state = self.state();
        lapse(&mut state);
        let mut buffers: Vec<Buffer> = state.buffers.iter().map(|kept| kept.buffer.clone()).collect();
        buffers.sort_by(|one, two| (&one.path, &one.id).cmp(&(&two.path, &two.id)));
        Ok(buffers)
    }

    fn buffer_text(&self, id: &str) -> Result<Option<BufferText>, Failure> {
        let mut state = self.state();
        lapse(&mut state);
        Ok(state.buffers.iter().find(|kept| kept.buffer.id == id).cloned())
    }

    fn change_buffer(&self, ask: &BufferAsk, record: &Record<'_>) -> Result<(Buffer, Committed), Failure> {
        let mut state = self.state();
        lapse(&mut state);
        judge(&state, ask, record)?;
        let head = self.record(&mut state, record, Vec::new(), Link::None);
        let buffer = write(&mut state, ask, record, head.number)?;
        if let (BufferAsk::Open { .. } | BufferAsk::TakeUp { .. }, Presence::Connection(connection)) =
            (ask, &record.caller.presence)
        {
            state.connections.insert(buffer.id.clone(), connection.clone());
        }
        let committed =
            Committed { number: head.number, hash: head.hash, trash: Vec::new(), notices: Vec::new() };
        Ok((buffer, committed))
    }
}

/// Lets those editors die whose connection has ended.
fn lapse(state: &mut State) {
    for kept in &mut state.buffers {
        if state.connections.get(&kept.buffer.id).is_some_and(|connection| connection.has_ended()) {
            kept.buffer.standing = Standing::Draft;
        }
    }
}

/// Lets every editor die.
pub(super) fn lose(state: &mut State) {
    for kept in &mut state.buffers {
        kept.buffer.standing = Standing::Draft;
    }
}

fn judge(state: &State, ask: &BufferAsk, record: &Record<'_>) -> Result<(), Failure> {
    let owner = record.caller.principal.to_string();
    let open = |path: &path::RelPath| {
        state.buffers.iter().any(|kept| kept.buffer.is_live() && kept.buffer.path == *path)
    };
    let taken = |path: &path::RelPath| {
        if open(path) { Err(Failure::new(Kind::Exists, format!("{path} is open already"))) } else { Ok(()) }
    };
    match ask {
        BufferAsk::Open { path, instead_of, .. } => {
            taken(path)?;
            let stays = |kept: &&Kept| kept.buffer.owner == owner && !instead_of.contains(&kept.buffer.id);
            let own = state.buffers.iter().filter(stays).count();
            if own >= limits::BUFFERS_PER_PRINCIPAL_MAX {
                return Err(Failure::new(Kind::TooMany, "you have too many buffers and drafts"));
            }
            Ok(())
        }
        BufferAsk::TakeUp { id } => {
            let kept = find(state, id)?;
            taken(&kept.buffer.path)
        }
        BufferAsk::Change { id, revision, .. } => {
            let kept = find(state, id)?;
            if kept.buffer.revision == *revision { Ok(()) } else { Err(busy()) }
        }
        BufferAsk::Close { id } => find(state, id).map(|_| ()),
    }
}

fn write(state: &mut State, ask: &BufferAsk, record: &Record<'_>, number: u64) -> Result<Buffer, Failure> {
    let changed_ms = state.now_ms;
    let session = record.caller.session.clone();
    match ask {
        BufferAsk::Open { path, text, base, endings, instead_of } => {
            state.buffers.retain(|kept| !instead_of.contains(&kept.buffer.id));
            let buffer = Buffer {
                id: format!("b{number}"),
                path: path.clone(),
                owner: record.caller.principal.to_string(),
                session,
                standing: Standing::Here,
                revision: 1,
                version: Version::of(text),
                size: text.len() as u64,
                base: *base,
                endings: *endings,
                held_revision: 1,
                changed_ms,
            };
            state.buffers.push(Kept { buffer: buffer.clone(), text: text.clone(), held: text.clone() });
            Ok(buffer)
        }
        BufferAsk::TakeUp { id } => {
            let kept = find_mut(state, id)?;
            kept.buffer.standing = Standing::Here;
            kept.buffer.session = session;
            kept.buffer.revision += 1;
            kept.hold();
            Ok(kept.buffer.clone())
        }
        BufferAsk::Change { id, text, base, endings, .. } => {
            let kept = find_mut(state, id)?;
            kept.set(text, *base);
            kept.buffer.endings = *endings;
            kept.buffer.changed_ms = changed_ms;
            kept.hold();
            Ok(kept.buffer.clone())
        }
        BufferAsk::Close { id } => {
            let buffer = find(state, id)?.buffer.clone();
            state.buffers.retain(|kept| kept.buffer.id != *id);
            Ok(buffer)
        }
    }
}

/// Whether the buffers of a plan are still what it was made from.
pub(super) fn check(state: &State, steps: &[BufferStep]) -> Result<(), Failure> {
    for step in steps {
        if find(state, &step.id)?.buffer.revision != step.revision {
            return Err(busy());
        }
    }
    Ok(())
}

/// Does to the buffers what a plan says.
pub(super) fn follow(state: &mut State, steps: &[BufferStep]) {
    for step in steps {
        let Ok(kept) = find_mut(state, &step.id) else { continue };
        match &step.becomes {
            Becomes::Text { text, base } => kept.set(text, Some(*base)),
            Becomes::Saved { base } => kept.buffer.base = Some(*base),
            Becomes::Moved(to) => kept.buffer.path = to.clone(),
        }
    }
}

trait Holding {
    fn set(&mut self, text: &[u8], base: Option<Version>);
    fn hold(&mut self);
}

impl Holding for Kept {
    fn set(&mut self, text: &[u8], base: Option<Version>) {
        self.text = text.to_vec();
        self.buffer.version = Version::of(text);
        self.buffer.size = text.len() as u64;
        self.buffer.base = base;
        self.buffer.revision += 1;
    }

    fn hold(&mut self) {
        self.held = self.text.clone();
        self.buffer.held_revision = self.buffer.revision;
    }
}

fn find<'s>(state: &'s State, id: &str) -> Result<&'s Kept, Failure> {
    state.buffers.iter().find(|kept| kept.buffer.id == id).ok_or_else(|| gone(id))
}

fn find_mut<'s>(state: &'s mut State, id: &str) -> Result<&'s mut Kept, Failure> {
    state.buffers.iter_mut().find(|kept| kept.buffer.id == id).ok_or_else(|| gone(id))
}

fn gone(id: &str) -> Failure {
    Failure::new(Kind::NotFound, format!("there is no buffer {id}"))
}

fn busy() -> Failure {
    Failure::new(Kind::Busy, "the buffer changed meanwhile").hint("call again")
}
