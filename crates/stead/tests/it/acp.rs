//! `stead acp` as an editor starts it, with an agent that is played here.

mod attacks;
mod ending;
mod peers;
mod puppet;
mod roots;
mod scenarios;
mod tickets;
mod turns;
mod unsaved;
