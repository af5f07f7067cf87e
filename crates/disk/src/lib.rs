//! Every touch of a real file, beneath an open root handle. Owns confinement, the calls that change a directory, the
//! state directory with its blobs and locks, watches, the second wall, the clock and randomness.
//!
//! Promises: a path reaches the kernel only as a checked [`path::RelPath`] or [`path::Name`] below an open handle; the
//! kernel never follows a link for us; a special file is never opened; every handle closes on exec; an error never
//! holds a path. Never decides what may be changed, never records anything.

mod attributes;
mod blobs;
mod canonical;
mod clock;
mod confines;
mod directory;
mod error;
pub mod faults;
mod handles;
mod lock_file;
mod mount_points;
mod names;
mod network;
mod open_file;
mod random;
mod remove;
mod root;
mod stage;
mod stat;
mod state;
mod sys;
pub mod terminal;
mod users;
mod walk;
pub mod wall;
pub mod watch;

pub use attributes::{Attribute, Attributes};
pub use blobs::Durable;
pub use canonical::{LINKS_MAX, STEPS_MAX};
pub use clock::{SystemClock, work_in_background};
pub use confines::Resolver;
pub use directory::{Directory, Listed};
pub use error::{DiskError, ErrorKind};
pub use handles::{Handles, allow_many_handles};
pub use lock_file::{LockFile, Mode};
pub use mount_points::way_to;
pub use names::Over;
pub use open_file::OpenFile;
pub use random::random_bytes;
pub use remove::Removed;
pub use root::{Root, RootOptions};
pub use stage::{Source, Staged, TEMP_PREFIX};
pub use stat::{FileId, FileType, Last, Space, Stamp, Stat};
pub use state::StateDirectory;
pub use users::users;
pub use walk::{Ended, Measured, Unread, Visit, WalkEnd, WalkLimits, Walked, measure_tree, walk};
