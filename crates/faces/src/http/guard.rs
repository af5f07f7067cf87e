//! Who may knock: what is judged of a request before anybody asks whose token it brings. In this order: framing, Host,
//! Origin, Sec-Fetch-Site. A page of another site must not reach a server on this machine, whatever name it gave it and
//! whatever a browser sends along.
//!
//! Pure: a head comes in, a refusal comes out. Never looks at a body, a token or a file.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, Uri, header, uri::Authority};

use super::limits::RETRY_SECONDS;

/// The names under which the server is reached.
#[derive(Debug, Clone, Default)]
pub struct Names {
    scheme: Scheme,
    /// The port of this machine's own names; nothing where there is none.
    port: Option<u16>,
    /// What else the server is called, as the operator wrote it, in lower case.
    hosts: Vec<String>,
    /// Origins of pages that may call, besides the server's own.
    origins: Vec<String>,
}

/// What a server on this machine is called.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
/// What browsers say of a request that no other site caused.
const OWN_FETCHES: [&[u8]; 2] = [b"same-origin", b"none"];

/// How clients write the server's address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Scheme {
    /// `http`, or `https` where a proxy stands in front.
    #[default]
    Either,
    /// `https`.
    Secure,
}

impl Scheme {
    fn words(self) -> &'static [&'static str] {
        match self {
            Scheme::Either => &["http", "https"],
            Scheme::Secure => &["https"],
        }
    }

    /// The port that is not said.
    fn port_unsaid(self) -> u16 {
        match self {
            Scheme::Either => 80,
            Scheme::Secure => 443,
        }
    }
}

/// Why a request goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turned {
    pub(super) status: StatusCode,
    pub(super) reason: &'static str,
    /// When it is worth coming back.
    pub(super) retry_seconds: u64,
}

impl Turned {
    pub(super) fn new(status: StatusCode, reason: &'static str) -> Self {
        Self { status, reason, retry_seconds: RETRY_SECONDS }
    }

    /// Not before this time is over.
    pub(super) fn after(self, wait: Duration) -> Self {
        let whole = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Self { retry_seconds: whole.max(RETRY_SECONDS), ..self }
    }
}

impl Names {
    /// Those of a server on this machine that listens on this port.
    pub fn loopback(port: u16) -> Self {
        Self { port: Some(port), ..Self::default() }
    }

    /// The same of one that makes connections private itself.
    pub fn secure_loopback(port: u16) -> Self {
        Self { scheme: Scheme::Secure, ..Self::loopback(port) }
    }

    /// Those of a server that no browser can reach: it has no port.
    pub fn socket() -> Self {
        Self::default()
    }

    /// Takes one more host, with the port that clients say, if they do: a proxy may stand there.
    pub fn add_host(&mut self, host: &str) {
        self.hosts.push(plain(host));
    }

    /// Takes one more origin.
    pub fn add_origin(&mut self, origin: &str) {
        self.origins.push(origin.trim_end_matches('/').to_ascii_lowercase());
    }

