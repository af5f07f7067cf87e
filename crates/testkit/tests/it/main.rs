//! What the fixtures are for, run on the engine: `attacks` is the corpus with its controls, `descriptors` what a program
//! that the server starts would inherit. `walled` keeps both the subjects and the controls away from the real machine.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking and tells what it counted"
)]

mod attacks;
mod descriptors;
mod walled;
