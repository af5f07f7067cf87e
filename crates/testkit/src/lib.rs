//! Fixtures and test suites that the other crates use; this crate is never shipped. [`MemoryWorkspace`] keeps a
//! workspace in memory, so engine tests need no disk. [`attack`] holds the attack corpus and its runner.

pub mod acp_scenario;
pub mod attack;
pub mod client_story;
pub mod conformance;
pub mod crash;
pub mod engine_fixture;
pub mod external_tools;
pub mod http_client;
pub mod journal_replay;
pub mod krux_scenario;
mod memory;
pub mod multi_process;
pub mod native;
pub mod next_steps;
pub mod operation_schemas;
pub mod patch_cases;
pub mod pin;
pub mod race;
pub mod session_fixture;
pub mod socket_relay;
pub mod stress;
pub mod test_certificate;
pub mod wait;
pub mod workload;

pub use memory::MemoryWorkspace;
pub use next_steps::{ErrorDetailsJson, error_json, hint_text};