    /// Judges the head of a request.
    pub(super) fn judge(&self, target: &Uri, headers: &HeaderMap) -> Result<(), Turned> {
        let bad = |reason| Turned::new(StatusCode::BAD_REQUEST, reason);
        // The library below takes a length away that comes beside it, so the two together cannot be told from it alone.
        if headers.contains_key(header::TRANSFER_ENCODING) {
            return Err(bad("a body says its length: send Content-Length and no Transfer-Encoding"));
        }
        let mut named = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return Err(bad("a request names its host, once"));
        };
        let host = host.to_str().ok().and_then(authority).ok_or(bad("the host is malformed"))?;
        self.judge_host(&host)?;
        if let Some(other) = target.authority() {
            self.judge_host(other)?;
        }
        self.judge_origin(headers, &host)?;
        let mut fetched = headers.get_all("sec-fetch-site").iter();
        if fetched.any(|site| !OWN_FETCHES.contains(&site.as_bytes())) {
            return Err(Turned::new(StatusCode::FORBIDDEN, "a page of another site asked"));
        }
        Ok(())
    }

    fn judge_host(&self, host: &Authority) -> Result<(), Turned> {
        let alone = plain(host.host());
        let whole = host.port_u16().map_or(alone.clone(), |port| format!("{alone}:{port}"));
        let fits = self.port.is_none_or(|own| host.port_u16().unwrap_or(self.scheme.port_unsaid()) == own);
        let is_named = self.hosts.contains(&whole) || (fits && self.hosts.contains(&alone));
        if is_named || (fits && LOOPBACK.contains(&alone.as_str())) {
            return Ok(());
        }
        Err(Turned::new(StatusCode::FORBIDDEN, "this server is not known by that host; see --host"))
    }

    /// An origin is the server's own, or one that the operator named.
    fn judge_origin(&self, headers: &HeaderMap, host: &Authority) -> Result<(), Turned> {
        let own = |scheme: &str| format!("{scheme}://{}", host.as_str().to_ascii_lowercase());
        let known = |origin: &str| {
            let origin = origin.to_ascii_lowercase();
            self.scheme.words().iter().any(|scheme| origin == own(scheme)) || self.origins.contains(&origin)
        };
        let mut named = headers.get_all(header::ORIGIN).iter();
        if named.all(|origin| origin.to_str().is_ok_and(known)) {
            return Ok(());
        }
        Err(Turned::new(StatusCode::FORBIDDEN, "pages of that origin may not call; see --origin"))
    }
}

/// A host as a list has it: lower case, without the dot that only ends it.
fn plain(host: &str) -> String {
    let host = host.to_ascii_lowercase();
    host.strip_suffix('.').map_or(host.clone(), str::to_owned)
}

/// A host with perhaps a port, and nothing else: no user, no empty name.
fn authority(text: &str) -> Option<Authority> {
    let authority: Authority = text.parse().ok()?;
    let is_plain = !text.contains('@') && !authority.host().is_empty();
    let said_port = text.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
    let port_fits = said_port.is_none_or(|port| port.parse::<u16>().is_ok());
    (is_plain && port_fits).then_some(authority)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn judged(target: &str, headers: &[(&str, &str)]) -> u16 {
        let mut names = Names::loopback(7777);
        names.add_host("files.example");
        names.add_host("proxied.example:8443");
        names.add_origin("https://app.example/");
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: header::HeaderName = name.parse().unwrap();
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        match names.judge(&target.parse().unwrap(), &map) {
            Ok(()) => 200,
            Err(turned) => turned.status.as_u16(),
        }
    }

    #[test]
    fn a_host_is_known_or_refused() {
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
            assert_eq!(judged("/mcp", &[("host", host)]), status, "{host}");
        }
        assert_eq!(judged("/mcp", &[]), 400);
        assert_eq!(judged("/mcp", &[("host", "localhost:7777"), ("host", "localhost:7777")]), 400);
        assert_eq!(judged("http://evil.example/mcp", &[("host", "localhost:7777")]), 403);
        assert_eq!(judged("http://localhost:7777/mcp", &[("host", "localhost:7777")]), 200);
    }

    #[test]
    fn an_origin_is_the_own_one_or_named() {
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
            assert_eq!(judged("/mcp", &[host, ("origin", origin)]), status, "{origin}");
        }
        assert_eq!(judged("/mcp", &[host]), 200);
        let twice = [host, ("origin", "http://localhost:7777"), ("origin", "https://evil.example")];
        assert_eq!(judged("/mcp", &twice), 403);
    }

    #[test]
    fn what_another_site_caused_is_refused() {
        let host = ("host", "localhost:7777");
        for (site, status) in
            [("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403), ("odd", 403)]
        {
            assert_eq!(judged("/mcp", &[host, ("sec-fetch-site", site)]), status, "{site}");
        }
        assert_eq!(judged("/mcp", &[host, ("transfer-encoding", "chunked")]), 400);
    }
}
