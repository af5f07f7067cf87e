//! What happened, gathered until it is told. Pure.
//!
//! Everything rests on one invariant: whoever knew every place before, and follows the moves in their order, knows every
//! place again except those that are touched. So moves keep their order and are told first; touched places follow every
//! move, and are looked at under the name they have now.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use disk::watch::About;
use path::RelPath;

/// How long a file that is being written is waited for.
pub(crate) const OPEN_WAIT: Duration = Duration::from_millis(100);

/// What the events of one place said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hint {
    /// The first that was heard is that the name was made where none was.
    pub(crate) made: bool,
    /// Something came under this name: made, moved here, or found in a directory that is new.
    pub(crate) came: bool,
    /// The name went away.
    pub(crate) left: bool,
    /// Content changed.
    pub(crate) content: bool,
    /// Whoever wrote it is done.
    pub(crate) closed: bool,
    /// There is nothing to wait for.
    pub(crate) whole: bool,
    /// Something that was there before was moved here or below.
    pub(crate) joined: bool,
}

impl Hint {
    /// Something stands here that was not looked at yet.
    pub(crate) const CAME: Hint = Hint { came: true, content: true, whole: true, ..Hint::NOTHING };
    /// The name went away.
    pub(crate) const LEFT: Hint = Hint { left: true, ..Hint::NOTHING };
    /// Something is different, and nothing says what.
    pub(crate) const NOTHING: Hint = Hint {
        made: false,
        came: false,
        left: false,
        content: false,
        closed: false,
        whole: false,
        joined: false,
    };

    fn is_settled(self) -> bool {
        self.closed || self.left || self.whole || !(self.content || self.made)
    }

    /// Whatever is here must be told, and so must it when nothing is.
    pub(crate) fn doubt(&mut self) {
        self.merge(Hint::CAME);
        self.merge(Hint::LEFT);
        self.made = false;
    }

    /// Adds what was heard later. Whether a name was made is a matter of what was heard first.
    fn merge(&mut self, later: Hint) {
        self.came |= later.came;
        self.left |= later.left;
        self.content |= later.content;
        self.closed |= later.closed;
        self.whole |= later.whole;
        self.joined |= later.joined;
    }
}

/// Something has another name, or went out of sight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Move {
    /// The name it had.
    pub(crate) from: RelPath,
    /// The name it has; none when it went where nobody listens.
    pub(crate) to: Option<RelPath>,
    /// What it is.
    pub(crate) about: About,
    /// Whether anybody can have heard of it under the name it had.
    pub(crate) fame: Fame,
    /// What was touched in something that went out of sight, by the names it had.
    pub(crate) touched: Vec<RelPath>,
}

impl Move {
    /// The names it is about.
    pub(crate) fn names(&self) -> impl Iterator<Item = &RelPath> {
        std::iter::once(&self.from).chain(&self.to)
    }

    /// Whether both are about the same place, or one is about something below the other.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let meet = |one: &RelPath, two: &RelPath| one.is_within(two) || two.is_within(one);
        self.names().any(|one| other.names().any(|two| meet(one, two)))
    }

    /// The names of what was touched in something that went out of sight, now that it is known where it went.
    pub(crate) fn left_behind(&self) -> impl Iterator<Item = RelPath> {
        self.touched.iter().filter_map(|path| self.follow(path.clone()))
    }

    /// Where something is after the move; nothing when it is out of sight.
    pub(crate) fn follow(&self, path: RelPath) -> Option<RelPath> {
        match (path.below(&self.from), &self.to) {
            (None, _) => Some(path),
            (Some(rest), Some(to)) => to.append(&rest).ok(),
            (Some(_), None) => None,
        }
    }
}

/// Whether somebody knows of a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fame {
    /// It was there before.
    Heard,
    /// It came a moment ago: only who made it through here can have told.
    Unheard,
}

/// Whether a move is what it seems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Belief {
    Sure,
    /// It undoes the move before it, or two things changed places: the events are the same.
    ThereAndBack,
}

/// One thing to tell or to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    /// Something moved.
    Moved(Move),
    /// Something happened at a place.
    Touched {
        /// Where.
        path: RelPath,
        /// What was said.
        hint: Hint,
    },
}

#[derive(Debug, Clone, Copy)]
struct Touch {
    hint: Hint,
    since: Instant,
    order: u64,
}

/// Items that wait.
#[derive(Default)]
pub(crate) struct Batch {
    moves: Vec<Move>,
    touched: BTreeMap<RelPath, Touch>,
    next: u64,
}

impl Batch {
    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.moves.len() + self.touched.len()
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Something happened at a place.
    pub(crate) fn touch(&mut self, path: &RelPath, hint: Hint, now: Instant) {
        self.next += 1;
        let order = self.next;
        self.put(path.clone(), Touch { hint, since: now, order });
    }

    /// These were not told after all. Nothing was heard since they were taken.
    pub(crate) fn again(&mut self, items: impl IntoIterator<Item = Item>, now: Instant) {
        for item in items {
            match item {
                Item::Moved(moved) => self.push(moved),
                Item::Touched { path, hint } => self.touch(&path, Hint { whole: true, ..hint }, now),
            }
        }
    }

