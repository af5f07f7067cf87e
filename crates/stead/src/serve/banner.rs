//! What a server says when it starts: where it is, what it serves, and what to paste into a client.

use std::io::IsTerminal;

use serde_json::json;

use super::Taken;
use crate::{cli::Durability, show};

/// Says it on standard error. The token is a secret: it is shown to a person at a terminal, or where that was asked for.
pub(crate) fn show(taken: &Taken, workspace: &str, durability: Durability, token: &str, print_token: bool) {
    let durability = match durability {
        Durability::Full => "full",
        Durability::Fast => "fast",
    };
    show::remark(&format!("serving {workspace}, durability {durability}"));
    let address = match taken {
        Taken::Unix(_, path) => {
            show::remark(&format!("on the socket {}; processes of this user need no token", path.display()));
            return;
        }
        Taken::Tcp(_, address) => format!("http://{address}"),
        Taken::Tls(_, address, _) => format!("https://{address}"),
    };
    show::remark(&format!(
        "on {address}: /mcp, /rpc, /v1 ({address}/v1/openapi.json), /events, /health, /metrics"
    ));
    if !print_token && !std::io::stderr().is_terminal() {
        show::remark("make a token for each client: stead token create --principal agent:NAME");
        return;
    }
    show::remark(&format!("token of this run (ends with it): {token}"));
    let server = json!({
        "type": "http", "url": format!("{address}/mcp"), "headers": { "Authorization": format!("Bearer {token}") }
    });
    show::remark(&format!(
        ".mcp.json (Claude Code, Cursor): {}",
        json!({ "mcpServers": { "stead": server } })
    ));
    show::remark(&format!(".vscode/mcp.json: {}", json!({ "servers": { "stead": server } })));
    show::remark(&format!("try: curl -H 'Authorization: Bearer {token}' {address}/v1/files/README.md"));
}

/// The same where there are many workspaces: whoever reads the token may make and end them.
pub(crate) fn show_estate(
    taken: &Taken,
    estate: &str,
    durability: Durability,
    token: &str,
    print_token: bool,
) {
    let durability = match durability {
        Durability::Full => "full",
        Durability::Fast => "fast",
    };
    show::remark(&format!("serving the workspaces of {estate}, durability {durability}"));
    let address = match taken {
        Taken::Unix(_, path) => {
            show::remark(&format!("on the socket {}; processes of this user administer", path.display()));
            return;
        }
        Taken::Tcp(_, address) => format!("http://{address}"),
        Taken::Tls(_, address, _) => format!("https://{address}"),
    };
    show::remark(&format!(
        "on {address}: /v1/workspaces; with a token of a workspace /mcp, /rpc, /v1, /events"
    ));
    if !print_token && !std::io::stderr().is_terminal() {
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
