//! What happened, gathered until it is looked at: one item for each place, renames in pairs, in the order things
//! happened. Pure. Names follow renames, so an item always has the name under which its thing is found now.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use path::RelPath;

/// How long a file that is being written is waited for.
pub(crate) const OPEN_WAIT: Duration = Duration::from_millis(100);
/// How long the other half of a rename is waited for.
pub(crate) const PAIR_WAIT: Duration = Duration::from_millis(20);

/// What the events of one place said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Hint {
    /// The name was made where none was.
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
}

impl Hint {
    fn is_settled(self) -> bool {
        self.closed || self.left || self.whole || !(self.content || self.made)
    }

    fn merge(&mut self, other: Hint) {
        self.made |= other.made;
        self.came |= other.came;
        self.left |= other.left;
        self.content |= other.content;
        self.closed |= other.closed;
        self.whole |= other.whole;
    }
}

/// One thing to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    /// Something happened at a place.
    Touched {
        /// Where.
        path: RelPath,
        /// What was said.
        hint: Hint,
    },
    /// Something has another name.
    Renamed {
        /// Its old name.
        from: RelPath,
        /// Its name now.
        to: RelPath,
    },
}

struct Kept {
    item: Item,
    since: Instant,
}

/// A name that left, whose other half may still come.
struct Left {
    path: RelPath,
    since: Instant,
}

/// Items that wait.
#[derive(Default)]
pub(crate) struct Batch {
    items: BTreeMap<u64, Kept>,
    touched: HashMap<RelPath, u64>,
    renamed: HashMap<RelPath, u64>,
    left: HashMap<u32, Left>,
    next: u64,
}

impl Batch {
    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.items.len() + self.left.len()
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Something happened at a place.
    pub(crate) fn touch(&mut self, path: &RelPath, hint: Hint, now: Instant) {
        if let Some(order) = self.touched.get(path)
            && let Some(Kept { item: Item::Touched { hint: known, .. }, .. }) = self.items.get_mut(order)
        {
            known.merge(hint);
            return;
        }
        let order = self.push(Item::Touched { path: path.clone(), hint }, now);
        self.touched.insert(path.clone(), order);
    }

    /// Something must be looked at once more.
    pub(crate) fn again(&mut self, item: Item, now: Instant) {
        match item {
            Item::Touched { path, hint } => self.touch(&path, Hint { whole: true, ..hint }, now),
            Item::Renamed { from, to } => self.rename(&from, &to, now),
        }
    }

    /// A name left by a rename.
    pub(crate) fn leave(&mut self, cookie: u32, path: RelPath, now: Instant) {
        self.left.insert(cookie, Left { path, since: now });
    }

    /// A name came by a rename: the name it had, when that is known.
    pub(crate) fn arrive(&mut self, cookie: u32) -> Option<RelPath> {
        self.left.remove(&cookie).map(|left| left.path)
    }

    /// Names that left and did not come back in time.
    pub(crate) fn gone(&mut self, now: Instant) -> Vec<RelPath> {
        let over: Vec<u32> = self
            .left
            .iter()
            .filter(|(_, left)| now >= left.since + PAIR_WAIT)
            .map(|(cookie, _)| *cookie)
            .collect();
        over.into_iter().filter_map(|cookie| self.left.remove(&cookie)).map(|left| left.path).collect()
    }

    /// Something has another name now, and so has everything below it.
    pub(crate) fn rename(&mut self, from: &RelPath, to: &RelPath, now: Instant) {
        self.drop_touched(to);
        let fresh = match self.drop_touched(from) {
            Some(hint) if hint.came => Some(hint),
            Some(_) | None => None,
        };
        self.follow(from, to);
        if let Some(hint) = fresh {
            // It came under another name a moment ago; nobody has heard of that one.
            self.touch(to, Hint { made: false, whole: true, ..hint }, now);
            return;
        }
        if let Some(order) = self.renamed.remove(from)
            && let Some(Kept { item: Item::Renamed { from: first, to: last }, .. }) =
                self.items.get_mut(&order)
        {
            *last = to.clone();
            if first == to {
                self.items.remove(&order);
                self.touch(to, Hint { content: true, whole: true, ..Hint::default() }, now);
            } else {
                self.renamed.insert(to.clone(), order);
            }
            return;
        }
        let order = self.push(Item::Renamed { from: from.clone(), to: to.clone() }, now);
        self.renamed.insert(to.clone(), order);
    }

    /// Items that need not wait any longer, in order.
    pub(crate) fn ready(&mut self, now: Instant) -> Vec<Item> {
        let ready: Vec<u64> =
            self.items.iter().filter(|(_, kept)| now >= kept.due()).map(|(order, _)| *order).collect();
        let mut items = Vec::with_capacity(ready.len());
        for order in ready {
            let Some(kept) = self.items.remove(&order) else { continue };
            match &kept.item {
                Item::Touched { path, .. } => self.touched.remove(path),
                Item::Renamed { to, .. } => self.renamed.remove(to),
            };
            items.push(kept.item);
        }
        items
    }

