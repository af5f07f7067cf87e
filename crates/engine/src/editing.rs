//! How a dialect judges quoted edits. Values only: the operation is the same for all of them.

pub use text::{
    edit::{EmptyOld, Rescue, Rules, Terminators},
    locate::{Counting, Pass},
};
