//! The attacker of a race swaps paths in the workspace as fast as it can, like a program with the same rights. The
//! attacker never changes the canaries, and restores paths that the victim moved.

use std::{
    fs,
    os::{fd::OwnedFd, unix::fs::symlink},
    path::Path,
};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};

use super::{
    RaceAttackKind,
    fixture::{INSIDE_CONTENT, RaceTestDirectories},
};

const SWAPS_BETWEEN_CHECKS: u64 = 64;
pub(super) const PLANTED_NAMES: u64 = 4;

pub(super) struct RaceAttacker<'a> {
    pub(super) attack: RaceAttackKind,
    pub(super) fixture: &'a RaceTestDirectories,
    round: u64,
}

impl<'a> RaceAttacker<'a> {
    pub(super) fn new(shape: RaceAttackKind, ground: &'a RaceTestDirectories) -> Self {
        let attacker = Self { attack: shape, fixture: ground, round: 0 };
        let inside = |name: &str| ground.inside_path(name);
        let out = ground.outside_path();
        match shape {
            RaceAttackKind::DirectoryLink => make_link(Path::new("../out"), &inside("swap")),
            RaceAttackKind::DirectoryAbsoluteLink => make_link(&out, &inside("swap")),
            RaceAttackKind::LeafLink | RaceAttackKind::Fifo => attacker.repair_leaf(),
            RaceAttackKind::RootReplaced => make_link(&out, &ground.exile_path().join("root")),
            RaceAttackKind::RetargetedLink => make_link(Path::new("../out"), &inside("swap")),
            RaceAttackKind::MovedOut | RaceAttackKind::PlantedParents | RaceAttackKind::SwappedChildren => {}
        }
        attacker
    }

    pub(super) fn swap_once(&mut self) -> bool {
        self.round += 1;
        let inside = |name: &str| self.fixture.inside_path(name);
        match self.attack {
            RaceAttackKind::DirectoryLink | RaceAttackKind::DirectoryAbsoluteLink => {
                exchange_paths(&inside("d"), &inside("swap"))
            }
            RaceAttackKind::RetargetedLink => exchange_paths(&inside("link"), &inside("swap")),
            RaceAttackKind::LeafLink | RaceAttackKind::Fifo => {
                let swapped = exchange_paths(&inside("leaf"), &inside("swap"));
                if !swapped || self.round.is_multiple_of(SWAPS_BETWEEN_CHECKS) {
                    self.repair_leaf();
                }
                swapped
            }
            RaceAttackKind::MovedOut => self.move_out_and_back(),
            RaceAttackKind::RootReplaced => {
                exchange_paths(&self.fixture.workspace(), &self.fixture.exile_path().join("root"))
            }
            RaceAttackKind::PlantedParents => self.plant_links(),
            RaceAttackKind::SwappedChildren => self.swap_children(),
        }
    }

    pub(super) fn restore_all(&mut self) {
        let away = |path: &Path| has_type(path, FileType::Symlink);
        let home = match self.attack {
            RaceAttackKind::DirectoryLink | RaceAttackKind::DirectoryAbsoluteLink => self.fixture.inside_path("d"),
            RaceAttackKind::RootReplaced => self.fixture.workspace(),
            RaceAttackKind::LeafLink
            | RaceAttackKind::Fifo
            | RaceAttackKind::MovedOut
            | RaceAttackKind::PlantedParents
            | RaceAttackKind::SwappedChildren
            | RaceAttackKind::RetargetedLink => return,
        };
        if away(&home) {
            self.swap_once();
        }
    }

