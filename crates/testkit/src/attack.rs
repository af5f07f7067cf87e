//! The attack corpus: cases as data, the ground they are fought on, and the subjects that are attacked.
//!
//! Owns the runner and its oracles. Promises: every case is judged on what must always hold, not only on what it asks;
//! a case that cannot run says so by name. The control servers in here are wrong on purpose; nothing else uses them.

mod case;
mod check;
mod engine;
mod ground;
mod http;
mod ledger;
mod matrix;
mod mcp;
mod naive;
mod race;
mod run;
mod snapshot;
mod step;
mod subject;
mod suite;
mod time;

pub use case::{Case, Control, Ending, Group, Waiting, groups};
pub use engine::{EngineSubject, ledger_of};
pub use ground::may_make_devices;
pub use http::{HttpSubject, HttpWay};
pub use matrix::{MATRIX, matrix};
pub use mcp::McpSubject;
pub use naive::Naive;
pub use run::{Fault, Needs, Verdict, Weight, needs, portions, run, run_together};
pub use subject::{Asked, Chore, Ledger, Opener, Opening, Recorded, Reply, Subject};
pub use suite::{Namespace, Report, Suite, Where, in_a_namespace};
