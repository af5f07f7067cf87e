//! Tests the promises of the disk crate on a real file system.

#[cfg(test)]
mod child_process;
#[cfg(all(test, feature = "faults"))]
mod faults;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod fs_events;
#[cfg(test)]
mod hidden;
#[cfg(test)]
mod landlock;
#[cfg(test)]
mod mounts;
#[cfg(test)]
mod races;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod remove;
#[cfg(test)]
mod rename;
#[cfg(test)]
mod resolve;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod state_directory;
#[cfg(test)]
mod walk;