    /// When something will be ready; nothing when nothing waits.
    pub(crate) fn due(&self) -> Option<Instant> {
        let pairs = self.left.values().map(|left| left.since + PAIR_WAIT);
        self.items.values().map(Kept::due).chain(pairs).min()
    }

    fn push(&mut self, item: Item, since: Instant) -> u64 {
        self.next += 1;
        self.items.insert(self.next, Kept { item, since });
        self.next
    }

    fn drop_touched(&mut self, path: &RelPath) -> Option<Hint> {
        let order = self.touched.remove(path)?;
        match self.items.remove(&order)?.item {
            Item::Touched { hint, .. } => Some(hint),
            Item::Renamed { .. } => None,
        }
    }

    /// Gives everything below a directory that was renamed its new name.
    fn follow(&mut self, from: &RelPath, to: &RelPath) {
        let below = |path: &RelPath| {
            let rest = path.below(from).filter(|rest| !rest.is_root())?;
            to.append(&rest).ok()
        };
        let moved: Vec<(u64, RelPath, RelPath)> = self
            .items
            .iter()
            .filter_map(|(order, kept)| {
                let path = match &kept.item {
                    Item::Touched { path, .. } => path,
                    Item::Renamed { to, .. } => to,
                };
                Some((*order, path.clone(), below(path)?))
            })
            .collect();
        for (order, old, new) in moved {
            match self.items.get_mut(&order).map(|kept| &mut kept.item) {
                Some(Item::Touched { path, .. }) => {
                    *path = new.clone();
                    self.touched.remove(&old);
                    self.touched.insert(new, order);
                }
                Some(Item::Renamed { to, .. }) => {
                    *to = new.clone();
                    self.renamed.remove(&old);
                    self.renamed.insert(new, order);
                }
                None => {}
            }
        }
    }
}

impl Kept {
    fn due(&self) -> Instant {
        match &self.item {
            Item::Touched { hint, .. } if !hint.is_settled() => self.since + OPEN_WAIT,
            Item::Touched { .. } | Item::Renamed { .. } => self.since,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(wire: &str) -> RelPath {
        RelPath::from_wire(wire).unwrap()
    }

    const MADE: Hint =
        Hint { made: true, came: true, left: false, content: false, closed: false, whole: false };
    const WRITTEN: Hint =
        Hint { made: false, came: false, left: false, content: true, closed: true, whole: false };

    fn later(batch: &mut Batch, now: Instant) -> Vec<Item> {
        batch.ready(now + OPEN_WAIT)
    }

    #[test]
    fn a_file_saved_beside_and_moved_over_is_one_change_of_the_file() {
        let (mut batch, now) = (Batch::default(), Instant::now());
        batch.touch(&at("a.tmp"), MADE, now);
        batch.touch(&at("a.tmp"), WRITTEN, now);
        batch.rename(&at("a.tmp"), &at("a"), now);
        let items = later(&mut batch, now);
        let [Item::Touched { path, hint }] = &items[..] else { panic!("{items:?}") };
        assert_eq!(*path, at("a"));
        assert!(hint.came && hint.content && !hint.made);
    }

    #[test]
    fn renames_are_followed_through_chains_and_directories() {
        let (mut batch, now) = (Batch::default(), Instant::now());
        batch.touch(&at("d/f"), WRITTEN, now);
        batch.rename(&at("x"), &at("y"), now);
        batch.rename(&at("y"), &at("z"), now);
        batch.rename(&at("d"), &at("e"), now);
        assert_eq!(
            later(&mut batch, now),
            [
                Item::Touched { path: at("e/f"), hint: WRITTEN },
                Item::Renamed { from: at("x"), to: at("z") },
                Item::Renamed { from: at("d"), to: at("e") },
            ]
        );
        assert_eq!(batch.due(), None);
    }

    #[test]
    fn a_log_that_is_rotated_is_a_rename_and_a_new_file() {
        let (mut batch, now) = (Batch::default(), Instant::now());
        batch.rename(&at("log"), &at("log.1"), now);
        batch.touch(&at("log"), MADE, now);
        let items = later(&mut batch, now);
        assert_eq!(items[0], Item::Renamed { from: at("log"), to: at("log.1") });
        assert_eq!(items[1], Item::Touched { path: at("log"), hint: MADE });
    }

    #[test]
    fn an_open_file_and_half_a_rename_are_waited_for() {
        let (mut batch, now) = (Batch::default(), Instant::now());
        batch.touch(&at("a"), MADE, now);
        batch.leave(7, at("b"), now);
        assert!(batch.ready(now).is_empty() && batch.gone(now).is_empty());
        assert_eq!(batch.due(), Some(now + PAIR_WAIT));
        assert_eq!(batch.gone(now + PAIR_WAIT), [at("b")]);
        assert_eq!(batch.arrive(7), None);
        assert_eq!(later(&mut batch, now).len(), 1);
    }
}
