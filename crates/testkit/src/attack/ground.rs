//! The ground a case is fought on: a workspace, an outside full of canaries, and a state directory, all in a temporary
//! place that is cleared afterwards. Owns what the instructions of a setup do to the disk.

use std::{
    fs, io,
    os::unix::{
        fs::{PermissionsExt, symlink},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    process::Command,
};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use tempfile::TempDir;

use super::{
    snapshot::{Snapshot, Times},
    step::Step,
};

/// The bytes of every outside file that holds a secret.
const CANARY: &str = "CANARY-5d1e90c7-bytes-from-outside";
/// Names that exist only outside.
const OUTSIDE_NAMES: [&str; 2] = ["only-outside-here", "sibling-of-the-root"];
/// What a password file begins with.
const HOST_BYTES: &str = "root:x:0:0";

/// One temporary ground.
pub(crate) struct Ground {
    pub(crate) workspace: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) state: PathBuf,
    /// Where an attacker puts things aside; empty before and after.
    pub(crate) limbo: PathBuf,
    base: PathBuf,
    mounted: Vec<PathBuf>,
    /// Kept, so that the sockets stay.
    sockets: Vec<UnixListener>,
    keep: TempDir,
}

impl Ground {
    /// A fresh one, with the canaries in place.
    pub(crate) fn new() -> io::Result<Self> {
        // The names of the place must not look like anything a case asks for.
        let keep = tempfile::Builder::new().prefix("ground-").tempdir()?;
        let base = fs::canonicalize(keep.path())?;
        let (workspace, outside) = (base.join("ws"), base.join("out"));
        fs::create_dir(&workspace)?;
        fs::create_dir(&outside)?;
        fs::write(outside.join(OUTSIDE_NAMES[0]), CANARY)?;
        fs::write(outside.join("secret"), CANARY)?;
        fs::write(base.join(OUTSIDE_NAMES[1]), CANARY)?;
        let (state, limbo) = (base.join("state"), base.join("limbo"));
        fs::create_dir(&limbo)?;
        let (mounted, sockets) = (Vec::new(), Vec::new());
        Ok(Self { workspace, outside, state, limbo, base, mounted, sockets, keep })
    }

