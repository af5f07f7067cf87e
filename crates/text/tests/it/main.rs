//! What holds for any text.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod patch;
mod properties;
