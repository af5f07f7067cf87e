//! Fills the disk periodically and frees it again.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

const FILLS_PER_RUN: u32 = 20;
const FULL_DURATION: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const WRITE_BYTES: usize = 1 << 20;

/// Fills and frees the disk until the end of the soak test. Returns how often the disk was full.
pub(super) fn fill_repeatedly(disk: &Path, length: Duration, over: &AtomicBool) -> Result<u64, String> {
    let ballast = disk.join("ballast");
    let mut times = 0;
    while wait_or_stop(length / FILLS_PER_RUN, over) {
        fill_disk(&ballast).map_err(|error| format!("the disk cannot be filled: {error}"))?;
        times += 1;
        let goes_on = wait_or_stop(FULL_DURATION, over);
        fs::remove_file(&ballast).map_err(|error| error.to_string())?;
        if !goes_on {
            break;
        }
    }
    Ok(times)
}

/// Writes to the file `ballast` until not a single byte fits on the disk.
fn fill_disk(ballast: &Path) -> io::Result<()> {
    let mut file = File::create(ballast)?;
    let piece = vec![0; WRITE_BYTES];
    let mut length = WRITE_BYTES;
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

/// Waits for the given time, or until the soak test ends. Returns whether the test continues.
fn wait_or_stop(time: Duration, over: &AtomicBool) -> bool {
    let end = Instant::now() + time;
    while Instant::now() < end && !over.load(Ordering::Relaxed) {
        thread::sleep(POLL_INTERVAL);
    }
    !over.load(Ordering::Relaxed)
}
