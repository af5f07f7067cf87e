//! An HTTP client for tests that send valid requests over TCP.

use std::{io, time::Duration};

use ureq::{Agent, http::Request};

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// An HTTP client of one server, which keeps its connection for the next request.
pub struct TestHttpClient {
    agent: Agent,
    address: String,
}

impl TestHttpClient {
    /// Creates a client of the server that listens at this address.
    pub fn new(address: &str) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .timeout_global(Some(RESPONSE_TIMEOUT));
        Self { agent: config.build().new_agent(), address: address.to_owned() }
    }

    /// Sends a request line such as `GET /health`, and returns the response's status and body. If `token` is empty, the
    /// request contains no token.
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
