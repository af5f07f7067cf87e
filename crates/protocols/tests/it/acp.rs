//! The ACP proxy between a scripted editor and agent, over a workspace in memory.

mod buffers;
mod conductor;
mod editor_files;
mod files;
mod forwarding;
mod harness;
mod permission;
mod review;
mod turns;
