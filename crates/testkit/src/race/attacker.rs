//! The attacker: another program with the same rights, that swaps things in the workspace as fast as it can.
//!
//! Owns the shapes of attack. Promises: every shape leads out of the workspace by links, or takes our own directories
//! away; it never touches the canaries itself. What the victim moved away meanwhile is put back, so that the race goes
//! on.

use std::{
    fs,
    os::{fd::OwnedFd, unix::fs::symlink},
    path::Path,
};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};

use super::{
    Shape,
    ground::{Ground, INSIDE},
};

/// Swaps between two looks at whether there is still something to swap.
const SWAPS_BETWEEN_LOOKS: u64 = 64;
/// Names under which parents are planted.
pub(super) const PLANTED: u64 = 4;

/// One attacker.
pub(super) struct Attacker<'a> {
    pub(super) shape: Shape,
    pub(super) ground: &'a Ground,
    round: u64,
}

impl<'a> Attacker<'a> {
    /// Gets everything ready for the first swap.
    pub(super) fn new(shape: Shape, ground: &'a Ground) -> Self {
        let attacker = Self { shape, ground, round: 0 };
        let inside = |name: &str| ground.inside(name);
        let out = ground.out();
        match shape {
            Shape::DirectoryLink => link(Path::new("../out"), &inside("swap")),
            Shape::DirectoryAbsoluteLink => link(&out, &inside("swap")),
            Shape::LeafLink | Shape::Fifo => attacker.look_after_leaf(),
            Shape::RootReplaced => link(&out, &ground.exile().join("root")),
            Shape::RetargetedLink => link(Path::new("../out"), &inside("swap")),
            Shape::MovedOut | Shape::PlantedParents | Shape::SwappedChildren => {}
        }
        attacker
    }

    /// Swaps once. Says whether something was swapped.
    pub(super) fn swap(&mut self) -> bool {
        self.round += 1;
        let inside = |name: &str| self.ground.inside(name);
        match self.shape {
            Shape::DirectoryLink | Shape::DirectoryAbsoluteLink => exchange(&inside("d"), &inside("swap")),
            Shape::RetargetedLink => exchange(&inside("link"), &inside("swap")),
            Shape::LeafLink | Shape::Fifo => {
                let swapped = exchange(&inside("leaf"), &inside("swap"));
                if !swapped || self.round.is_multiple_of(SWAPS_BETWEEN_LOOKS) {
                    self.look_after_leaf();
                }
                swapped
            }
            Shape::MovedOut => self.move_out_and_back(),
            Shape::RootReplaced => exchange(&self.ground.workspace(), &self.ground.exile().join("root")),
            Shape::PlantedParents => self.plant(),
            Shape::SwappedChildren => self.swap_children(),
        }
    }

    /// Puts everything back where it was in the beginning, as far as it is there.
    pub(super) fn go_home(&mut self) {
        let away = |path: &Path| is(path, FileType::Symlink);
        let home = match self.shape {
            Shape::DirectoryLink | Shape::DirectoryAbsoluteLink => self.ground.inside("d"),
            Shape::RootReplaced => self.ground.workspace(),
            Shape::LeafLink
            | Shape::Fifo
            | Shape::MovedOut
            | Shape::PlantedParents
            | Shape::SwappedChildren
            | Shape::RetargetedLink => return,
        };
        if away(&home) {
            self.swap();
        }
    }

