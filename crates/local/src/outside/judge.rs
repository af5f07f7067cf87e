//! Holds what happened against the disk and the journal: what the journal knows already is dropped, the rest becomes
//! changes. A place that somebody is changing through here right now is looked at again later, under its lock.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::{Duration, Instant},
};

use disk::watch::About;
use engine::{Failure, Guard, Kind, LockAsk, Version, Workspace};
use journal::{Change, ChangeKind, State};
use path::RelPath;

use super::{
    batch::{Fame, Hint, Item, Move},
    known::{self, Knowledge, Known},
    scopes::Scopes,
    seen::{Seen, kept, look, news, same},
};
use crate::open::LocalWorkspace;

/// How long a place is waited for that somebody is changing through here.
const LOCK_WAIT: Duration = Duration::from_millis(50);

/// Permission bits of a directory that moved on before anybody looked.
const DIRECTORY_MODE: u32 = 0o755;

/// A change that the journal does not know, and what it was held against.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) change: Change,
    /// The places, each with the last entry about it and about anything above it: another one since, and the change must
    /// be judged again.
    pub(crate) against: Vec<(RelPath, u64, u64)>,
    /// Bytes worth keeping, for telling later which lines changed.
    pub(crate) kept: Option<(Version, Vec<u8>)>,
    /// What it was judged from.
    pub(crate) item: Item,
}

impl Judged {
    /// Whether it holds although nothing that was seen at some places can be trusted. A move does, but tells no more than
    /// itself.
    pub(crate) fn trust_without(&mut self, adrift: impl Fn(&RelPath) -> bool) -> bool {
        match &self.item {
            Item::Touched { path, .. } => !adrift(path),
            Item::Moved(moved) => {
                if moved.to.as_ref().is_some_and(adrift) {
                    self.change.after = self.change.before.clone();
                    self.kept = None;
                }
                true
            }
        }
    }
}

/// The moves through here that were heard of: for each name that something left, the last entry that said so.
#[derive(Debug, Default)]
pub(crate) struct Excused(HashMap<RelPath, u64>);

/// Most names that are remembered.
const EXCUSED_MAX: usize = 10_000;

impl Excused {
    fn last(&self, from: &RelPath) -> u64 {
        self.0.get(from).copied().unwrap_or(0)
    }

    fn note(&mut self, from: &RelPath, number: u64) {
        if self.0.len() >= EXCUSED_MAX {
            self.0.clear();
        }
        self.0.insert(from.clone(), number);
    }
}

/// How a look ended.
enum Verdict {
    /// The journal knows it, or it is nobody's concern.
    Known,
    /// It is news.
    News(Box<Judged>),
    /// The place is just being changed through here.
    Busy,
}

/// What a batch came to.
#[derive(Default)]
pub(crate) struct Judgement {
    /// What the journal does not know, the moves first.
    pub(crate) news: Vec<Judged>,
    /// What cannot be judged now.
    pub(crate) later: Vec<Item>,
    /// Everything that was touched.
    pub(crate) touched: Vec<Item>,
    /// The last entry before the judgement.
    pub(crate) head: u64,
    /// Places about which nothing certain can be told.
    pub(crate) doubted: Vec<RelPath>,
    /// The moves among the news.
    moves: Vec<Move>,
}

/// Whether what moved is still where it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stay {
    Rests,
    /// A later move of the same batch took it, or its place, away.
    MovedOn,
}

/// Judges items of one batch.
pub(crate) struct Judge<'a> {
    workspace: &'a LocalWorkspace,
    scopes: &'a Scopes,
    excused: &'a mut Excused,
    /// An entry that is older than everything that is judged.
    since: u64,
    /// The places that callers changed since; nothing when those are too many.
    recent: Option<HashSet<RelPath>>,
    /// The moves through here, each with how many moves of others are told before it.
    own: Vec<(usize, Move)>,
    /// How many moves of others are told so far.
    told: usize,
    knowledge: Knowledge<'a>,
}

