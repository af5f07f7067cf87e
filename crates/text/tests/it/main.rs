//! Integration tests: tables of cases, and properties of generated texts.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod edit_properties;
mod edits;
mod patch;
mod properties;
