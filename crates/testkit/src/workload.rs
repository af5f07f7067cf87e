//! A random workload with predictable results: a model of the tree, the trash and the undo history, and changes that
//! the model expects to succeed.
//!
//! The child that makes the changes and the parent that checks them after its death share the model. Contents carry
//! serial numbers, so no two changes leave the same tree by accident.

mod child;
mod model;
mod tree;

pub use child::{ChangeAcknowledgement, WorkloadMessage, WorkloadOrders, run_child};
pub use model::{WorkloadModel, WorkloadStep};
pub use tree::{ModelItem, PathVersions, WorkspaceWalk, walk_workspace};
