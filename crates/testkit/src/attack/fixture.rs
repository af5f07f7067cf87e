//! The temporary directories of an attack case: a workspace, an outside directory with canary files, and a state
//! directory.

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
    setup_step::AttackSetupStep,
    snapshot::{AttackTreeSnapshot, TimestampComparisonScope},
};

const CANARY: &str = "CANARY-5d1e90c7-bytes-from-outside";
const OUTSIDE_FILE_NAMES: [&str; 2] = ["only-outside-here", "sibling-of-the-root"];
const HOST_PASSWD_TEXT: &str = "root:x:0:0";

pub(crate) struct AttackFixture {
    pub(crate) workspace: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) state: PathBuf,
    /// A directory outside the workspace that attackers use, and that must be empty after an attack case.
    pub(crate) attacker_scratch: PathBuf,
    base_directory: PathBuf,
    mounts: Vec<PathBuf>,
    /// The listeners keep the Unix sockets of the attack case open.
    sockets: Vec<UnixListener>,
    temp_directory: TempDir,
}

impl AttackFixture {
    pub(crate) fn new() -> io::Result<Self> {
        // The directory names must not look like anything that a case requests.
        let keep = tempfile::Builder::new().prefix("ground-").tempdir()?;
        let base = fs::canonicalize(keep.path())?;
        let (workspace, outside) = (base.join("ws"), base.join("out"));
        fs::create_dir(&workspace)?;
        fs::create_dir(&outside)?;
        fs::write(outside.join(OUTSIDE_FILE_NAMES[0]), CANARY)?;
        fs::write(outside.join("secret"), CANARY)?;
        fs::write(base.join(OUTSIDE_FILE_NAMES[1]), CANARY)?;
        let (state, limbo) = (base.join("state"), base.join("limbo"));
        fs::create_dir(&limbo)?;
        let (mounted, sockets) = (Vec::new(), Vec::new());
        Ok(Self {
            workspace,
            outside,
            state,
            attacker_scratch: limbo,
            base_directory: base,
            mounts: mounted,
            sockets,
            temp_directory: keep,
        })
    }

    pub(crate) fn forbidden_texts(&self) -> Vec<String> {
        let mut secrets =
            vec![CANARY.to_owned(), HOST_PASSWD_TEXT.to_owned(), self.base_directory.display().to_string()];
        secrets.extend(OUTSIDE_FILE_NAMES.map(str::to_owned));
        secrets
    }

    pub(crate) fn substitute_places(&self, text: &str) -> String {
        text.replace("$WNAME", "ws")
            .replace("$W", &self.base_directory.join("ws").display().to_string())
            .replace("$O", &self.outside.display().to_string())
    }

    pub(crate) fn snapshot_outside(&self) -> io::Result<AttackTreeSnapshot> {
        AttackTreeSnapshot::take(
            &self.base_directory,
            &[&self.workspace, &self.state, &self.attacker_scratch],
            TimestampComparisonScope::All,
        )
    }

    pub(crate) fn snapshot_workspace(&self) -> io::Result<AttackTreeSnapshot> {
        AttackTreeSnapshot::take(&self.workspace, &[&self.state], TimestampComparisonScope::FilesOnly)
    }

    /// Computes the version of a workspace file from its bytes on disk.
    pub(crate) fn version_of(&self, path: &str) -> io::Result<String> {
        let bytes = fs::read(self.workspace.join(self.substitute_places(path)))?;
        Ok(stead_engine::Version::hash_bytes(&bytes).to_string())
    }

    pub(crate) fn is_attacker_scratch_used(&self) -> bool {
        fs::read_dir(&self.attacker_scratch).is_ok_and(|mut names| names.next().is_some())
    }

    pub(crate) fn has_trash(&self) -> bool {
        fs::read_dir(self.state.join("trash")).is_ok_and(|mut names| names.next().is_some())
    }

    fn make_place(&self, name: &str) -> io::Result<PathBuf> {
        make_path_below(&self.workspace, &self.substitute_places(name))
    }

