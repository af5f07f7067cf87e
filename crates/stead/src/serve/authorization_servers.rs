//! The authorization servers that the operator advertises to clients. Their URLs must be https, or http on loopback.

use stead_protocols::http::{AuthorizationServers, UrlScheme};

use super::ServeFlags;
use crate::output::CommandError;

/// The advertised servers; `None` if none is configured.
pub(super) fn authorization_servers(flags: &ServeFlags) -> Result<Option<AuthorizationServers>, CommandError> {
    let servers = &flags.authorization_server;
    if let Some(bad) = servers.iter().find(|server| !is_allowed_url(server)) {
        return Err(CommandError::Usage(format!(
            "--authorization-server {bad}: the URL must start with https:// (or http://localhost) and have no spaces or quotes"
        )));
    }
    let is_private = flags.tls_cert.is_some() || flags.behind_proxy;
    let scheme = if is_private { UrlScheme::Https } else { UrlScheme::Http };
    Ok((!servers.is_empty()).then(|| AuthorizationServers { servers: servers.clone(), scheme }))
}

fn is_allowed_url(address: &str) -> bool {
    let near = ["http://localhost", "http://127.0.0.1", "http://[::1]"];
    let is_near = near
        .iter()
        .any(|near| address.strip_prefix(near).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/'])));
    let rest = address.strip_prefix("https://").unwrap_or_default();
    let is_private = !rest.is_empty() && !rest.starts_with('/');
    let is_plain = address.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\<>".contains(&byte));
    (is_near || is_private) && is_plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorization_url_must_be_https_or_loopback() {
        for (address, fits) in [
            ("https://login.example", true),
            ("https://login.example:8443/realms/one", true),
            ("http://localhost:9000", true),
            ("http://127.0.0.1/", true),
            ("http://localhost.evil.example", false),
            ("http://login.example", false),
            ("https://", false),
            ("https:///path", false),
            ("https://login.example/\" other=\"x", false),
            ("login.example", false),
            ("", false),
        ] {
            assert_eq!(is_allowed_url(address), fits, "{address}");
        }
    }
}
