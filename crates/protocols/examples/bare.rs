//! A minimal HTTP server that reads a request and answers one kilobyte, built on the same libraries as stead. The
//! benchmark `cargo xtask bench http` compares stead's HTTP server with the minimal server of this example.
#![expect(clippy::print_stdout, reason = "an example says where it listens")]

use axum::{Router, body::Bytes, routing::get};

const RESPONSE_BYTES: usize = 1 << 10;

#[tokio::main(flavor = "multi_thread")]
async fn main() -> std::io::Result<()> {
    let answer = Bytes::from(vec![b'x'; RESPONSE_BYTES]);
    let asked = answer.clone();
    let routes = Router::new().route(
        "/",
        get(move || std::future::ready(asked.clone())).post(move |_: Bytes| std::future::ready(answer.clone())),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    axum::serve(listener, routes).await
}