    /// Something has another name, and so has everything below it. Says whether that can be believed.
    pub(crate) fn rename(&mut self, from: &RelPath, to: &RelPath, about: About, now: Instant) -> Belief {
        let branch = self.cut(from);
        let fame = fame(from, &branch);
        let inverse =
            self.moves.last().is_some_and(|last| last.from == *to && last.to.as_ref() == Some(from));
        self.push(Move { from: from.clone(), to: Some(to.clone()), about, fame, touched: Vec::new() });
        for (path, touch) in &branch {
            let Some(moved) = path.below(from).and_then(|rest| to.append(&rest).ok()) else { continue };
            // It may have come over something else.
            let hint = match fame {
                Fame::Unheard if path == from => Hint { made: false, whole: true, ..touch.hint },
                Fame::Unheard | Fame::Heard => touch.hint,
            };
            self.put(moved, Touch { hint, ..*touch });
        }
        self.seek_former(branch, fame);
        if !inverse {
            return Belief::Sure;
        }
        self.touch(from, Hint::CAME, now);
        self.touch(to, Hint::CAME, now);
        Belief::ThereAndBack
    }

    /// Something went out of sight with everything below it.
    pub(crate) fn depart(&mut self, from: &RelPath, about: About) {
        let branch = self.cut(from);
        let fame = fame(from, &branch);
        let touched = branch.iter().map(|(path, _)| path.clone()).collect();
        self.push(Move { from: from.clone(), to: None, about, fame, touched });
        self.seek_former(branch, fame);
    }

    /// Where a move may not be told because nobody heard of the thing, whatever had the names before is looked for by itself.
    fn seek_former(&mut self, branch: Vec<(RelPath, Touch)>, fame: Fame) {
        match fame {
            Fame::Heard => {}
            Fame::Unheard => {
                for (path, mut touch) in branch.into_iter().filter(|(_, touch)| !touch.hint.made) {
                    touch.hint.merge(Hint::LEFT);
                    self.put(path, touch);
                }
            }
        }
    }

    /// Whether a move waits.
    pub(crate) fn has_moves(&self) -> bool {
        !self.moves.is_empty()
    }

    /// What need not wait any longer: the moves in their order, then what was touched in its own.
    pub(crate) fn ready(&mut self, now: Instant) -> Vec<Item> {
        let mut ready: Vec<(u64, RelPath, Hint)> = self
            .touched
            .iter()
            .filter(|(_, touch)| now >= touch.due())
            .map(|(path, touch)| (touch.order, path.clone(), touch.hint))
            .collect();
        ready.sort_unstable_by_key(|(order, _, _)| *order);
        for (_, path, _) in &ready {
            self.touched.remove(path);
        }
        let moves = std::mem::take(&mut self.moves).into_iter().map(Item::Moved);
        moves.chain(ready.into_iter().map(|(_, path, hint)| Item::Touched { path, hint })).collect()
    }

    /// When something will be ready; nothing when nothing waits.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        if !self.moves.is_empty() {
            return Some(now);
        }
        self.touched.values().map(Touch::due).min()
    }

    fn push(&mut self, moved: Move) {
        let joined = moved.to.iter().filter(|_| moved.fame == Fame::Heard);
        for place in joined.flat_map(|to| to.ancestors().chain([to.clone()])) {
            if let Some(touch) = self.touched.get_mut(&place) {
                touch.hint.joined = true;
            }
        }
        self.moves.push(moved);
    }

    fn put(&mut self, path: RelPath, touch: Touch) {
        self.touched.entry(path).and_modify(|known| known.hint.merge(touch.hint)).or_insert(touch);
    }

    /// Takes out what is touched at a place and below it.
    fn cut(&mut self, top: &RelPath) -> Vec<(RelPath, Touch)> {
        let branch: Vec<RelPath> = self
            .touched
            .range(top.clone()..)
            .map(|(path, _)| path)
            .take_while(|path| path.as_bytes().starts_with(top.as_bytes()))
            .filter(|path| path.is_within(top))
            .cloned()
            .collect();
        branch.into_iter().filter_map(|path| self.touched.remove_entry(&path)).collect()
    }
}

/// Whether anybody can have heard of what moves with these.
fn fame(from: &RelPath, branch: &[(RelPath, Touch)]) -> Fame {
    let unheard = |hint: Hint| hint.came && !hint.joined;
    if branch.iter().any(|(path, touch)| path == from && unheard(touch.hint)) {
        Fame::Unheard
    } else {
        Fame::Heard
    }
}

