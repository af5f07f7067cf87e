//! The places that a patch touches, as they would be. Owns what each held before and holds now while the sections are
//! gone through, and turns the difference into changes, at most one for each place. Never writes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use path::RelPath;
use text::encoding::{self, Detected, Encoding};

use crate::{
    failure::{Failure, Kind},
    limits,
    operation::Target,
    ops::{parents, standing::too_large_to_change},
    patching::Binary,
    plan::{Change, Content, Expect, Mode, Seen, Top, Tree},
    terms::{Evidence, Retention},
    version::Version,
    view::View,
    workspace::{NameProfile, Node, Want},
};

/// The places of one patch.
pub(super) struct Places<'v, 'w> {
    view: &'v View<'w>,
    places: BTreeMap<RelPath, Place>,
}

/// One place.
struct Place {
    /// What is there.
    before: Option<Node>,
    /// Its bytes, once read.
    read: Option<Vec<u8>>,
    /// Its version, once looked at; it stays the one that was seen first, so that a commit finds out if it moved.
    seen: Option<Seen>,
    /// What would be there.
    now: Option<Holding>,
}

/// What a place would hold.
struct Holding {
    top: Top,
    /// The place that held it before; nothing for something new.
    origin: Option<RelPath>,
    /// Its bytes, where they are not those of the origin.
    bytes: Option<Vec<u8>>,
}

impl<'v, 'w> Places<'v, 'w> {
    pub(super) fn new(view: &'v View<'w>) -> Self {
        Self { view, places: BTreeMap::new() }
    }

    pub(super) fn view(&self) -> &'v View<'w> {
        self.view
    }

    /// Takes note of a place as it is, unless the patch has been there.
    pub(super) fn enter(&mut self, target: &Target) {
        let origin = Some(target.path.clone());
        let now = target.node.map(|node| Holding { top: node.top, origin, bytes: None });
        self.places.entry(target.path.clone()).or_insert(Place {
            before: target.node,
            read: None,
            seen: None,
            now,
        });
    }

    /// What would be at a place.
    pub(super) fn top(&self, path: &RelPath) -> Option<Top> {
        Some(self.places.get(path)?.now.as_ref()?.top)
    }

    /// Whether a place is as it was before the patch.
    pub(super) fn is_untouched(&self, path: &RelPath) -> bool {
        self.places.get(path).is_some_and(|place| match &place.now {
            Some(now) => now.origin.as_ref() == Some(path) && now.bytes.is_none(),
            None => place.before.is_none(),
        })
    }

    /// The version a file had before the patch; nothing if there was none.
    pub(super) fn version_before(&mut self, path: &RelPath) -> Result<Option<Version>, Failure> {
        match self.places.get(path).and_then(|place| place.before) {
            Some(node) if node.top == Top::File => Ok(Some(self.seen(path)?.version)),
            Some(_) | None => Ok(None),
        }
    }

    /// The version a file would have.
    pub(super) fn version(&mut self, path: &RelPath) -> Result<Version, Failure> {
        let holding = self.places.get(path).and_then(|place| place.now.as_ref());
        let origin = match holding {
            Some(Holding { bytes: Some(bytes), .. }) => return Ok(Version::of(bytes)),
            Some(Holding { origin: Some(origin), bytes: None, .. }) => origin.clone(),
            Some(Holding { origin: None, bytes: None, .. }) | None => return Err(gone(path)),
        };
        Ok(self.seen(&origin)?.version)
    }

    /// The bytes a file would have.
    pub(super) fn bytes(&mut self, path: &RelPath) -> Result<Vec<u8>, Failure> {
        let origin = match self.places.get(path).and_then(|place| place.now.as_ref()) {
            Some(Holding { bytes: Some(bytes), .. }) => return Ok(bytes.clone()),
            Some(Holding { origin: Some(origin), bytes: None, .. }) => origin.clone(),
            Some(Holding { origin: None, bytes: None, .. }) | None => return Err(gone(path)),
        };
        self.read(&origin)
    }

    /// The same where the terms ask for the bytes, and there is a file.
    pub(super) fn shown(&mut self, path: &RelPath) -> Result<Option<Vec<u8>>, Failure> {
        match (self.view.terms.evidence, self.top(path)) {
            (Evidence::Bytes, Some(Top::File)) => self.bytes(path).map(Some),
            (Evidence::None | Evidence::Bytes, _) => Ok(None),
        }
    }

