//! Checks of a request head before authentication, in this order: framing, Host, Origin, Sec-Fetch-Site. The head
//! checks protect a server on the local machine against cross-site requests and DNS rebinding.

use axum::http::{HeaderMap, Uri, header, uri::Authority};

use super::errors::HttpRejection;

/// The hosts and origins that the HTTP server accepts.
#[derive(Debug, Clone, Default)]
pub struct AllowedHosts {
    accepted_schemes: AcceptedHttpOriginSchemes,
    /// The port that clients must use with the loopback host names, or `None` for a server on a Unix socket.
    port: Option<u16>,
    /// The additional hosts from the configuration, in lower case.
    hosts: Vec<String>,
    /// The origins that are allowed in addition to the server's own origin.
    origins: Vec<String>,
}

const LOOPBACK_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
/// The Sec-Fetch-Site values of browser requests that no other site has caused.
const SAME_SITE_FETCH_VALUES: [&[u8]; 2] = [b"same-origin", b"none"];

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum AcceptedHttpOriginSchemes {
    /// The scheme of an origin may be `http`, or `https` because a proxy may provide TLS.
    #[default]
    HttpOrHttps,
    HttpsOnly,
}

impl AcceptedHttpOriginSchemes {
    fn names(self) -> &'static [&'static str] {
        match self {
            AcceptedHttpOriginSchemes::HttpOrHttps => &["http", "https"],
            AcceptedHttpOriginSchemes::HttpsOnly => &["https"],
        }
    }

    fn default_port(self) -> u16 {
        match self {
            AcceptedHttpOriginSchemes::HttpOrHttps => 80,
            AcceptedHttpOriginSchemes::HttpsOnly => 443,
        }
    }
}

impl AllowedHosts {
    /// Allows requests to the loopback host names with the given port.
    pub fn loopback(port: u16) -> Self {
        Self { port: Some(port), ..Self::default() }
    }

    /// Allows requests to the loopback host names with the given port, for a server with TLS.
    pub fn secure_loopback(port: u16) -> Self {
        Self { accepted_schemes: AcceptedHttpOriginSchemes::HttpsOnly, ..Self::loopback(port) }
    }

    /// Allows requests to the loopback host names with any port, for a server on a Unix socket.
    pub fn unix_socket() -> Self {
        Self::default()
    }

    /// Allows requests whose Host header names `host`. A port in `host`, such as the port of a proxy, must also be in
    /// the Host header.
    pub fn add_host(&mut self, host: &str) {
        self.hosts.push(normalize_host(host));
    }

    /// Allows requests from pages of the web origin `origin`.
    pub fn add_origin(&mut self, origin: &str) {
        self.origins.push(origin.trim_end_matches('/').to_ascii_lowercase());
    }

    pub(super) fn check_request_head(&self, target: &Uri, headers: &HeaderMap) -> Result<(), HttpRejection> {
        let bad = HttpRejection::bad_request;
        // A request with both Transfer-Encoding and Content-Length is ambiguous. Such a request cannot be detected
        // here, because hyper removes the Content-Length. Therefore every request with a Transfer-Encoding is refused.
        if headers.contains_key(header::TRANSFER_ENCODING) {
            return Err(bad("Transfer-Encoding is not supported; send Content-Length"));
        }
        let mut values = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (values.next(), values.next()) else {
            return Err(bad("the request must have exactly one Host header"));
        };
        let host = host
            .to_str()
            .ok()
            .and_then(parse_authority)
            .ok_or(bad("the Host header is malformed; send HOST or HOST:PORT"))?;
        self.check_host(&host)?;
        if let Some(other) = target.authority() {
            self.check_host(other)?;
        }
        self.check_origin(headers, &host)?;
        let mut fetched = headers.get_all("sec-fetch-site").iter();
        if fetched.any(|site| !SAME_SITE_FETCH_VALUES.contains(&site.as_bytes())) {
            return Err(HttpRejection::forbidden(
                "the request comes from a web page of another site and was refused; start the server with --origin URL to allow the site",
            ));
        }
        Ok(())
    }

    fn check_host(&self, host: &Authority) -> Result<(), HttpRejection> {
        let name = normalize_host(host.host());
        let with_port = host.port_u16().map_or(name.clone(), |port| format!("{name}:{port}"));
        let port_matches =
            self.port.is_none_or(|port| host.port_u16().unwrap_or(self.accepted_schemes.default_port()) == port);
        let is_configured = self.hosts.contains(&with_port) || (port_matches && self.hosts.contains(&name));
        if is_configured || (port_matches && LOOPBACK_HOSTS.contains(&name.as_str())) {
            return Ok(());
        }
        Err(HttpRejection::forbidden(
            "the host name in the Host header is not allowed; use the address of the server, or start the server with --host HOST",
        ))
    }

