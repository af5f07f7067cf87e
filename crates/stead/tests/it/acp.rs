//! Tests of `stead acp` in which the test plays both the editor and the agent.

mod attacks;
mod harness;
#[cfg(feature = "tool-tests")]
mod official_libraries;
mod roots;
mod scenarios;
mod shutdown;
mod tickets;
mod turns;
mod unsaved_buffers;