    fn read(&mut self, path: &RelPath) -> Result<Vec<u8>, Failure> {
        let view = self.view;
        let place = self.places.get_mut(path).ok_or_else(|| gone(path))?;
        if let Some(bytes) = &place.read {
            return Ok(bytes.clone());
        }
        let file = view
            .read(path, Want::Whole { limit_bytes: limits::WRITE_BYTES_MAX })
            .map_err(|failure| too_large_to_change(path, failure))?;
        place.seen.get_or_insert(Seen { version: file.version, stamp: file.node.stamp });
        place.read = Some(file.bytes.clone());
        Ok(file.bytes)
    }

    /// The version of a file before the patch; its bytes are read only if something else needs them.
    fn seen(&mut self, path: &RelPath) -> Result<Seen, Failure> {
        let view = self.view;
        let place = self.places.get_mut(path).ok_or_else(|| gone(path))?;
        match place.seen {
            Some(seen) => Ok(seen),
            None => Ok(*place.seen.insert(view.observe(path)?)),
        }
    }

    pub(super) fn put(&mut self, path: &RelPath, bytes: Vec<u8>) {
        if let Some(place) = self.places.get_mut(path) {
            let origin = place.now.take().and_then(|holding| holding.origin);
            place.now = Some(Holding { top: Top::File, origin, bytes: Some(bytes) });
        }
    }

    pub(super) fn take(&mut self, path: &RelPath) {
        if let Some(place) = self.places.get_mut(path) {
            place.now = None;
        }
    }

    pub(super) fn rename(&mut self, from: &RelPath, to: &RelPath) {
        let holding = self.places.get_mut(from).and_then(|place| place.now.take());
        if let Some(place) = self.places.get_mut(to) {
            place.now = holding;
        }
    }

    /// What must change so that every place holds what it would. A file that only gets another name moves; one that
    /// changes as well is written at its new place and goes to the trash at the old one, because a commit takes one
    /// change for each place.
    pub(super) fn changes(&mut self) -> Result<Vec<Change>, Failure> {
        self.refuse_nested()?;
        let paths: Vec<RelPath> = self.places.keys().cloned().collect();
        let mut directories: BTreeMap<RelPath, Change> = BTreeMap::new();
        let mut changes = Vec::new();
        let mut moved = BTreeSet::new();
        for path in &paths {
            let Some(change) = self.change_at(path)? else { continue };
            if self.places.get(path).is_some_and(|place| place.before.is_none()) {
                for directory in parents::missing(self.view, path)? {
                    let made = directory.paths().next().cloned();
                    directories.extend(made.map(|made| (made, directory)));
                }
            }
            if let Change::Move { from, .. } = &change {
                moved.insert(from.clone());
            }
            changes.push(change);
        }
        for path in paths.iter().filter(|path| !moved.contains(path)) {
            changes.extend(self.removal_at(path)?);
        }
        Ok(directories.into_values().chain(changes).collect())
    }

    /// How a place comes to hold what it would, if it would hold something else than now.
    fn change_at(&mut self, path: &RelPath) -> Result<Option<Change>, Failure> {
        let Some(place) = self.places.get(path) else { return Ok(None) };
        let (Some(now), before) = (&place.now, place.before) else { return Ok(None) };
        let (origin, given) = (now.origin.clone(), now.bytes.clone());
        let stays = origin.as_ref() == Some(path);
        if let (Some(from), None) = (&origin, &given) {
            if stays {
                return Ok(None);
            }
            if self.top(from).is_none() {
                return self.moved(from, path).map(Some);
            }
        }
        let bytes = match (given, &origin) {
            (Some(bytes), _) => bytes,
            (None, Some(from)) => self.read(&from.clone())?,
            (None, None) => return Err(gone(path)),
        };
        let version = Version::of(&bytes);
        let expect = match before {
            None => Expect::Absent,
            Some(_) => Expect::File(self.seen(path)?),
        };
        if let (Expect::File(seen), true) = (expect, stays)
            && seen.version == version
        {
            return Ok(None);
        }
        let mode = match origin.filter(|_| !stays) {
            Some(from) => Mode::Like(from.clone(), self.seen(&from)?),
            None => Mode::Keep,
        };
        let size = bytes.len() as u64;
        Ok(Some(Change::Put {
            path: path.clone(),
            expect,
            content: Content::Bytes(bytes),
            version,
            size,
            mode,
        }))
    }