    /// One of the two names shall be the bad one, the other a file.
    fn look_after_leaf(&self) {
        let (leaf, spare) = (self.ground.inside("leaf"), self.ground.inside("swap"));
        let bad = match self.shape {
            Shape::Fifo => FileType::Fifo,
            Shape::LeafLink
            | Shape::DirectoryLink
            | Shape::DirectoryAbsoluteLink
            | Shape::MovedOut
            | Shape::RootReplaced
            | Shape::PlantedParents
            | Shape::SwappedChildren
            | Shape::RetargetedLink => FileType::Symlink,
        };
        if type_of(&leaf).is_none() {
            make_file(&leaf, &self.ground.exile());
        }
        let wanted = if is(&leaf, bad) { FileType::RegularFile } else { bad };
        if is(&spare, wanted) {
            return;
        }
        ignore(fs::remove_file(&spare));
        if wanted == FileType::RegularFile {
            make_file(&spare, &self.ground.exile());
        } else if wanted == FileType::Fifo {
            let mode = Mode::RUSR | Mode::WUSR;
            ignore(rustix::fs::mknodat(CWD, &spare, FileType::Fifo, mode, 0));
        } else {
            link(Path::new("../out/leaf"), &spare);
        }
    }

    fn move_out_and_back(&self) -> bool {
        let (home, away) = (self.ground.inside("d"), self.ground.exile().join("d"));
        let gone = rename(&home, &away);
        if rename(&away, &home) {
            return gone;
        }
        // The victim made the directory anew meanwhile: the old one stays away for good.
        ignore(fs::remove_dir_all(&away));
        ignore(fs::create_dir_all(home.join("sub")));
        make_file(&home.join("f"), &self.ground.exile());
        make_file(&home.join("sub/g"), &self.ground.exile());
        gone
    }

    /// Links where the victim is about to make parents, at the top and one below.
    fn plant(&self) -> bool {
        let top = self.ground.inside(&format!("p{}", self.round % PLANTED));
        if symlink("../out", &top).is_ok() || is(&top, FileType::Symlink) {
            return fs::remove_file(&top).is_ok();
        }
        // By a handle from here on: through a link that came back from the trash we would swap things outside.
        let Some(top) = open_directory(&top) else { return false };
        ignore(rustix::fs::symlinkat(self.ground.out(), &top, "q-swap"));
        let swapped = exchange_in(&top, "q", "q-swap");
        if swapped {
            exchange_in(&top, "q", "q-swap");
        }
        ignore(rustix::fs::unlinkat(&top, "q-swap", AtFlags::empty()));
        let planted = rustix::fs::symlinkat(self.ground.out(), &top, "q").is_ok();
        planted && rustix::fs::unlinkat(&top, "q", AtFlags::empty()).is_ok() || swapped
    }

    /// Swaps a directory of the victim's tree with a link, by an open handle: it goes on when the tree is moved away.
    fn swap_children(&self) -> bool {
        let Some(parent) = open_directory(&self.ground.inside("t/a")) else { return false };
        ignore(rustix::fs::symlinkat(self.ground.out(), &parent, "b-swap"));
        let mut swapped = false;
        for _ in 0..SWAPS_BETWEEN_LOOKS {
            swapped |= exchange_in(&parent, "b", "b-swap");
        }
        // Else the tree could never be emptied.
        ignore(rustix::fs::unlinkat(&parent, "b-swap", AtFlags::empty()));
        swapped
    }
}

fn exchange(one: &Path, other: &Path) -> bool {
    rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok()
}

fn exchange_in(parent: &OwnedFd, one: &str, other: &str) -> bool {
    rustix::fs::renameat_with(parent, one, parent, other, RenameFlags::EXCHANGE).is_ok()
}

fn open_directory(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok()
}

fn rename(from: &Path, to: &Path) -> bool {
    rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).is_ok()
}

fn type_of(path: &Path) -> Option<FileType> {
    let stat = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

fn is(path: &Path, wanted: FileType) -> bool {
    type_of(path) == Some(wanted)
}

fn link(target: &Path, at: &Path) {
    ignore(symlink(target, at));
}

/// A file as it was in the beginning, whole from the start, unless something is there.
fn make_file(path: &Path, exile: &Path) {
    let whole = exile.join("whole");
    ignore(fs::write(&whole, format!("{INSIDE}\n")));
    rename(&whole, path);
}

/// In a race everything may fail; what counts is that the next swap is tried.
fn ignore<T, E>(result: Result<T, E>) {
    match result {
        Ok(_) | Err(_) => {}
    }
}