impl<'a> Judge<'a> {
    /// For what happened after this entry.
    pub(crate) fn new(
        workspace: &'a LocalWorkspace,
        scopes: &'a Scopes,
        excused: &'a mut Excused,
        since: u64,
    ) -> Self {
        let knowledge = Knowledge::new(&workspace.store);
        Self { workspace, scopes, excused, since, recent: None, own: Vec::new(), told: 0, knowledge }
    }

    /// Judges these: first the moves, then what was touched.
    pub(crate) fn all(mut self, items: Vec<Item>) -> Result<Judgement, Failure> {
        let (moves, touched): (Vec<Item>, Vec<Item>) =
            items.into_iter().partition(|item| matches!(item, Item::Moved(_)));
        let mut judgement = Judgement { head: self.workspace.head_number()?, ..Judgement::default() };
        if !moves.is_empty() {
            self.recent =
                self.workspace.store.look(|connection| known::changed_since(connection, self.since))?;
        }
        let stays = stays(&moves);
        let mut moves = moves.into_iter().zip(stays);
        while let Some((item, stay)) = moves.next() {
            match self.judge(&item, stay)? {
                Verdict::Known => {}
                Verdict::News(judged) => {
                    let Item::Moved(moved) = item else { continue };
                    let to = moved.to.as_ref().map(|to| (to, judged.change.after.clone()));
                    self.knowledge.moved(&moved.from, to);
                    judgement.moves.push(moved);
                    self.told += 1;
                    judgement.news.push(*judged);
                }
                Verdict::Busy => {
                    // Nothing may be told before it that happened after it.
                    judgement.later = std::iter::once(item).chain(moves.map(|(item, _)| item)).collect();
                    judgement.touched = touched;
                    return Ok(judgement);
                }
            }
        }
        judgement.touched = self.with_overtaken(touched, &mut judgement);
        for item in judgement.touched.clone() {
            match self.judge(&item, Stay::Rests)? {
                Verdict::Known => {}
                Verdict::News(judged) => judgement.news.push(*judged),
                Verdict::Busy => judgement.later.push(item),
            }
        }
        Ok(judgement)
    }

    /// What was done through here while others moved things is in the journal before the moves, though it may have happened
    /// after them: whoever follows the entries would take it along. So its places are looked at too, under both names.
    fn with_overtaken(&mut self, touched: Vec<Item>, judgement: &mut Judgement) -> Vec<Item> {
        let left_behind: Vec<RelPath> = self.own.iter().flat_map(|(_, own)| own.left_behind()).collect();
        if judgement.moves.is_empty() && left_behind.is_empty() {
            return touched;
        }
        let Some(places) = self.recent.take() else {
            judgement.doubted.extend(judgement.moves.iter().flat_map(Move::names).cloned());
            return touched;
        };
        let mut overtaken = self.crossed(judgement);
        overtaken.extend(left_behind);
        for place in places {
            let last = judgement.moves.iter().try_fold(place.clone(), |place, moved| moved.follow(place));
            if last.as_ref() != Some(&place) {
                overtaken.extend(last);
                overtaken.insert(place);
            }
        }
        let mut touched = touched;
        for item in &mut touched {
            if let Item::Touched { path, hint } = item
                && overtaken.remove(path)
            {
                hint.doubt();
            }
        }
        let rest = overtaken.into_iter().map(|path| {
            let mut hint = Hint::CAME;
            hint.doubt();
            Item::Touched { path, hint }
        });
        touched.extend(rest);
        touched
    }

    /// A move through here is in the journal before a move of others that happened earlier, and whoever follows the entries
    /// takes the wrong thing along where the two meet. Answers the places of files, and doubts those of directories.
    fn crossed(&self, judgement: &mut Judgement) -> BTreeSet<RelPath> {
        let mut files = BTreeSet::new();
        for (before, own) in &self.own {
            if own.about == About::Directory && !own.touched.is_empty() {
                // It went out of sight while others were at work in it, and they may not be done.
                judgement.doubted.extend(own.to.clone());
            }
            for others in judgement.moves.iter().take(*before).filter(|others| others.meets(own)) {
                let names = own.names().chain(others.names()).cloned();
                match (own.about, others.about) {
                    (About::Other, About::Other) => files.extend(names),
                    (About::Directory, About::Directory | About::Other)
                    | (About::Other, About::Directory) => judgement.doubted.extend(names),
                }
            }
        }
        files
    }

