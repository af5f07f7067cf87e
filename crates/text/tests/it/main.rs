//! The integration tests of the text crate, with tables of cases and randomly generated texts.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod edit_properties;
mod edits;
mod patch;
mod properties;
