//! Attacker threads change the workspace tree while an attack case runs. A stopped attacker restores the paths that it
//! swapped.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::fs::{CWD, RenameFlags};

use super::{fixture::AttackFixture, setup_step::AttackerAction};

const GROWN_BYTES_MAX: u64 = 32 << 20;

const MOVE_BACK_TRIES_MAX: usize = 100_000;

const FIRST_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(crate) struct AttackerThreads {
    threads: Vec<(JoinHandle<u64>, Arc<AttackerSignals>)>,
}

#[derive(Default)]
struct AttackerSignals {
    stop: AtomicBool,
    looks: AtomicU64,
}

impl AttackerSignals {
    /// Returns whether the attacker thread must stop, and counts how often the thread asked.
    fn is_stopped(&self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.stop.load(Ordering::Relaxed)
    }

    fn wait_for_first_attempt(&self) -> io::Result<()> {
        let started = Instant::now();
        // The thread reads the flag a second time only after its first attempt.
        while self.looks.load(Ordering::Relaxed) < 2 {
            if started.elapsed() > FIRST_ATTEMPT_TIMEOUT {
                return Err(io::Error::other("an attacker did not start"));
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

impl AttackerThreads {
    pub(crate) fn start(&mut self, ground: &AttackFixture, attacker: &AttackerAction) -> io::Result<()> {
        let signals = Arc::new(AttackerSignals::default());
        let stop = Arc::clone(&signals);
        let at = |name: &str| ground.workspace.join(ground.substitute_places(name));
        let thread = match attacker {
            AttackerAction::SwapNames(one, other) => {
                let (one, other) = (at(one), at(other));
                std::thread::spawn(move || swap_names(&one, &other, RenameFlags::EXCHANGE, &stop))
            }
            AttackerAction::MoveDirectoryOut(name) => {
                let (inside, outside) = (at(name), ground.attacker_scratch.join("moved-out"));
                std::thread::spawn(move || move_out_and_back(&inside, &outside, &stop))
            }
            AttackerAction::GrowFile(name) => {
                let place = at(name);
                fs::write(&place, "a line of a file that grows\n")?;
                std::thread::spawn(move || grow_file(&place, &stop))
            }
            AttackerAction::RetargetLink(link, one, other) => {
                let (link, targets) = (at(link), [ground.substitute_places(one), ground.substitute_places(other)]);
                std::thread::spawn(move || retarget_link(&link, &targets, &stop))
            }
        };
        self.threads.push((thread, Arc::clone(&signals)));
        signals.wait_for_first_attempt()
    }

    pub(crate) fn has_any(&self) -> bool {
        !self.threads.is_empty()
    }

    pub(crate) fn stop_all(&mut self) -> u64 {
        for (_, signals) in &self.threads {
            signals.stop.store(true, Ordering::SeqCst);
        }
        self.threads.drain(..).map(|(thread, _)| thread.join().unwrap_or(0)).sum()
    }
}

impl Drop for AttackerThreads {
    fn drop(&mut self) {
        self.stop_all();
    }
}

fn swap_names(one: &Path, other: &Path, flags: RenameFlags, stop: &AttackerSignals) -> u64 {
    let mut done = 0;
    // An even number of swaps restores the initial state.
    while !stop.is_stopped() || done % 2 == 1 {
        match rustix::fs::renameat_with(CWD, one, CWD, other, flags) {
            Ok(()) => done += 1,
            // If one of the two paths is in the trash after the race, there is nothing to restore.
            Err(_) if stop.is_stopped() => break,
            Err(_) => std::thread::yield_now(),
        }
    }
    done
}

fn move_out_and_back(inside: &Path, outside: &Path, stop: &AttackerSignals) -> u64 {
    let mut done = 0;
    while !stop.is_stopped() {
        if fs::rename(inside, outside).is_ok() {
            std::thread::yield_now();
            // A server may briefly occupy the path while it rolls back a change.
            let returned = (0..MOVE_BACK_TRIES_MAX).any(|_| {
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

fn grow_file(place: &Path, stop: &AttackerSignals) -> u64 {
    let mut done = 0;
    while !stop.is_stopped() && done < GROWN_BYTES_MAX {
        let line = b"one more line\n";
        let appended =
            fs::OpenOptions::new().append(true).open(place).and_then(|mut file| io::Write::write(&mut file, line));
        done += appended.map_or(0, |bytes| bytes as u64);
    }
    done
}

fn retarget_link(link: &Path, targets: &[String; 2], stop: &AttackerSignals) -> u64 {
    let fresh: PathBuf = link.with_extension("next");
    let mut done = 0;
    while !stop.is_stopped() || done % 2 == 1 {
        let target = &targets[usize::from(done % 2 == 0)];
        let turned = symlink(target, &fresh).and_then(|()| fs::rename(&fresh, link));
        done += u64::from(turned.is_ok());
        if turned.is_err() && stop.is_stopped() {
            break;
        }
    }
    done
}
