//! Disk images for the power-cut test: an outer file system that supports reflinks, and in it the image of the tested
//! disk.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use super::{run_quietly, work_directory};

/// The file system that contains the image of the tested disk; it must support reflinks.
pub(super) const OUTER_FILE_SYSTEM: &str = "xfs";
/// The size of the sparse image of the outer file system.
const OUTER_BYTES: u64 = 8 << 30;
const DISK_BYTES: u64 = 1 << 30;
const UNMOUNT_TRIES: usize = 100;
const UNMOUNT_PAUSE: Duration = Duration::from_millis(50);
const TOOL_PACKAGES: &[(&str, &str)] = &[("ext4", "e2fsprogs"), ("xfs", "xfsprogs"), ("btrfs", "btrfs-progs")];

/// Installs the tools of a file system.
pub(super) fn install_tools(name: &str) -> Result<(), String> {
    let program = format!("mkfs.{name}");
    if crate::is_installed(&program, &["-V"]) {
        return Ok(());
    }
    let package = TOOL_PACKAGES.iter().find(|(known, _)| *known == name).map(|(_, package)| *package);
    let package = package.ok_or_else(|| format!("no known package for {name}"))?;
    println!("powercut: installing {package} with apt-get");
    run_quietly(Command::new("apt-get").args(["install", "-y", "--no-install-recommends", package]))
}

/// A mounted image; unmounted when dropped.
pub(super) struct MountedImage(PathBuf);

impl MountedImage {
    fn mount(image: &Path, at: PathBuf) -> Result<Self, String> {
        fs::create_dir_all(&at).map_err(|error| format!("{}: {error}", at.display()))?;
        run_quietly(Command::new("mount").args(["-o", "loop"]).arg(image).arg(&at))?;
        Ok(Self(at))
    }

    pub(super) fn path(&self) -> PathBuf {
        self.0.clone()
    }
}

impl Drop for MountedImage {
    fn drop(&mut self) {
        // The loop device of an inner image is released shortly after it was unmounted.
        for _ in 0..UNMOUNT_TRIES {
            if run_quietly(Command::new("umount").arg(&self.0)).is_ok() {
                return;
            }
            std::thread::sleep(UNMOUNT_PAUSE);
        }
        eprintln!("powercut: {} stays mounted", self.0.display());
    }
}

/// The mounted outer file system, which contains the image of the tested disk.
pub(super) struct PowerCutDiskImageHostFilesystem {
    mounted: Option<MountedImage>,
}

impl PowerCutDiskImageHostFilesystem {
    pub(super) fn create() -> Result<Self, String> {
        let home = work_directory();
        fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
        let image = home.join("outer.img");
        make_image(&image, OUTER_BYTES, "mkfs.xfs", &["-q", "-f", "-m", "reflink=1"])?;
        Ok(Self { mounted: Some(MountedImage::mount(&image, home.join("outer"))?) })
    }
}

impl Drop for PowerCutDiskImageHostFilesystem {
    fn drop(&mut self) {
        drop(self.mounted.take());
        // The image lies in the target directory, so a leftover is harmless.
        match fs::remove_file(work_directory().join("outer.img")) {
            Ok(()) | Err(_) => {}
        }
    }
}

pub(super) struct PowerCutTestDiskImage<'a> {
    _outer: &'a PowerCutDiskImageHostFilesystem,
    image: PathBuf,
    copy_path: PathBuf,
}

impl<'a> PowerCutTestDiskImage<'a> {
    /// Creates the image of an empty disk with the given file system.
    pub(super) fn create(outer: &'a PowerCutDiskImageHostFilesystem, name: &str) -> Result<Self, String> {
        let place = work_directory().join("outer");
        let disk = Self { _outer: outer, image: place.join("disk.img"), copy_path: place.join("cut.img") };
        let force = if name == "ext4" { "-F" } else { "-f" };
        make_image(&disk.image, DISK_BYTES, &format!("mkfs.{name}"), &["-q", force])?;
        Ok(disk)
    }

    pub(super) fn mount(&self) -> Result<MountedImage, String> {
        MountedImage::mount(&self.image, work_directory().join("disk"))
    }

    /// Simulates the power cut: copies the image of the mounted disk with a reflink.
    pub(super) fn copy_now(&self) -> Result<(), String> {
        run_quietly(Command::new("cp").arg("--reflink=always").arg(&self.image).arg(&self.copy_path))
    }

    /// Replaces the disk by the copy made at the power cut; the copy is kept for inspection.
    pub(super) fn replace_with_copy(&self) -> Result<(), String> {
        let next = self.image.with_extension("next");
        run_quietly(Command::new("cp").arg("--reflink=always").arg(&self.copy_path).arg(&next))?;
        // A new file, because the loop device of the old one may not be released yet.
        fs::rename(&next, &self.image).map_err(|error| format!("{}: {error}", next.display()))
    }

    /// Saves the state of the disk at the last power cut and its current state; returns a message with the directory.
    pub(super) fn save_images(&self) -> Result<String, String> {
        let home = work_directory();
        for (from, to) in [(&self.copy_path, "failed-cut.img"), (&self.image, "failed.img")] {
            run_quietly(Command::new("cp").arg("--sparse=always").arg(from).arg(home.join(to)))?;
        }
        Ok(format!("kept in {}", home.display()))
    }
}

fn make_image(path: &Path, bytes: u64, program: &str, arguments: &[&str]) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if fs::exists(path).map_err(failed)? {
        // A new file, because the loop device of the old one may not be released yet.
        fs::remove_file(path).map_err(failed)?;
    }
    fs::File::create(path).and_then(|file| file.set_len(bytes)).map_err(failed)?;
    run_quietly(Command::new(program).args(arguments).arg(path))
}
