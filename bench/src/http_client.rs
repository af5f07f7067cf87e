//! A minimal HTTP client and a server process, for benchmarks and the soak test.

mod connection;
mod server;

pub(crate) use connection::{BenchHttpClientConnection, HttpAnswer};
pub(crate) use server::HttpServerProcess;
