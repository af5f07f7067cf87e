//! The proxy between an editor and an agent, both played here line by line over a workspace in memory.

mod buffers;
mod chain;
mod editor;
mod files;
mod passing;
mod question;
mod reviewing;
mod stage;
mod turns;
