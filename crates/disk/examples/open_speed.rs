//! Measures how long resolving and opening a file five directories below the root takes. Run this example with
//! `--release`.

#![expect(clippy::print_stdout, reason = "a measurement prints its figures")]

use std::time::Instant;

use stead_disk::{DiskError, FinalSymlink, InodeId, PathResolutionMethod, RootDirectory, RootDirectoryOptions};
use stead_path::RelPath;

const ROUNDS: u32 = 100_000;
const REPEATS: u32 = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keep = tempfile::tempdir()?;
    let deep = keep.path().join("a/b/c/d/e");
    std::fs::create_dir_all(&deep)?;
    std::fs::write(deep.join("file"), "content")?;
    std::os::unix::fs::symlink("a/b/c", keep.path().join("link"))?;
    let nowhere = InodeId { dev: 0, ino: 1 };
    for (title, resolver, hidden) in [
        ("kernel", PathResolutionMethod::Kernel, Vec::new()),
        ("kernel, with a hidden directory", PathResolutionMethod::Kernel, vec![nowhere]),
        ("walker", PathResolutionMethod::Walker, Vec::new()),
    ] {
        let root = RootDirectory::open(
            keep.path(),
            RootDirectoryOptions { resolver, hidden_inodes: hidden, allowed_mounts: Vec::new() },
        )?;
        for spelling in ["a/b/c/d/e/file", "link/d/e/file"] {
            let path = RelPath::from_wire(spelling)?;
            let canonical = root.canonicalize(&path, FinalSymlink::Follow)?;
            let resolve = best_time(|| root.canonicalize(&path, FinalSymlink::Follow).map(|_| ()))?;
            let open = best_time(|| root.open_file(&canonical).map(|_| ()))?;
            println!("{title:32} {spelling:16} resolve {resolve:6.2} µs, open {open:6.2} µs");
        }
    }
    Ok(())
}

fn best_time(mut step: impl FnMut() -> Result<(), DiskError>) -> Result<f64, DiskError> {
    let mut best = f64::MAX;
    for _ in 0..REPEATS {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            step()?;
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS));
    }
    Ok(best)
}
