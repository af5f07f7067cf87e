//! A random workload with predictable results: a model of the tree, the trash and the undo history, and changes that
//! the model expects to succeed.
//!
//! The child that makes the changes and the parent that checks them after its death share the model. Contents carry
//! serial numbers, so no two changes leave the same tree by accident.

mod child;
mod model;
mod tree;

pub use child::{WorkloadChangeAcknowledgement, WorkloadChildMessage, WorkloadOrders, run_child};
pub use model::{CrashTestWorkloadStep, WorkspaceReferenceModel};
pub use tree::{CrashTestFileVersionByPath, ModelItem, TestWorkspaceWalkResult, walk_workspace};
