//! The least that is needed to speak with servers over HTTP from here: a process that serves, and a connection to it.

mod connection;
mod server;

pub(crate) use connection::{Answer, Connection};
pub(crate) use server::Server;
