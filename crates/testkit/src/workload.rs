//! A random workload whose results a model predicts. The child process makes the changes, and the parent checks them
//! with the same model. Written content contains serial numbers, so that two different changes do not leave the same
//! tree by accident.

mod child;
mod model;
mod tree;

pub use child::{CrashTestChildConfig, CrashTestChildMessage, WorkloadChangeAcknowledgement, run_child};
pub use model::{CrashTestWorkloadStep, WorkspaceReferenceModel};
pub use tree::{CrashTestFileVersionByPath, ModelItem, TestWorkspaceWalkResult, walk_workspace};