    /// What no reply may hold: outside bytes, outside names, host paths.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let mut secrets = vec![CANARY.to_owned(), HOST_BYTES.to_owned(), self.base.display().to_string()];
        secrets.extend(OUTSIDE_NAMES.map(str::to_owned));
        secrets
    }

    /// Puts real places where a case names them.
    pub(crate) fn fill(&self, text: &str) -> String {
        text.replace("$WNAME", "ws")
            .replace("$W", &self.base.join("ws").display().to_string())
            .replace("$O", &self.outside.display().to_string())
    }

    /// Everything outside, as it is now.
    pub(crate) fn look_outside(&self) -> io::Result<Snapshot> {
        Snapshot::of(&self.base, &[&self.workspace, &self.state, &self.limbo], Times::All)
    }

    /// Everything inside, as it is now.
    pub(crate) fn look_inside(&self) -> io::Result<Snapshot> {
        Snapshot::of(&self.workspace, &[&self.state], Times::NotOfDirectories)
    }

    /// The version of a file in the workspace, as a caller who read it knows it.
    pub(crate) fn version_of(&self, path: &str) -> io::Result<String> {
        let bytes = fs::read(self.workspace.join(self.fill(path)))?;
        Ok(engine::Version::of(&bytes).to_string())
    }

    /// Whether an attacker left something aside.
    pub(crate) fn limbo_holds_something(&self) -> bool {
        fs::read_dir(&self.limbo).is_ok_and(|mut names| names.next().is_some())
    }

    /// Whether anything is in the trash of the state directory.
    pub(crate) fn trash_holds_something(&self) -> bool {
        fs::read_dir(self.state.join("trash")).is_ok_and(|mut names| names.next().is_some())
    }

    /// A place in the workspace, its directory made.
    fn place(&self, name: &str) -> io::Result<PathBuf> {
        below(&self.workspace, &self.fill(name))
    }

    fn outer(&self, name: &str) -> io::Result<PathBuf> {
        below(&self.outside, &self.fill(name))
    }

    /// Does one instruction that is about files. Answers whether it was one.
    pub(crate) fn apply(&mut self, step: &Step) -> io::Result<bool> {
        match step {
            Step::File(name, bytes) => fs::write(self.place(name)?, with_canary(bytes))?,
            Step::Directory(name) => fs::create_dir_all(self.place(name)?)?,
            Step::Link(name, target) => symlink(self.fill(target), self.place(name)?)?,
            Step::HardLink(name, other) => {
                fs::hard_link(self.workspace.join(self.fill(other)), self.place(name)?)?;
            }
            Step::Fifo(name) => make_node(&self.place(name)?, FileType::Fifo, 0)?,
            Step::Socket(name) => self.sockets.push(UnixListener::bind(self.place(name)?)?),
            Step::Device(name, major, minor) => {
                let device = rustix::fs::makedev(*major, *minor);
                make_node(&self.place(name)?, FileType::CharacterDevice, device)?;
            }
            Step::OutFile(name, bytes) => fs::write(self.outer(name)?, with_canary(bytes))?,
            Step::OutDirectory(name) => fs::create_dir_all(self.outer(name)?)?,
            Step::OutFifo(name) => make_node(&self.outer(name)?, FileType::Fifo, 0)?,
            Step::OutSocket(name) => self.sockets.push(UnixListener::bind(self.outer(name)?)?),
            Step::OutLink(name, target) => symlink(self.fill(target), self.outer(name)?)?,
            Step::Sibling(name, bytes) => {
                fs::write(below(&self.base, &self.fill(name))?, with_canary(bytes))?;
            }
            Step::Mode(name, mode) => {
                fs::set_permissions(self.place(name)?, fs::Permissions::from_mode(*mode))?;
            }
            Step::Sparse(name, bytes) => fs::File::create(self.place(name)?)?.set_len(*bytes)?,
            Step::Policy(text) => fs::write(below(&self.state, "policy.toml")?, text)?,
            Step::Gone(name) => {
                let place = self.place(name)?;
                if fs::symlink_metadata(&place)?.is_dir() {
                    fs::remove_dir(place)?;
                } else {
                    fs::remove_file(place)?;
                }
            }
            Step::Deep(name, levels) => self.dig(name, *levels)?,
            Step::Chain(name, length, target) => self.chain(name, *length, target)?,
            Step::Mount(kind, name) => self.mount(kind, name)?,
            Step::Bind(source, name) => self.bind(source, name)?,
            Step::OwnMount => self.mount_itself()?,
            Step::ReadOnlyMount => {
                self.mount_itself()?;
                let options = [Path::new("-o"), Path::new("remount,bind,ro")];
                run("mount", &[options[0], options[1], &self.workspace])?;
            }
            Step::SwapRoot => self.swap_root()?,
            Step::StateInside(name) => self.state = self.workspace.join(name),
            Step::AllowMount(_)
            | Step::Principal(_)
            | Step::Open
            | Step::Later(_)
            | Step::WallJump(_)
            | Step::Expire
            | Step::Concurrent(_)
            | Step::Call { .. } => return Ok(false),
        }
        Ok(true)
    }

    /// Directories one in the other, made by handle, because no path is that long.
    fn dig(&self, name: &str, levels: usize) -> io::Result<()> {
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        let mut handle = rustix::fs::openat(CWD, &self.workspace, flags, Mode::empty())?;
        for _ in 0..levels {
            rustix::fs::mkdirat(&handle, name, Mode::from_raw_mode(0o755))?;
            handle = rustix::fs::openat(&handle, name, flags, Mode::empty())?;
        }
        Ok(())
    }

    /// Links that lead to one another, the last one to `target`.
    fn chain(&self, name: &str, length: usize, target: &str) -> io::Result<()> {
        for number in 0..length {
            let meant = match number {
                0 => self.fill(target),
                _ => format!("{name}{}", number - 1),
            };
            symlink(meant, self.place(&format!("{name}{number}"))?)?;
        }
        Ok(())
    }

    /// A new file system at a place.
    fn mount(&mut self, kind: &str, name: &str) -> io::Result<()> {
        let place = self.place(name)?;
        fs::create_dir_all(&place)?;
        run("mount", &[Path::new("-t"), Path::new(kind), Path::new("none"), &place])?;
        self.mounted.push(place);
        Ok(())
    }

    /// Something of elsewhere at a place.
    fn bind(&mut self, source: &str, name: &str) -> io::Result<()> {
        let (source, place) = (PathBuf::from(self.fill(source)), self.place(name)?);
        if source.is_dir() {
            fs::create_dir_all(&place)?;
        } else {
            fs::write(&place, "")?;
        }
        run("mount", &[Path::new("--bind"), &source, &place])?;
        self.mounted.push(place);
        Ok(())
    }

    /// The workspace becomes a mount of its own.
    fn mount_itself(&mut self) -> io::Result<()> {
        let place = self.workspace.clone();
        run("mount", &[Path::new("--bind"), &place, &place])?;
        self.mounted.push(place);
        Ok(())
    }

    /// The root gets another name, and a link to the outside takes its old one.
    fn swap_root(&mut self) -> io::Result<()> {
        let moved = self.base.join("ws-moved");
        fs::rename(&self.workspace, &moved)?;
        symlink(&self.outside, &self.workspace)?;
        self.workspace = moved;
        Ok(())
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // Clearing is best effort: what is left is in a temporary place. `rm` copes with any depth.
        for place in self.mounted.iter().rev() {
            drop(run("umount", &[Path::new("-l"), place]));
        }
        let cleared = run("rm", &[Path::new("-rf"), &self.workspace, &self.state]);
        // Behind a wall no program runs; then whoever raised it clears up.
        self.keep.disable_cleanup(cleared.is_err());
    }
}

/// A name below a directory, with the directories on the way made.
fn below(top: &Path, name: &str) -> io::Result<PathBuf> {
    let place = top.join(name);
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent)?;
    }
    Ok(place)
}

fn with_canary(bytes: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.replace("CANARY", CANARY).into_bytes(),
        Err(_) => bytes.to_vec(),
    }
}

fn make_node(place: &Path, kind: FileType, device: u64) -> io::Result<()> {
    Ok(rustix::fs::mknodat(CWD, place, kind, Mode::from_raw_mode(0o644), device)?)
}

fn run(program: &str, arguments: &[&Path]) -> io::Result<()> {
    let output = Command::new(program).args(arguments).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(io::Error::other(format!("{program} {arguments:?}: {said}")))
}

/// Whether this process may make devices.
pub fn may_make_devices() -> bool {
    let Ok(place) = tempfile::tempdir() else { return false };
    let node = place.path().join("null");
    let made = make_node(&node, FileType::CharacterDevice, rustix::fs::makedev(1, 3));
    made.is_ok() && rustix::fs::accessat(CWD, &node, rustix::fs::Access::EXISTS, AtFlags::empty()).is_ok()
}
