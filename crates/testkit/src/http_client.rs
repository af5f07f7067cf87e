//! An HTTP client for tests that send valid requests. Tests that send malformed requests, read only a part of a
//! response, or use another transport than TCP write to a socket themselves.

use std::{io, time::Duration};

use ureq::{Agent, http::Request};

/// How long the client waits for a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// A client of one server, which keeps its connection for the next request.
pub struct TestHttpClient {
    agent: Agent,
    address: String,
}

impl TestHttpClient {
    /// A client of the server that listens at this address.
    pub fn new(address: &str) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .timeout_global(Some(RESPONSE_TIMEOUT));
        Self { agent: config.build().new_agent(), address: address.to_owned() }
    }

    /// Sends a request with the given method and path, such as `GET /health`, and returns the status and the body of
    /// the response. If `token` is empty, no token is sent.
    pub fn send_request(
        &self,
        token: &str,
        line: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<(u16, Vec<u8>)> {
        let (method, path) = line.split_once(' ').ok_or(io::ErrorKind::InvalidInput)?;
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address))
            .header("Content-Type", "application/json");
        if !token.is_empty() {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body).map_err(io::Error::other)?;
        let response = self.agent.run(request).map_err(io::Error::other)?;
        let status = response.status().as_u16();
        Ok((status, response.into_body().into_with_config().limit(u64::MAX).read_to_vec().map_err(io::Error::other)?))
    }
}