    fn judge(&mut self, item: &Item, stay: Stay) -> Result<Verdict, Failure> {
        match self.look_at(item, stay)? {
            None => return Ok(Verdict::Known),
            Some((judged, Trust::Settled)) => return Ok(Verdict::News(Box::new(judged))),
            Some((_, Trust::Pending)) => {}
        }
        // The last entry about the place may not be true yet. Under its lock it is, or its process is dead and it is
        // finished first.
        let places = match item {
            Item::Touched { path, .. } => vec![LockAsk { path: path.clone() }],
            Item::Moved(moved) => moved.names().map(|path| LockAsk { path: path.clone() }).collect(),
        };
        let guard: Box<dyn Guard> = match self.workspace.lock(&places, Instant::now() + LOCK_WAIT) {
            Ok(guard) => guard,
            Err(failure) if failure.kind == Kind::Busy => return Ok(Verdict::Busy),
            Err(failure) => return Err(failure),
        };
        self.knowledge.refresh();
        let verdict = self.look_at(item, stay)?;
        drop(guard);
        Ok(verdict.map_or(Verdict::Known, |(judged, _)| Verdict::News(Box::new(judged))))
    }

    /// What an item comes to, and whether that can be trusted without a lock.
    fn look_at(&mut self, item: &Item, stay: Stay) -> Result<Option<(Judged, Trust)>, Failure> {
        match item {
            Item::Touched { path, hint } => self.touched(path, *hint, item),
            Item::Moved(moved) => match &moved.to {
                Some(to) => self.renamed(moved, to, stay, item),
                None => self.departed(moved, item),
            },
        }
    }

    fn touched(
        &mut self,
        path: &RelPath,
        hint: Hint,
        item: &Item,
    ) -> Result<Option<(Judged, Trust)>, Failure> {
        let known = self.knowledge.of(path)?;
        let Some(seen) = look(self.workspace, path)? else { return Ok(None) };
        if seen.is_absent() && known.went {
            return Ok(None);
        }
        let heard = self.scopes.covers(path) || hint.came || hint.left;
        let Some((kind, before)) = news(&known, &seen.state, hint).filter(|_| heard) else { return Ok(None) };
        let change = Change { path: path.to_string(), kind, to: None, before, after: seen.state.clone() };
        let trust = Trust::of(&[&known]);
        let against = vec![known.against(path)];
        Ok(Some((Judged { kept: kept(&seen), change, against, item: item.clone() }, trust)))
    }

    fn renamed(
        &mut self,
        moved: &Move,
        to: &RelPath,
        stay: Stay,
        item: &Item,
    ) -> Result<Option<(Judged, Trust)>, Failure> {
        let from = &moved.from;
        let (known_from, known_to) = (self.knowledge.of(from)?, self.knowledge.of(to)?);
        if self.is_own(moved)? || self.is_unheard(moved, &known_from) {
            return Ok(None);
        }
        let there = look(self.workspace, to)?;
        if agrees(there.as_ref(), moved.about, &known_to)
            && agrees(look(self.workspace, from)?.as_ref(), moved.about, &known_from)
        {
            return Ok(None);
        }
        let trust = Trust::of(&[&known_from, &known_to]);
        let seen = there.filter(|seen| stay == Stay::Rests && !seen.is_absent());
        let before = known_from.carried(moved.about);
        let (after, kept) = match &seen {
            Some(seen) => (seen.state.clone(), kept(seen)),
            None => (before.clone(), None),
        };
        let change = Change {
            path: from.to_string(),
            kind: ChangeKind::Rename,
            to: Some(to.to_string()),
            before,
            after,
        };
        let against = vec![known_from.against(from), known_to.against(to)];
        Ok(Some((Judged { kept, change, against, item: item.clone() }, trust)))
    }
    fn departed(&mut self, moved: &Move, item: &Item) -> Result<Option<(Judged, Trust)>, Failure> {
        let from = &moved.from;
        let known = self.knowledge.of(from)?;
        if self.is_own(moved)? || self.is_unheard(moved, &known) {
            return Ok(None);
        }
        if agrees(look(self.workspace, from)?.as_ref(), moved.about, &known) {
            return Ok(None);
        }
        let change = Change {
            path: from.to_string(),
            kind: ChangeKind::Remove,
            to: None,
            before: known.carried(moved.about),
            after: State::Absent,
        };
        let (trust, against) = (Trust::of(&[&known]), vec![known.against(from)]);
        Ok(Some((Judged { kept: None, change, against, item: item.clone() }, trust)))
    }