    fn make_outside_place(&self, name: &str) -> io::Result<PathBuf> {
        make_path_below(&self.outside, &self.substitute_places(name))
    }

    /// Applies a setup step about files, and returns false for any other setup step.
    pub(crate) fn apply_step(&mut self, step: &AttackSetupStep) -> io::Result<bool> {
        match step {
            AttackSetupStep::File(name, bytes) => fs::write(self.make_place(name)?, append_canary(bytes))?,
            AttackSetupStep::Directory(name) => fs::create_dir_all(self.make_place(name)?)?,
            AttackSetupStep::Link(name, target) => symlink(self.substitute_places(target), self.make_place(name)?)?,
            AttackSetupStep::HardLink(name, other) => {
                fs::hard_link(self.workspace.join(self.substitute_places(other)), self.make_place(name)?)?;
            }
            AttackSetupStep::Fifo(name) => make_node(&self.make_place(name)?, FileType::Fifo, 0)?,
            AttackSetupStep::Socket(name) => self.sockets.push(UnixListener::bind(self.make_place(name)?)?),
            AttackSetupStep::Device(name, major, minor) => {
                let device = rustix::fs::makedev(*major, *minor);
                make_node(&self.make_place(name)?, FileType::CharacterDevice, device)?;
            }
            AttackSetupStep::OutsideFile(name, bytes) => {
                fs::write(self.make_outside_place(name)?, append_canary(bytes))?
            }
            AttackSetupStep::OutsideDirectory(name) => fs::create_dir_all(self.make_outside_place(name)?)?,
            AttackSetupStep::OutsideFifo(name) => make_node(&self.make_outside_place(name)?, FileType::Fifo, 0)?,
            AttackSetupStep::OutsideSocket(name) => {
                self.sockets.push(UnixListener::bind(self.make_outside_place(name)?)?)
            }
            AttackSetupStep::OutsideLink(name, target) => {
                symlink(self.substitute_places(target), self.make_outside_place(name)?)?
            }
            AttackSetupStep::SiblingFile(name, bytes) => {
                fs::write(make_path_below(&self.base_directory, &self.substitute_places(name))?, append_canary(bytes))?;
            }
            AttackSetupStep::SetMode(name, mode) => {
                fs::set_permissions(self.make_place(name)?, fs::Permissions::from_mode(*mode))?;
            }
            AttackSetupStep::SparseFile(name, bytes) => fs::File::create(self.make_place(name)?)?.set_len(*bytes)?,
            AttackSetupStep::PolicyFile(text) => fs::write(make_path_below(&self.state, "policy.toml")?, text)?,
            AttackSetupStep::Remove(name) => {
                let place = self.make_place(name)?;
                if fs::symlink_metadata(&place)?.is_dir() {
                    fs::remove_dir(place)?;
                } else {
                    fs::remove_file(place)?;
                }
            }
            AttackSetupStep::DeepDirectories(name, levels) => self.make_deep_directories(name, *levels)?,
            AttackSetupStep::LinkChain(name, length, target) => self.make_link_chain(name, *length, target)?,
            AttackSetupStep::MountFilesystem(kind, name) => self.mount_filesystem(kind, name)?,
            AttackSetupStep::BindMount(source, name) => self.bind_mount(source, name)?,
            AttackSetupStep::WorkspaceMount => self.mount_workspace()?,
            AttackSetupStep::ReadOnlyWorkspaceMount => {
                self.mount_workspace()?;
                let options = [Path::new("-o"), Path::new("remount,bind,ro")];
                run_program("mount", &[options[0], options[1], &self.workspace])?;
            }
            AttackSetupStep::ReplaceRoot => self.replace_root_with_link()?,
            AttackSetupStep::StateInWorkspace(name) => self.state = self.workspace.join(name),
            AttackSetupStep::AllowMountInside(_)
            | AttackSetupStep::SetPrincipal(_)
            | AttackSetupStep::OpenWorkspace
            | AttackSetupStep::AdvanceClocks(_)
            | AttackSetupStep::ShiftWallClock(_)
            | AttackSetupStep::PurgeExpired
            | AttackSetupStep::StartAttacker(_)
            | AttackSetupStep::Call { .. } => return Ok(false),
        }
        Ok(true)
    }

