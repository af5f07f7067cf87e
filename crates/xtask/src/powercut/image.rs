//! Disk images: one file system that copies files in an instant, and in it the disk whose power is cut.
//!
//! Promises: what was mounted is unmounted when it goes out of sight, and the files are removed at the end.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use super::{home, quiet};

/// The file system around the disk: it must know reflinks.
pub(super) const OUTER: &str = "xfs";
/// Sizes of the two images; both are sparse.
const OUTER_BYTES: u64 = 8 << 30;
const DISK_BYTES: u64 = 1 << 30;
/// How often, and how far apart, unmounting is tried.
const UNMOUNT_TRIES: usize = 100;
const UNMOUNT_PAUSE: Duration = Duration::from_millis(50);
/// The package with the tools of each file system.
const PACKAGES: &[(&str, &str)] = &[("ext4", "e2fsprogs"), ("xfs", "xfsprogs"), ("btrfs", "btrfs-progs")];

/// Gets the tools of a file system, and says so.
pub(super) fn install_tools(name: &str) -> Result<(), String> {
    let program = format!("mkfs.{name}");
    if crate::is_installed(&program, &["-V"]) {
        return Ok(());
    }
    let package = PACKAGES.iter().find(|(known, _)| *known == name).map(|(_, package)| *package);
    let package = package.ok_or_else(|| format!("there is no package for {name}"))?;
    println!("powercut: installing {package} with apt-get");
    quiet(Command::new("apt-get").args(["install", "-y", "--no-install-recommends", package]))
}

/// Something mounted; unmounted when dropped.
pub(super) struct Mounted(PathBuf);

impl Mounted {
    fn mount(image: &Path, at: PathBuf) -> Result<Self, String> {
        fs::create_dir_all(&at).map_err(|error| format!("{}: {error}", at.display()))?;
        quiet(Command::new("mount").args(["-o", "loop"]).arg(image).arg(&at))?;
        Ok(Self(at))
    }

    pub(super) fn path(&self) -> PathBuf {
        self.0.clone()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // The loop device of an image in it lets go a moment after the image was unmounted.
        for _ in 0..UNMOUNT_TRIES {
            if quiet(Command::new("umount").arg(&self.0)).is_ok() {
                return;
            }
            std::thread::sleep(UNMOUNT_PAUSE);
        }
        eprintln!("powercut: {} stays mounted", self.0.display());
    }
}

/// The file system that copies in an instant.
pub(super) struct Outer {
    mounted: Option<Mounted>,
}

impl Outer {
    pub(super) fn make() -> Result<Self, String> {
        let home = home();
        fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
        let image = home.join("outer.img");
        make_image(&image, OUTER_BYTES, "mkfs.xfs", &["-q", "-f", "-m", "reflink=1"])?;
        Ok(Self { mounted: Some(Mounted::mount(&image, home.join("outer"))?) })
    }
}

impl Drop for Outer {
    fn drop(&mut self) {
        drop(self.mounted.take());
        // Only an image of ours is in there; what cannot be removed is in the target directory.
        match fs::remove_file(home().join("outer.img")) {
            Ok(()) | Err(_) => {}
        }
    }
}

/// The disk whose power is cut.
pub(super) struct Disk<'a> {
    _outer: &'a Outer,
    image: PathBuf,
    copy: PathBuf,
}

impl<'a> Disk<'a> {
    /// A new, empty one.
    pub(super) fn make(outer: &'a Outer, name: &str) -> Result<Self, String> {
        let place = home().join("outer");
        let disk = Self { _outer: outer, image: place.join("disk.img"), copy: place.join("cut.img") };
        let force = if name == "ext4" { "-F" } else { "-f" };
        make_image(&disk.image, DISK_BYTES, &format!("mkfs.{name}"), &["-q", force])?;
        Ok(disk)
    }

    pub(super) fn mount(&self) -> Result<Mounted, String> {
        Mounted::mount(&self.image, home().join("disk"))
    }

    /// Copies the disk in an instant: the power cut.
    pub(super) fn copy(&self) -> Result<(), String> {
        quiet(Command::new("cp").arg("--reflink=always").arg(&self.image).arg(&self.copy))
    }

    /// The copy is the disk from now on; as it was, it stays for whoever wants to look into it.
    pub(super) fn become_copy(&self) -> Result<(), String> {
        let next = self.image.with_extension("next");
        quiet(Command::new("cp").arg("--reflink=always").arg(&self.copy).arg(&next))?;
        // A new file: the loop device of the old one may not have let go yet.
        fs::rename(&next, &self.image).map_err(|error| format!("{}: {error}", next.display()))
    }

    /// Saves the disk as it was right after the last cut and as it is now, and says where.
    pub(super) fn save(&self) -> Result<String, String> {
        let home = home();
        for (from, to) in [(&self.copy, "failed-cut.img"), (&self.image, "failed.img")] {
            quiet(Command::new("cp").arg("--sparse=always").arg(from).arg(home.join(to)))?;
        }
        Ok(format!("kept in {}", home.display()))
    }
}

fn make_image(path: &Path, bytes: u64, program: &str, arguments: &[&str]) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if fs::exists(path).map_err(failed)? {
        // A new file: the loop device of the old one may not have let go yet.
        fs::remove_file(path).map_err(failed)?;
    }
    fs::File::create(path).and_then(|file| file.set_len(bytes)).map_err(failed)?;
    quiet(Command::new(program).args(arguments).arg(path))
}
