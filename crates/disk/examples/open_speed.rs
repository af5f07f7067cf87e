//! How long it takes to resolve and open a file five directories down. Run with `--release`.

#![expect(clippy::print_stdout, reason = "a measurement prints its figures")]

use std::time::Instant;

use disk::{DiskError, FileId, Last, Resolver, Root, RootOptions};
use path::RelPath;

/// Openings per measurement.
const ROUNDS: u32 = 100_000;
/// Measurements, of which the best counts.
const REPEATS: u32 = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keep = tempfile::tempdir()?;
    let deep = keep.path().join("a/b/c/d/e");
    std::fs::create_dir_all(&deep)?;
    std::fs::write(deep.join("file"), "content")?;
    std::os::unix::fs::symlink("a/b/c", keep.path().join("link"))?;
    let nowhere = FileId { dev: 0, ino: 1 };
    for (title, resolver, hidden) in [
        ("kernel", Resolver::Kernel, Vec::new()),
        ("kernel, with a hidden directory", Resolver::Kernel, vec![nowhere]),
        ("walker", Resolver::Walker, Vec::new()),
    ] {
        let root = Root::open(keep.path(), RootOptions { resolver, hidden, mounts: Vec::new() })?;
        for spelling in ["a/b/c/d/e/file", "link/d/e/file"] {
            let path = RelPath::from_wire(spelling)?;
            let canonical = root.canonical(&path, Last::Follow)?;
            let resolve = best(|| root.canonical(&path, Last::Follow).map(|_| ()))?;
            let open = best(|| root.open_file(&canonical).map(|_| ()))?;
            println!("{title:32} {spelling:16} resolve {resolve:6.2} µs, open {open:6.2} µs");
        }
    }
    Ok(())
}

/// Microseconds of the best measurement.
fn best(mut step: impl FnMut() -> Result<(), DiskError>) -> Result<f64, DiskError> {
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
