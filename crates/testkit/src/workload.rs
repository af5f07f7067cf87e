//! A mixed workload whose every outcome is known beforehand: a model of the tree, the trash and what can be undone, and
//! changes chosen at random that the model says will succeed.
//!
//! The child that makes the changes and the parent that judges it after its death share the model. Promises: contents
//! are told apart by their serial number, so no two changes leave the same tree by accident.

mod child;
mod model;
mod tree;

pub use child::{Ack, Line, Work, run_child};
pub use model::{Model, Step};
pub use tree::{Found, Item, Places, look_at};