    /// Creates nested directories through open handles, because the complete path would be too long.
    fn make_deep_directories(&self, name: &str, levels: usize) -> io::Result<()> {
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        let mut handle = rustix::fs::openat(CWD, &self.workspace, flags, Mode::empty())?;
        for _ in 0..levels {
            rustix::fs::mkdirat(&handle, name, Mode::from_raw_mode(0o755))?;
            handle = rustix::fs::openat(&handle, name, flags, Mode::empty())?;
        }
        Ok(())
    }

    fn make_link_chain(&self, name: &str, length: usize, target: &str) -> io::Result<()> {
        for number in 0..length {
            let meant = match number {
                0 => self.substitute_places(target),
                _ => format!("{name}{}", number - 1),
            };
            symlink(meant, self.make_place(&format!("{name}{number}"))?)?;
        }
        Ok(())
    }

    fn mount_filesystem(&mut self, kind: &str, name: &str) -> io::Result<()> {
        let place = self.make_place(name)?;
        fs::create_dir_all(&place)?;
        run_program("mount", &[Path::new("-t"), Path::new(kind), Path::new("none"), &place])?;
        self.mounts.push(place);
        Ok(())
    }

    fn bind_mount(&mut self, source: &str, name: &str) -> io::Result<()> {
        let (source, place) = (PathBuf::from(self.substitute_places(source)), self.make_place(name)?);
        if source.is_dir() {
            fs::create_dir_all(&place)?;
        } else {
            fs::write(&place, "")?;
        }
        run_program("mount", &[Path::new("--bind"), &source, &place])?;
        self.mounts.push(place);
        Ok(())
    }

    fn mount_workspace(&mut self) -> io::Result<()> {
        let place = self.workspace.clone();
        run_program("mount", &[Path::new("--bind"), &place, &place])?;
        self.mounts.push(place);
        Ok(())
    }

    fn replace_root_with_link(&mut self) -> io::Result<()> {
        let moved = self.base_directory.join("ws-moved");
        fs::rename(&self.workspace, &moved)?;
        symlink(&self.outside, &self.workspace)?;
        self.workspace = moved;
        Ok(())
    }
}

impl Drop for AttackFixture {
    fn drop(&mut self) {
        // Cleaning up may fail, because the leftovers are in a temporary directory; `rm` handles any depth.
        for place in self.mounts.iter().rev() {
            drop(run_program("umount", &[Path::new("-l"), place]));
        }
        let cleared = run_program("rm", &[Path::new("-rf"), &self.workspace, &self.state]);
        // In the sandbox no program can run, and the parent process cleans up.
        self.temp_directory.disable_cleanup(cleared.is_err());
    }
}

fn make_path_below(top: &Path, name: &str) -> io::Result<PathBuf> {
    let place = top.join(name);
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent)?;
    }
    Ok(place)
}

fn append_canary(bytes: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.replace("CANARY", CANARY).into_bytes(),
        Err(_) => bytes.to_vec(),
    }
}

fn make_node(place: &Path, kind: FileType, device: u64) -> io::Result<()> {
    Ok(rustix::fs::mknodat(CWD, place, kind, Mode::from_raw_mode(0o644), device)?)
}

fn run_program(program: &str, arguments: &[&Path]) -> io::Result<()> {
    let output = Command::new(program).args(arguments).output()?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(io::Error::other(format!("{program} {arguments:?}: {stderr}")))
}

/// Returns whether this process may create device files.
pub fn can_make_devices() -> bool {
    let Ok(place) = tempfile::tempdir() else { return false };
    let node = place.path().join("null");
    let made = make_node(&node, FileType::CharacterDevice, rustix::fs::makedev(1, 3));
    made.is_ok() && rustix::fs::accessat(CWD, &node, rustix::fs::Access::EXISTS, AtFlags::empty()).is_ok()
}
