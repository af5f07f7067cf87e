//! Whom the operator names as the one who hands out tokens. An address that clients are sent to with a secret in mind is
//! private, or on this machine.

use faces::http::{Authorization, Way};

use super::ServeFlags;
use crate::show::Problem;

/// What clients are told; nothing where nobody is named.
pub(super) fn named(flags: &ServeFlags) -> Result<Option<Authorization>, Problem> {
    let servers = &flags.authorization_server;
    if let Some(bad) = servers.iter().find(|server| !is_fit(server)) {
        return Err(Problem::Usage(format!(
            "--authorization-server {bad}: an address begins with https:// (or http://localhost) and has no spaces or quotes"
        )));
    }
    let is_private = flags.tls_cert.is_some() || flags.behind_proxy;
    let way = if is_private { Way::Https } else { Way::Http };
    Ok((!servers.is_empty()).then(|| Authorization { servers: servers.clone(), way }))
}

/// Whether an address is one that clients may be sent to.
fn is_fit(address: &str) -> bool {
    let near = ["http://localhost", "http://127.0.0.1", "http://[::1]"];
    let is_near = near.iter().any(|near| {
        address.strip_prefix(near).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
    });
    let rest = address.strip_prefix("https://").unwrap_or_default();
    let is_private = !rest.is_empty() && !rest.starts_with('/');
    let is_plain = address.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\<>".contains(&byte));
    (is_near || is_private) && is_plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_private_or_near() {
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
            assert_eq!(is_fit(address), fits, "{address}");
        }
    }
}
