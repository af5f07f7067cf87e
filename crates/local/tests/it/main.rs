//! The local workspace as a caller sees it, through the engine.
//!
//! `basics`: one call of each kind and what is on disk afterwards. `corruption`: damage known from the field. `faults`: every system call fails, and the process dies
//! at every one. `index`: searches with and without the index. `patch`: the shared table on real files. `quota`: what is counted and refused. `restart`: what outlives a process and a clock that was set. `record`: kept bytes and the journal under attack. `race`: somebody swaps everything meanwhile. `kill`: the process
//! is killed at random moments. `several`:
//! four processes on one tree. `hostile`: patterns and trees made to hurt a search. `large`: search in large files. `watch`, `watch_load` and `watch_random`: what other programs do, held against a `follower`. `support`: a workspace in a temporary directory. `walk`: strange trees for find and search.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod basics;
mod conformance;
mod corruption;
mod editor;
mod estate;
mod faults;
mod follower;
mod hostile;
mod index;
mod kill;
mod large;
mod model;
mod patch;
mod quota;
mod race;
mod record;
mod recovery;
mod restart;
mod several;
mod stories;
mod support;
mod walk;
mod watch;
mod watch_load;
mod watch_random;
