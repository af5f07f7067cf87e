//! Attackers that change the tree while a case runs. Each works on names of its own choosing until it is stopped, and
//! puts things back as they were.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use rustix::fs::{CWD, RenameFlags};

use super::{ground::Ground, step::Attacker};

/// A growing file stops here, so that it fits on the disk.
const GROWN_BYTES_MAX: u64 = 32 << 20;

/// How often an attacker tries to put back what it moved out.
const RETURNS_MAX: usize = 100_000;

/// Attackers at work.
#[derive(Default)]
pub(crate) struct Attackers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

impl Attackers {
    /// One more.
    pub(crate) fn start(&mut self, ground: &Ground, attacker: &Attacker) -> io::Result<()> {
        let stop = Arc::clone(&self.stop);
        let at = |name: &str| ground.workspace.join(ground.fill(name));
        let thread = match attacker {
            Attacker::Swap(one, other) => {
                let (one, other) = (at(one), at(other));
                std::thread::spawn(move || swap(&one, &other, RenameFlags::EXCHANGE, &stop))
            }
            Attacker::MoveOut(name) => {
                let (inside, outside) = (at(name), ground.limbo.join("moved-out"));
                std::thread::spawn(move || move_out(&inside, &outside, &stop))
            }
            Attacker::Grow(name) => {
                let place = at(name);
                fs::write(&place, "a line of a file that grows\n")?;
                std::thread::spawn(move || grow(&place, &stop))
            }
            Attacker::Retarget(link, one, other) => {
                let (link, targets) = (at(link), [ground.fill(one), ground.fill(other)]);
                std::thread::spawn(move || retarget(&link, &targets, &stop))
            }
        };
        self.threads.push(thread);
        Ok(())
    }

    /// Whether there is any.
    pub(crate) fn any(&self) -> bool {
        !self.threads.is_empty()
    }

    /// Ends them all; answers how often they changed something.
    pub(crate) fn stop(&mut self) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        self.threads.drain(..).map(|thread| thread.join().unwrap_or(0)).sum()
    }
}

impl Drop for Attackers {
    fn drop(&mut self) {
        self.stop();
    }
}

fn swap(one: &Path, other: &Path, flags: RenameFlags, stop: &AtomicBool) -> u64 {
    let mut done = 0;
    // An even number of exchanges leaves everything where it was.
    while !stop.load(Ordering::Relaxed) || done % 2 == 1 {
        match rustix::fs::renameat_with(CWD, one, CWD, other, flags) {
            Ok(()) => done += 1,
            // One of them is in the trash at the moment; when the race is over there is nothing to put back.
            Err(_) if stop.load(Ordering::Relaxed) => break,
            Err(_) => std::thread::yield_now(),
        }
    }
    done
}

fn move_out(inside: &Path, outside: &Path, stop: &AtomicBool) -> u64 {
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        if fs::rename(inside, outside).is_ok() {
            std::thread::yield_now();
            // A server may have put something in the way for a moment while it takes a change back.
            let returned = (0..RETURNS_MAX).any(|_| {
                let returned = fs::rename(outside, inside).is_ok();
                if !returned {
                    std::thread::yield_now();
                }
                returned
            });
            if !returned {
                break;
            }
            done += 1;
        }
    }
    done
}

fn grow(place: &Path, stop: &AtomicBool) -> u64 {
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) && done < GROWN_BYTES_MAX {
        let line = b"one more line\n";
        let appended = fs::OpenOptions::new()
            .append(true)
            .open(place)
            .and_then(|mut file| io::Write::write(&mut file, line));
        done += appended.map_or(0, |bytes| bytes as u64);
    }
    done
}

fn retarget(link: &Path, targets: &[String; 2], stop: &AtomicBool) -> u64 {
    let fresh: PathBuf = link.with_extension("next");
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) || done % 2 == 1 {
        let target = &targets[usize::from(done % 2 == 0)];
        let turned = symlink(target, &fresh).and_then(|()| fs::rename(&fresh, link));
        done += u64::from(turned.is_ok());
        if turned.is_err() && stop.load(Ordering::Relaxed) {
            break;
        }
    }
    done
}
