//! Tests of the test kit.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking and tells what it counted"
)]

mod attacks;
mod descriptors;
mod sandbox;
