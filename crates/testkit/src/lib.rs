//! Fixtures for tests. Owns a workspace that lives in memory ([`MemoryWorkspace`]): simple and obviously right, so
//! that engine tests run without a disk and real workspaces have something to be compared with; and the attack corpus
//! ([`attack`]) with its runner. Never shipped.

pub mod acp;
pub mod attack;
pub mod conformance;
pub mod crash;
pub mod instruments;
mod memory;
pub mod patches;
pub mod race;
pub mod relay;
pub mod replay;
pub mod rig;
pub mod scenario;
pub mod several;
pub mod story;
pub mod tls;
pub mod workload;

pub use memory::MemoryWorkspace;
