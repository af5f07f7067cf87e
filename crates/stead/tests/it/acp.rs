//! `stead acp` as an editor starts it, with an agent that is played here.

mod attacks;
mod harness;
mod official_libraries;
mod roots;
mod scenarios;
mod shutdown;
mod tickets;
mod turns;
mod unsaved_buffers;
