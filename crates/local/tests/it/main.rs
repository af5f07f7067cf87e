//! The local workspace through the engine.
//!
//! `basics`: one call of each kind. `corruption`: known ways of damage. `faults`: every system call fails, and the
//! process dies at every one. `index`: searches with and without the index. `patch`: the shared table on real files.
//! `quota`: counting and refusals. `restart`: state that survives a process and clock changes. `integrity`: retained
//! versions and the journal under attack. `race`: concurrent path swaps. `kill`: the process is killed at random
//! moments. `pins`: stored words. `older`: a state directory of 0.1.0. `several`: four processes on one tree.
//! `hostile`: hostile patterns and trees. `large_files`: search in large files. `watch`, `watch_load` and
//! `watch_random`: external changes, compared with an `event_follower`. `support`: a workspace in a temporary
//! directory. `walk`: unusual trees for find and search.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod basics;
mod conformance;
mod corruption;
mod editor;
mod event_follower;
mod faults;
mod hostile;
mod index;
mod integrity;
mod kill;
mod large_files;
mod model;
mod moved;
mod older;
mod patch;
mod pins;
mod quota;
mod race;
mod recovery;
mod restart;
mod scenarios;
mod several;
mod support;
mod walk;
mod watch;
mod watch_load;
mod watch_random;
mod workspace_registry;