    fn check_origin(&self, headers: &HeaderMap, host: &Authority) -> Result<(), HttpRejection> {
        let server_origin = |scheme: &str| format!("{scheme}://{}", host.as_str().to_ascii_lowercase());
        let is_allowed = |origin: &str| {
            let origin = origin.to_ascii_lowercase();
            self.accepted_schemes.names().iter().any(|scheme| origin == server_origin(scheme))
                || self.origins.contains(&origin)
        };
        let mut values = headers.get_all(header::ORIGIN).iter();
        if values.all(|origin| origin.to_str().is_ok_and(is_allowed)) {
            return Ok(());
        }
        Err(HttpRejection::forbidden(
            "the web origin in the Origin header is not allowed; start the server with --origin URL to allow it",
        ))
    }
}

fn normalize_host(host: &str) -> String {
    let host = host.to_ascii_lowercase();
    host.strip_suffix('.').map_or(host.clone(), str::to_owned)
}

/// A Host header with user information or with an empty host is rejected.
fn parse_authority(text: &str) -> Option<Authority> {
    let authority: Authority = text.parse().ok()?;
    let is_plain = !text.contains('@') && !authority.host().is_empty();
    let port = text.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
    let port_is_valid = port.is_none_or(|port| port.parse::<u16>().is_ok());
    (is_plain && port_is_valid).then_some(authority)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn check_status(target: &str, headers: &[(&str, &str)]) -> u16 {
        let mut names = AllowedHosts::loopback(7777);
        names.add_host("files.example");
        names.add_host("proxied.example:8443");
        names.add_origin("https://app.example/");
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: header::HeaderName = name.parse().unwrap();
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        match names.check_request_head(&target.parse().unwrap(), &map) {
            Ok(()) => 200,
            Err(rejection) => rejection.status.as_u16(),
        }
    }

    #[test]
    fn unknown_hosts_are_refused() {
        let hosts = [
            ("localhost:7777", 200),
            ("LOCALHOST.:7777", 200),
            ("127.0.0.1:7777", 200),
            ("[::1]:7777", 200),
            ("files.example", 200),
            ("files.example:7777", 200),
            ("files.example:9", 403),
            ("proxied.example:8443", 200),
            ("proxied.example:7777", 403),
            ("localhost", 403),
            ("localhost:80", 403),
            ("evil.example:7777", 403),
            ("127.0.0.1.evil.example:7777", 403),
            ("0.0.0.0:7777", 403),
            ("127.1:7777", 403),
            ("localhost@evil.example", 400),
            ("user@localhost:7777", 400),
            ("localhost:77777", 400),
            ("localhost:", 400),
            ("", 400),
            ("local host", 400),
        ];
        for (host, status) in hosts {
            assert_eq!(check_status("/mcp", &[("host", host)]), status, "{host}");
        }
        assert_eq!(check_status("/mcp", &[]), 400);
        assert_eq!(check_status("/mcp", &[("host", "localhost:7777"), ("host", "localhost:7777")]), 400);
        assert_eq!(check_status("http://evil.example/mcp", &[("host", "localhost:7777")]), 403);
        assert_eq!(check_status("http://localhost:7777/mcp", &[("host", "localhost:7777")]), 200);
    }

    #[test]
    fn foreign_origins_are_refused() {
        let host = ("host", "localhost:7777");
        let origins = [
            ("http://localhost:7777", 200),
            ("https://app.example", 200),
            ("https://app.example.evil.example", 403),
            ("http://127.0.0.1:7777", 403),
            ("http://localhost:7778", 403),
            ("https://evil.example", 403),
            ("null", 403),
            ("", 403),
        ];
        for (origin, status) in origins {
            assert_eq!(check_status("/mcp", &[host, ("origin", origin)]), status, "{origin}");
        }
        assert_eq!(check_status("/mcp", &[host]), 200);
        let twice = [host, ("origin", "http://localhost:7777"), ("origin", "https://evil.example")];
        assert_eq!(check_status("/mcp", &twice), 403);
    }

    #[test]
    fn cross_site_requests_are_refused() {
        let host = ("host", "localhost:7777");
        for (site, status) in
            [("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403), ("odd", 403)]
        {
            assert_eq!(check_status("/mcp", &[host, ("sec-fetch-site", site)]), status, "{site}");
        }
        assert_eq!(check_status("/mcp", &[host, ("transfer-encoding", "chunked")]), 400);
    }
}
