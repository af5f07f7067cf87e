//! Tests of the ACP proxy between a scripted editor and a scripted agent, over a workspace in memory.

mod buffers;
mod conductor;
mod editor_files;
mod files;
mod forwarding;
mod harness;
mod permission;
mod review;
mod turns;
