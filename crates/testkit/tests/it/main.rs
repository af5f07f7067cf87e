//! Tests of the fixtures on the engine: `attacks` runs the corpus with its controls, `descriptors` checks which
//! descriptors a child process would inherit. `sandbox` keeps the subjects and the controls away from the real
//! machine.

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