    fn moved(&mut self, from: &RelPath, to: &RelPath) -> Result<Change, Failure> {
        let node = self.places.get(from).and_then(|place| place.before).ok_or_else(|| gone(from))?;
        let over = match self.places.get(to).and_then(|place| place.before) {
            None => Expect::Absent,
            Some(_) => Expect::File(self.seen(to)?),
        };
        let expect = self.expected(from, node)?;
        Ok(Change::Move { from: from.clone(), to: to.clone(), expect, over, tree: one(node) })
    }

    fn removal_at(&mut self, path: &RelPath) -> Result<Option<Change>, Failure> {
        let Some(&Place { before: Some(node), now: None, .. }) = self.places.get(path) else {
            return Ok(None);
        };
        let kept_ms = match self.view.terms.retention {
            Retention::OfPrincipal => self.view.in_force.policy.trash_ms(&self.view.caller.principal),
            Retention::None => 0,
        };
        let keep_until_ms = self.view.workspace().now_ms().saturating_add(kept_ms);
        let expect = self.expected(path, node)?;
        Ok(Some(Change::Remove { path: path.clone(), expect, keep_until_ms, tree: one(node) }))
    }

    fn expected(&mut self, path: &RelPath, node: Node) -> Result<Expect, Failure> {
        match node.top {
            Top::File => Ok(Expect::File(self.seen(path)?)),
            Top::Directory | Top::Link | Top::Special => Ok(Expect::Node(node.stamp)),
        }
    }

    /// Refuses a file below a file, and two new names that are one on some file systems.
    fn refuse_nested(&self) -> Result<(), Failure> {
        let held = |path: &RelPath| self.places.get(path).is_some_and(|place| place.now.is_some());
        let mut names = BTreeMap::new();
        for path in self.places.keys().filter(|path| held(path)) {
            if let Some(above) = path.ancestors().find(|above| !above.is_root() && held(above)) {
                return Err(Failure::new(Kind::NotDirectory, format!("{above} is not a directory"))
                    .hint("choose a path whose parents are directories")
                    .fact("path", above.to_string()));
            }
            let Some((parent, name)) = path.split() else { continue };
            let twin = names.insert((parent, path::fold(name.as_bytes())), path);
            if let (Some(twin), NameProfile::Portable) = (twin, self.view.workspace().profile().names) {
                return Err(Failure::new(
                    Kind::NameCollision,
                    format!("{twin} and {path} are too much alike"),
                )
                .hint("choose a name that differs in more than case")
                .fact("path", path.to_string()));
            }
        }
        Ok(())
    }
}

/// The amount of one file or link.
fn one(node: Node) -> Tree {
    Tree { top: node.top, files: 1, directories: 0, bytes: node.size }
}

fn gone(path: &RelPath) -> Failure {
    Failure::new(Kind::NotFound, format!("{path} does not exist"))
}

/// A file as text, and how to write it again.
pub(super) fn decoded<'b>(
    path: &RelPath,
    bytes: &'b [u8],
    binary: Binary,
) -> Result<(Cow<'b, str>, Encoding), Failure> {
    let not_text = || {
        Failure::new(Kind::NotText, format!("{path} is not text"))
            .hint("replace it whole with write, or leave it out")
            .fact("path", path.to_string())
    };
    let encoding = match (encoding::detect(bytes), binary) {
        (Detected::Text { encoding }, _) => encoding,
        (Detected::Binary, Binary::AsText) => Encoding::Utf8,
        (Detected::Binary, Binary::Refused) => return Err(not_text()),
    };
    let text = encoding::decode(bytes, encoding).map_err(|_| not_text())?;
    Ok((text, encoding))
}

/// Text as the file had it.
pub(super) fn encoded(path: &RelPath, text: &str, encoding: Encoding) -> Result<Vec<u8>, Failure> {
    let bytes = encoding::encode(text, encoding).map_err(|error| {
        Failure::new(Kind::NotText, format!("{path}: {error}"))
            .hint("drop the character, or write the whole file with encoding \"utf-8\"")
            .fact("path", path.to_string())
            .fact("encoding", encoding.name())
    })?;
    if bytes.len() as u64 > limits::WRITE_BYTES_MAX {
        return Err(Failure::new(Kind::TooLarge, format!("{path} would have {} bytes", bytes.len()))
            .hint("split the content over several files")
            .fact("limit_bytes", limits::WRITE_BYTES_MAX));
    }
    Ok(bytes)
}
