//! A random workload whose results a model predicts. A child process makes the changes, and its parent process checks
//! the changes with the same model. Written content contains serial numbers, so that two different changes do not leave
//! the same tree by accident.

mod child;
mod model;
mod tree;

pub use child::{CrashTestChangeAcknowledgement, CrashTestChildConfig, CrashTestChildMessage, run_child};
pub use model::{CrashTestWorkloadStep, WorkspaceReferenceModel};
pub use tree::{CrashTestFileVersionByPath, ModelItem, TestWorkspaceWalkResult, walk_workspace};
