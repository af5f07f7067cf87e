//! What a server says when it starts: where it is, what it serves, and what to paste into a client.

use std::{io::IsTerminal, net::SocketAddr};

use serde_json::json;

use super::{ServeFlags, Taken};
use crate::{cli::Durability, show};

/// Where a client keeps its servers, and what is put there.
struct Snippet {
    place: &'static str,
    text: String,
}

/// Says it on standard error. The token is a secret: it is shown to a person at a terminal, or where that was asked for.
pub(crate) fn show(taken: &Taken, flags: &ServeFlags, workspace: &str, durability: Durability, token: &str) {
    show::remark(&format!("serving {workspace}, durability {}", word(durability)));
    let Some(address) = said(taken, flags, "need no token") else { return };
    show::remark(&format!(
        "on {address}: /mcp, /rpc, /v1 ({address}/v1/openapi.json), /events, /health, /metrics"
    ));
    if !is_shown(flags) {
        show::remark("make a token for each client: stead token create --principal agent:NAME");
        return;
    }
    show::remark(&format!("token of this run (ends with it): {token}"));
    for Snippet { place, text } in snippets(&address, token) {
        show::remark(&format!("{place}: {text}"));
    }
    show::remark(&format!(
        "try: curl -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' -d '{{}}' {address}/v1/list"
    ));
}

/// What common clients are told, each in its own form.
fn snippets(address: &str, token: &str) -> Vec<Snippet> {
    let url = format!("{address}/mcp");
    let headers = json!({ "Authorization": format!("Bearer {token}") });
    let typed = json!({ "type": "http", "url": url, "headers": headers });
    let plain = json!({ "url": url, "headers": headers });
    let snippet = |place, value: serde_json::Value| Snippet { place, text: value.to_string() };
    vec![
        snippet(".mcp.json (Claude Code)", json!({ "mcpServers": { "stead": typed } })),
        snippet(".cursor/mcp.json (Cursor)", json!({ "mcpServers": { "stead": plain } })),
        snippet(".vscode/mcp.json (VS Code)", json!({ "servers": { "stead": typed } })),
        snippet("settings.json (Zed)", json!({ "context_servers": { "stead": plain } })),
        Snippet {
            place: "config.toml (Codex, with the token in STEAD_TOKEN)",
            text: format!(
                "mcp_servers.stead = {{ url = \"{url}\", bearer_token_env_var = \"STEAD_TOKEN\" }}"
            ),
        },
    ]
}

fn word(durability: Durability) -> &'static str {
    match durability {
        Durability::Full => "full",
        Durability::Fast => "fast",
    }
}

fn is_shown(flags: &ServeFlags) -> bool {
    flags.print_token || std::io::stderr().is_terminal()
}

/// The address that clients write; a socket has none, and is told of here.
fn said(taken: &Taken, flags: &ServeFlags, own: &str) -> Option<String> {
    let (scheme, address) = match taken {
        Taken::Unix(_, place) => {
            show::remark(&format!("on the socket {}; processes of this user {own}", place.path().display()));
            return None;
        }
        Taken::Tcp(_, address) => ("http", address),
        Taken::Tls(_, address, _) => ("https", address),
    };
    Some(reached(scheme, address, flags.host.first().map(String::as_str)))
}

/// How it is reached: by the name that the operator gave it where it listens everywhere.
fn reached(scheme: &str, address: &SocketAddr, host: Option<&str>) -> String {
    match host {
        Some(host) if address.ip().is_unspecified() && host.contains(':') => format!("{scheme}://{host}"),
        Some(host) if address.ip().is_unspecified() => format!("{scheme}://{host}:{}", address.port()),
        Some(_) | None => format!("{scheme}://{address}"),
    }
}

/// The same where there are many workspaces: whoever reads the token may make and end them.
pub(crate) fn show_estate(
    taken: &Taken,
    flags: &ServeFlags,
    estate: &str,
    durability: Durability,
    token: &str,
) {
    show::remark(&format!("serving the workspaces of {estate}, durability {}", word(durability)));
    let Some(address) = said(taken, flags, "administer") else { return };
    show::remark(&format!(
        "on {address}: /v1/workspaces; with a token of a workspace /mcp, /rpc, /v1, /events"
    ));
    if !is_shown(flags) {
        show::remark(
            "make a token that administers: stead token create --workspaces DIR --estate --principal user:NAME",
        );
        return;
    }
    show::remark(&format!("token of this run, which administers (ends with it): {token}"));
    show::remark(&format!(
        "try: curl -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' -d '{{\"name\":\"one\"}}' \
         {address}/v1/workspaces"
    ));
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_client_is_told_in_its_own_form() {
        let snippets = snippets("http://127.0.0.1:7777", "t");
        let told: Vec<Value> =
            snippets.iter().filter_map(|one| serde_json::from_str(&one.text).ok()).collect();
        assert_eq!(told.len(), 4);
        for (at, way) in [
            (0, "/mcpServers/stead"),
            (1, "/mcpServers/stead"),
            (2, "/servers/stead"),
            (3, "/context_servers/stead"),
        ] {
            let server = told[at].pointer(way).unwrap();
            assert_eq!(server["url"], "http://127.0.0.1:7777/mcp");
            assert_eq!(server["headers"]["Authorization"], "Bearer t");
        }
        let codex: toml::Table = snippets[4].text.parse().unwrap();
        assert_eq!(codex["mcp_servers"]["stead"]["url"].as_str(), Some("http://127.0.0.1:7777/mcp"));
        assert!(!snippets[4].text.contains("Bearer"));
    }

    #[test]
    fn an_address_that_is_everywhere_is_written_as_clients_know_it() {
        let (wide, own) = ("0.0.0.0:8443".parse().unwrap(), "127.0.0.1:1".parse().unwrap());
        assert_eq!(reached("https", &wide, Some("files.example")), "https://files.example:8443");
        assert_eq!(reached("https", &wide, Some("files.example:443")), "https://files.example:443");
        assert_eq!(reached("https", &wide, None), "https://0.0.0.0:8443");
        assert_eq!(reached("http", &own, Some("files.example")), "http://127.0.0.1:1");
    }
}
