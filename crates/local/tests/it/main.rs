//! Tests the local workspace through the engine.

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
mod leases;
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
