//! Tests of the test kit: `attacks` runs the attack corpus, `descriptors` checks which file descriptors a child process
//! would inherit. The module `sandbox` restricts a test process, so that attacks cannot reach the real machine.

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