    /// Whether a move was made through here. Each one excuses one that was heard.
    fn is_own(&mut self, moved: &Move) -> Result<bool, Failure> {
        let after = self.since.max(self.excused.last(&moved.from));
        let own = self.knowledge.moved_through_here(moved, after)?;
        if let Some((number, to)) = &own {
            self.excused.note(&moved.from, *number);
            self.own.push((self.told, Move { to: to.clone(), ..moved.clone() }));
        }
        Ok(own.is_some())
    }

    /// Whether nobody has heard of what moved: it came and went before it was looked at, and no caller has put anything
    /// there.
    fn is_unheard(&self, moved: &Move, known: &Known) -> bool {
        let unknown = matches!(known.state, None | Some(State::Absent));
        let untouched = |places: &HashSet<RelPath>| !places.iter().any(|place| place.is_within(&moved.from));
        match moved.fame {
            Fame::Heard => false,
            Fame::Unheard => unknown && self.recent.as_ref().is_some_and(untouched),
        }
    }
}

/// Whether a verdict holds without a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    Settled,
    /// The last entry about a place may not be true yet.
    Pending,
}

impl Trust {
    fn of(known: &[&Known]) -> Self {
        if known.iter().any(|known| known.pending) { Trust::Pending } else { Trust::Settled }
    }
}

/// Whether the journal knows what was seen at a place that something left or took, and all of it: what is below a directory is
/// not known with it.
fn agrees(seen: Option<&Seen>, about: About, known: &Known) -> bool {
    let Some(seen) = seen else { return true };
    let whole = about == About::Other && !matches!(seen.state, State::Directory { .. });
    whole && known.state.as_ref().is_some_and(|state| same(state, &seen.state))
}

/// Which moves of a batch are the last about the place they led to. What is not a move is left out.
fn stays(items: &[Item]) -> Vec<Stay> {
    let mut later: HashSet<&RelPath> = HashSet::new();
    let moves = items.iter().filter_map(|item| match item {
        Item::Moved(moved) => Some(moved),
        Item::Touched { .. } => None,
    });
    let mut stays: Vec<Stay> = Vec::new();
    for moved in moves.rev() {
        let taken = |to: &RelPath| later.contains(to) || to.ancestors().any(|above| later.contains(&above));
        stays.push(if moved.to.as_ref().is_some_and(taken) { Stay::MovedOn } else { Stay::Rests });
        later.insert(&moved.from);
        later.extend(&moved.to);
    }
    stays.reverse();
    stays
}

impl Known {
    /// What the verdict on a place rests on.
    fn against(&self, path: &RelPath) -> (RelPath, u64, u64) {
        (path.clone(), self.number, self.above)
    }

    /// What moves away from a place, as far as that is known without looking.
    fn carried(&self, about: About) -> State {
        match (&self.state, about) {
            (Some(state), _) if *state != State::Absent => state.clone(),
            (_, About::Directory) => State::Directory { mode: DIRECTORY_MODE },
            (_, About::Other) => State::Unknown { size: None },
        }
    }
}
