//! Fills the disk now and then, and frees it again.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// How often the disk is filled in a run.
const TIMES: u32 = 20;
/// How long it stays full.
const FULL_FOR: Duration = Duration::from_secs(2);
/// How often it is looked whether the run is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Bytes that are written at once.
const PIECE_BYTES: usize = 1 << 20;

/// Fills and frees until the run is over; how often the disk was full.
pub(super) fn run(disk: &Path, length: Duration, over: &AtomicBool) -> Result<u64, String> {
    let ballast = disk.join("ballast");
    let mut times = 0;
    while wait(length / TIMES, over) {
        fill(&ballast).map_err(|error| format!("the disk cannot be filled: {error}"))?;
        times += 1;
        let goes_on = wait(FULL_FOR, over);
        fs::remove_file(&ballast).map_err(|error| error.to_string())?;
        if !goes_on {
            break;
        }
    }
    Ok(times)
}

/// Writes until nothing fits any more, down to the last byte.
fn fill(ballast: &Path) -> io::Result<()> {
    let mut file = File::create(ballast)?;
    let piece = vec![0; PIECE_BYTES];
    let mut length = PIECE_BYTES;
    while length > 0 {
        match file.write(&piece[..length]) {
            Ok(written) if written > 0 => {}
            Ok(_) => length /= 2,
            Err(error) if error.kind() == io::ErrorKind::StorageFull => length /= 2,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits; whether the run goes on after it.
fn wait(time: Duration, over: &AtomicBool) -> bool {
    let end = Instant::now() + time;
    while Instant::now() < end && !over.load(Ordering::Relaxed) {
        thread::sleep(LOOK_EVERY);
    }
    !over.load(Ordering::Relaxed)
}
