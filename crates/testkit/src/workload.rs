//! A random workload with predictable results. A model predicts the tree, the trash and the undo history, and each
//! change is chosen so that it succeeds according to the model.
//!
//! The child process makes the changes, and after its death the parent checks them; both use the same model. Written
//! content contains serial numbers, so that two different changes do not leave the same tree by accident.

mod child;
mod model;
mod tree;

pub use child::{CrashTestChildConfig, CrashTestChildMessage, WorkloadChangeAcknowledgement, run_child};
pub use model::{CrashTestWorkloadStep, WorkspaceReferenceModel};
pub use tree::{CrashTestFileVersionByPath, ModelItem, TestWorkspaceWalkResult, walk_workspace};
