//! A minimal HTTP client and a server process, for benchmarks and the soak test.

mod connection;
mod server;

pub(crate) use connection::{HttpAnswer, XtaskHttpClientConnection};
pub(crate) use server::HttpServerProcess;
