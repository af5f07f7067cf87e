//! What holds for any text.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod edit_properties;
mod edits;
mod patch;
mod properties;
