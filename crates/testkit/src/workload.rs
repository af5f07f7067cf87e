//! A random workload with predictable results: a model of the tree, the trash and the undo history, and changes that
//! succeed according to the model.
//!
//! The child process makes the changes, and after its death the parent checks them; both use the same model. File
//! contents carry serial numbers, so that no two changes leave the same tree by accident.

mod child;
mod model;
mod tree;

pub use child::{CrashTestChildConfig, WorkloadChangeAcknowledgement, WorkloadChildMessage, run_child};
pub use model::{CrashTestWorkloadStep, WorkspaceReferenceModel};
pub use tree::{CrashTestFileVersionByPath, ModelItem, TestWorkspaceWalkResult, walk_workspace};
