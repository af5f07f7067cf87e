//! Which calls may run, which must be told, which wait for a person. Pure: rules in, verdict out.

mod tier;

pub use tier::{Tier, UnknownTier};
