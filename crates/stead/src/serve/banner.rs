//! Prints the startup text of a server: its address, the workspace, and settings to paste into clients.

use std::{io::IsTerminal, net::SocketAddr};

use serde_json::json;
use stead_local::Durability;

use super::{ServeFlags, listener::BoundListener};
use crate::{
    choices::{DURABILITIES, word_for},
    output,
};

/// Prints the startup text to standard error. The server's token is a secret, so the startup text contains the token
/// only at a terminal or with `--print-token`.
pub(crate) fn print_banner(
    bound: &BoundListener,
    flags: &ServeFlags,
    workspace: &str,
    durability: Durability,
    token: &str,
) {
    output::print_note(&format!("serving {workspace}, durability {}", word_for(DURABILITIES, &durability)));
    let Some(address) = public_address(bound, flags, "need no token") else { return };
    output::print_note(&format!(
        "listening on {address}: /mcp, /rpc, /v1 ({address}/v1/openapi.json), /events, /health, /metrics"
    ));
    if !may_print_token(flags) {
        output::print_note("create a token per client: stead token create --principal agent:NAME");
        return;
    }
    output::print_note(&format!("temporary token (valid until the server stops): {token}"));
    for (config_file, text) in client_config_snippets(&address, token) {
        output::print_note(&format!("{config_file}: {text}"));
    }
    output::print_note(&format!(
        "try: curl -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' -d '{{}}' {address}/v1/list"
    ));
}

fn client_config_snippets(address: &str, token: &str) -> [(&'static str, String); 5] {
    let url = format!("{address}/mcp");
    let headers = json!({ "Authorization": format!("Bearer {token}") });
    let typed = json!({ "type": "http", "url": url, "headers": headers });
    let plain = json!({ "url": url, "headers": headers });
    let codex = format!("mcp_servers.stead = {{ url = \"{url}\", bearer_token_env_var = \"STEAD_TOKEN\" }}");
    [
        (".mcp.json (Claude Code)", json!({ "mcpServers": { "stead": typed } }).to_string()),
        (".cursor/mcp.json (Cursor)", json!({ "mcpServers": { "stead": plain } }).to_string()),
        (".vscode/mcp.json (VS Code)", json!({ "servers": { "stead": typed } }).to_string()),
        ("settings.json (Zed)", json!({ "context_servers": { "stead": plain } }).to_string()),
        ("config.toml (Codex, with the token in STEAD_TOKEN)", codex),
    ]
}

fn may_print_token(flags: &ServeFlags) -> bool {
    flags.print_token || std::io::stderr().is_terminal()
}

/// Returns the server's URL for clients, or prints the path of a Unix socket, which has no URL.
fn public_address(bound: &BoundListener, flags: &ServeFlags, user_rights: &str) -> Option<String> {
    let (scheme, address) = match bound {
        BoundListener::Unix(_, socket) => {
            output::print_note(&format!(
                "listening on the socket {}; processes of this user {user_rights}",
                socket.path().display()
            ));
            return None;
        }
        BoundListener::Tcp(_, address) => ("http", address),
        BoundListener::Tls(_, address, _) => ("https", address),
    };
    Some(address_url(scheme, address, flags.host.first().map(String::as_str)))
}

/// Returns the server's URL, with the operator's host name if the server listens on all addresses.
fn address_url(scheme: &str, address: &SocketAddr, host: Option<&str>) -> String {
    match host {
        Some(host) if address.ip().is_unspecified() && host.contains(':') => format!("{scheme}://{host}"),
        Some(host) if address.ip().is_unspecified() => format!("{scheme}://{host}:{}", address.port()),
        Some(_) | None => format!("{scheme}://{address}"),
    }
}

pub(crate) fn print_registry_banner(
    bound: &BoundListener,
    flags: &ServeFlags,
    directory: &str,
    durability: Durability,
    token: &str,
) {
    output::print_note(&format!(
        "serving the workspaces in {directory}, durability {}",
        word_for(DURABILITIES, &durability)
    ));
    let Some(address) = public_address(bound, flags, "are administrators") else { return };
    output::print_note(&format!(
        "listening on {address}: /v1/workspaces; with a workspace token: /mcp, /rpc, /v1, /events"
    ));
    if !may_print_token(flags) {
        output::print_note(
            "create an administrator token: stead token create --workspaces DIR --estate --principal user:NAME",
        );
        return;
    }
    output::print_note(&format!("administrator token (valid until the server stops): {token}"));
    output::print_note(&format!(
        "try: curl -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' -d '{{\"name\":\"one\"}}' \
         {address}/v1/workspaces"
    ));
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn each_client_gets_its_own_config_snippet() {
        let snippets = client_config_snippets("http://127.0.0.1:7777", "t");
        let configs: Vec<Value> = snippets.iter().filter_map(|(_, text)| serde_json::from_str(text).ok()).collect();
        assert_eq!(configs.len(), 4);
        for (at, pointer) in
            [(0, "/mcpServers/stead"), (1, "/mcpServers/stead"), (2, "/servers/stead"), (3, "/context_servers/stead")]
        {
            let server = configs[at].pointer(pointer).unwrap();
            assert_eq!(server["url"], "http://127.0.0.1:7777/mcp");
            assert_eq!(server["headers"]["Authorization"], "Bearer t");
        }
        let codex: toml::Table = snippets[4].1.parse().unwrap();
        assert_eq!(codex["mcp_servers"]["stead"]["url"].as_str(), Some("http://127.0.0.1:7777/mcp"));
        assert!(!snippets[4].1.contains("Bearer"));
    }

    #[test]
    fn unspecified_address_is_printed_with_the_given_host() {
        let (unspecified, loopback) = ("0.0.0.0:8443".parse().unwrap(), "127.0.0.1:1".parse().unwrap());
        assert_eq!(address_url("https", &unspecified, Some("files.example")), "https://files.example:8443");
        assert_eq!(address_url("https", &unspecified, Some("files.example:443")), "https://files.example:443");
        assert_eq!(address_url("https", &unspecified, None), "https://0.0.0.0:8443");
        assert_eq!(address_url("http", &loopback, Some("files.example")), "http://127.0.0.1:1");
    }
}