    /// Repairs `leaf` and `swap`, so that one is a regular file and the other a link or a pipe.
    fn repair_leaf(&self) {
        let (leaf, spare) = (self.fixture.inside_path("leaf"), self.fixture.inside_path("swap"));
        let bad = match self.attack {
            RaceAttackKind::Fifo => FileType::Fifo,
            RaceAttackKind::LeafLink
            | RaceAttackKind::DirectoryLink
            | RaceAttackKind::DirectoryAbsoluteLink
            | RaceAttackKind::MovedOut
            | RaceAttackKind::RootReplaced
            | RaceAttackKind::PlantedParents
            | RaceAttackKind::SwappedChildren
            | RaceAttackKind::RetargetedLink => FileType::Symlink,
        };
        if type_of(&leaf).is_none() {
            restore_file(&leaf, &self.fixture.exile_path());
        }
        let wanted = if has_type(&leaf, bad) { FileType::RegularFile } else { bad };
        if has_type(&spare, wanted) {
            return;
        }
        ignore(fs::remove_file(&spare));
        if wanted == FileType::RegularFile {
            restore_file(&spare, &self.fixture.exile_path());
        } else if wanted == FileType::Fifo {
            let mode = Mode::RUSR | Mode::WUSR;
            ignore(rustix::fs::mknodat(CWD, &spare, FileType::Fifo, mode, 0));
        } else {
            make_link(Path::new("../out/leaf"), &spare);
        }
    }

    fn move_out_and_back(&self) -> bool {
        let (home, away) = (self.fixture.inside_path("d"), self.fixture.exile_path().join("d"));
        let gone = rename(&home, &away);
        if rename(&away, &home) {
            return gone;
        }
        // The victim recreated the directory meanwhile, so the old directory is deleted.
        ignore(fs::remove_dir_all(&away));
        ignore(fs::create_dir_all(home.join("sub")));
        restore_file(&home.join("f"), &self.fixture.exile_path());
        restore_file(&home.join("sub/g"), &self.fixture.exile_path());
        gone
    }

    fn plant_links(&self) -> bool {
        let top = self.fixture.inside_path(&format!("p{}", self.round % PLANTED_NAMES));
        if symlink("../out", &top).is_ok() || has_type(&top, FileType::Symlink) {
            return fs::remove_file(&top).is_ok();
        }
        // From here on handles are used, because a path through a restored link would swap files outside.
        let Some(top) = open_directory(&top) else { return false };
        ignore(rustix::fs::symlinkat(self.fixture.outside_path(), &top, "q-swap"));
        let swapped = exchange_names(&top, "q", "q-swap");
        if swapped {
            exchange_names(&top, "q", "q-swap");
        }
        ignore(rustix::fs::unlinkat(&top, "q-swap", AtFlags::empty()));
        let planted = rustix::fs::symlinkat(self.fixture.outside_path(), &top, "q").is_ok();
        planted && rustix::fs::unlinkat(&top, "q", AtFlags::empty()).is_ok() || swapped
    }

    /// Swaps a directory with a link through an open handle, which works even after the tree was moved.
    fn swap_children(&self) -> bool {
        let Some(parent) = open_directory(&self.fixture.inside_path("t/a")) else { return false };
        ignore(rustix::fs::symlinkat(self.fixture.outside_path(), &parent, "b-swap"));
        let mut swapped = false;
        for _ in 0..SWAPS_BETWEEN_CHECKS {
            swapped |= exchange_names(&parent, "b", "b-swap");
        }
        // A link that stayed would prevent every purge of the tree.
        ignore(rustix::fs::unlinkat(&parent, "b-swap", AtFlags::empty()));
        swapped
    }
}

fn exchange_paths(one: &Path, other: &Path) -> bool {
    rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok()
}

fn exchange_names(parent: &OwnedFd, one: &str, other: &str) -> bool {
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

fn has_type(path: &Path, wanted: FileType) -> bool {
    type_of(path) == Some(wanted)
}

fn make_link(target: &Path, at: &Path) {
    ignore(symlink(target, at));
}

/// Creates a file of the initial tree atomically; an existing path is left alone.
fn restore_file(path: &Path, exile: &Path) {
    let whole = exile.join("whole");
    ignore(fs::write(&whole, format!("{INSIDE_CONTENT}\n")));
    rename(&whole, path);
}

/// Any step may fail in a race, and the attacker simply tries the next swap.
fn ignore<T, E>(result: Result<T, E>) {
    match result {
        Ok(_) | Err(_) => {}
    }
}