impl Touch {
    fn due(&self) -> Instant {
        if self.hint.is_settled() { self.since } else { self.since + OPEN_WAIT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(wire: &str) -> RelPath {
        RelPath::from_wire(wire).unwrap()
    }

    const MADE: Hint = Hint { made: true, came: true, ..Hint::NOTHING };
    const WRITTEN: Hint = Hint { content: true, closed: true, ..Hint::NOTHING };

    fn moved(from: &str, to: &str) -> Item {
        Item::Moved(Move {
            from: at(from),
            to: Some(at(to)),
            about: About::Other,
            fame: Fame::Heard,
            touched: Vec::new(),
        })
    }

    fn unheard(from: &str, to: &str) -> Item {
        Item::Moved(Move {
            from: at(from),
            to: Some(at(to)),
            about: About::Other,
            fame: Fame::Unheard,
            touched: Vec::new(),
        })
    }

    fn later(batch: &mut Batch, now: Instant) -> Vec<Item> {
        batch.ready(now + OPEN_WAIT)
    }

    #[test]
    fn a_file_saved_beside_and_moved_over_is_one_change_of_the_file() {
        let (mut batch, now) = (Batch::default(), Instant::now());
        batch.touch(&at("a.tmp"), MADE, now);
        batch.touch(&at("a.tmp"), WRITTEN, now);
        batch.rename(&at("a.tmp"), &at("a"), About::Other, now);
        let items = later(&mut batch, now);
        let [first, Item::Touched { path, hint }] = &items[..] else { panic!("{items:?}") };
        assert_eq!((first, path), (&unheard("a.tmp", "a"), &at("a")));
        assert!(hint.came && hint.content && !hint.made);
    }

    #[test]
    fn moves_keep_their_order_and_what_was_touched_follows_them() {
        let (mut batch, now) = (Batch::default(), Instant::now());
        batch.touch(&at("d/f"), WRITTEN, now);
        batch.rename(&at("x"), &at("y"), About::Other, now);
        batch.rename(&at("y"), &at("z"), About::Other, now);
        batch.rename(&at("d"), &at("e"), About::Other, now);
        assert_eq!(
            later(&mut batch, now),
            [
                moved("x", "y"),
                moved("y", "z"),
                moved("d", "e"),
                Item::Touched { path: at("e/f"), hint: WRITTEN },
            ]
        );
        assert_eq!(batch.due(now), None);
    }

    #[test]
    fn what_was_moved_into_a_new_directory_is_followed_through_its_renames() {
        let (mut batch, now) = (Batch::default(), Instant::now());
        batch.touch(&at("new"), MADE, now);
        batch.rename(&at("old"), &at("new/old"), About::Other, now);
        batch.rename(&at("new"), &at("last"), About::Other, now);
        let items = later(&mut batch, now);
        assert_eq!(items[..2], [moved("old", "new/old"), moved("new", "last")]);
        assert!(matches!(&items[2], Item::Touched { path, .. } if *path == at("last")));
    }

    #[test]
    fn what_was_moved_over_an_empty_new_directory_is_followed_further() {
        let (mut batch, now) = (Batch::default(), Instant::now());
        batch.touch(&at("new"), MADE, now);
        batch.rename(&at("old"), &at("new"), About::Other, now);
        batch.rename(&at("new"), &at("last"), About::Other, now);
        let items = later(&mut batch, now);
        assert_eq!(items[..2], [moved("old", "new"), moved("new", "last")]);
    }

    #[test]
    fn what_had_the_name_of_something_new_is_still_looked_for() {
        let (mut batch, now) = (Batch::default(), Instant::now());
        batch.touch(&at("a"), Hint::LEFT, now);
        batch.touch(&at("a"), MADE, now);
        batch.rename(&at("a"), &at("b"), About::Other, now);
        let items = later(&mut batch, now);
        let places: Vec<String> = items
            .iter()
            .map(|item| match item {
                Item::Touched { path, hint } => format!("{path} {}", hint.made),
                Item::Moved(moved) => format!("{:?}", moved.fame),
            })
            .collect();
        assert_eq!(places, ["Unheard", "a false", "b false"]);
    }

    #[test]
    fn two_things_that_changed_places_are_both_looked_at() {
        let (mut batch, now) = (Batch::default(), Instant::now());
        batch.rename(&at("a"), &at("b"), About::Other, now);
        batch.rename(&at("b"), &at("a"), About::Other, now);
        let items = later(&mut batch, now);
        assert_eq!(items[..2], [moved("a", "b"), moved("b", "a")]);
        assert_eq!(items.len(), 4);
    }

    #[test]
    fn a_log_that_is_rotated_is_a_rename_and_a_new_file() {
        let (mut batch, now) = (Batch::default(), Instant::now());
        batch.rename(&at("log"), &at("log.1"), About::Other, now);
        batch.touch(&at("log"), MADE, now);
        let items = later(&mut batch, now);
        assert_eq!(items, [moved("log", "log.1"), Item::Touched { path: at("log"), hint: MADE }]);
    }

    #[test]
    fn an_open_file_is_waited_for() {
        let (mut batch, now) = (Batch::default(), Instant::now());
        batch.touch(&at("a"), MADE, now);
        assert!(batch.ready(now).is_empty());
        assert_eq!(batch.due(now), Some(now + OPEN_WAIT));
        assert_eq!(later(&mut batch, now).len(), 1);
    }
}
