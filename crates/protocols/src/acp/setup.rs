//! Rewrites the messages that initialize the connection and set up sessions. The rewrite changes the file capabilities
//! that the agent sees, and adds an MCP server to the session. A rewritten message keeps every byte outside the changed
//! members.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    errors::AcpError,
    json_members::{self, MalformedJsonObjectError},
};
use crate::native::without_nulls;

const SERVER_NAME: &str = "stead";
/// The first version of the Agent Client Protocol in which clients have no file methods.
pub(super) const VERSION_WITHOUT_FILES: u64 = 2;

/// The command that starts an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerCommand {
    pub command: String,
    pub arguments: Vec<String>,
    /// The environment variable that assigns the MCP server's calls to an ACP session.
    pub ticket: Option<McpServerTicketEnvVar>,
}

/// The environment variable that assigns the calls of an MCP server to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerTicketEnvVar {
    pub variable: &'static str,
    /// The random session ticket, which is the value of the environment variable.
    pub secret: String,
}

/// The ACP file methods that a peer offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AcpFileCapabilities {
    pub read_text_file: bool,
    pub write_text_file: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct RewrittenInitializeRequest {
    pub(super) editor_capabilities: AcpFileCapabilities,
    pub(super) advertised: AcpFileCapabilities,
    /// The editor can ask for `_stead/locked` notifications.
    pub(super) wants_notices: bool,
    pub(super) agent_line: Vec<u8>,
}

/// The member of `initialize` that contains the capabilities of a client in protocol version 1.
const CAPABILITIES_MEMBER: &str = "clientCapabilities";

fn value_at(text: &[u8], path: &[&str]) -> Option<Value> {
    serde_json::from_slice(&text[json_members::find_path(text, path)?]).ok()
}

/// Rewrites an `initialize` request so that the agent sees the file methods in `ours`, not the editor's file methods.
/// An `initialize` request without client capabilities stays unchanged if its ACP version has no file methods.
pub(super) fn rewrite_initialize(
    line: &[u8],
    ours: AcpFileCapabilities,
) -> Result<RewrittenInitializeRequest, MalformedJsonObjectError> {
    let at = |path: &[&str]| value_at(line, path);
    let offers = |name: &str| at(&["params", CAPABILITIES_MEMBER, "fs", name]) == Some(Value::Bool(true));
    let editor =
        AcpFileCapabilities { read_text_file: offers("readTextFile"), write_text_file: offers("writeTextFile") };
    let wants_notices = at(&["params", CAPABILITIES_MEMBER, "_meta", "stead"]).is_some_and(|ours| !ours.is_null());
    let version = at(&["params", "protocolVersion"]).and_then(|version| version.as_u64());
    let has_capabilities = json_members::find_path(line, &["params", CAPABILITIES_MEMBER]).is_some();
    let agent_line = line.to_vec();
    let mut rewritten =
        RewrittenInitializeRequest { editor_capabilities: editor, advertised: ours, wants_notices, agent_line };
    if !has_capabilities && version.is_some_and(|version| version >= VERSION_WITHOUT_FILES) {
        rewritten.advertised = AcpFileCapabilities::default();
        return Ok(rewritten);
    }
    for (name, before, offered) in [
        ("readTextFile", editor.read_text_file, ours.read_text_file),
        ("writeTextFile", editor.write_text_file, ours.write_text_file),
    ] {
        if before != offered || !offered {
            let path = ["params", CAPABILITIES_MEMBER, "fs", name];
            rewritten.agent_line = json_members::set_member(&rewritten.agent_line, &path, &Value::Bool(offered))?;
        }
    }
    Ok(rewritten)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NegotiatedAcpProtocol {
    pub(super) version: u64,
    pub(super) stdio_servers: bool,
}

pub(super) fn parse_initialize_result(result: &[u8]) -> NegotiatedAcpProtocol {
    let at = |path: &[&str]| value_at(result, path);
    let version = at(&["protocolVersion"]).and_then(|version| version.as_u64()).unwrap_or(1);
    // Version 1 requires agents to support MCP servers over stdio.
    let stdio_servers = version < VERSION_WITHOUT_FILES
        || at(&["capabilities", "session", "mcp", "stdio"]).is_some_and(|offered| offered.is_object());
    NegotiatedAcpProtocol { version, stdio_servers }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AcpSessionSetupParams {
    /// The first root of a session is the working directory; the additional directories follow.
    pub(super) roots: Vec<String>,
    /// The editor gives the id of a session that is loaded or resumed; the agent chooses the id of a new session.
    pub(super) session_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AcpSessionSetupJson {
    cwd: String,
    additional_directories: Option<Vec<String>>,
    session_id: Option<String>,
}

pub(super) fn parse_setup_params(params: &[u8]) -> Result<AcpSessionSetupParams, AcpError> {
    let setup: AcpSessionSetupJson =
        serde_json::from_slice(params).map_err(|error| AcpError::invalid_params(error.to_string()))?;
    let others = setup.additional_directories.unwrap_or_default();
    let roots: Vec<String> = std::iter::once(setup.cwd).chain(others).collect();
    match roots.iter().find(|root| !root.starts_with('/')) {
        Some(relative) => Err(not_absolute_error(relative)),
        None => Ok(AcpSessionSetupParams { roots, session_id: setup.session_id }),
    }
}

pub(super) fn not_absolute_error(path: &str) -> AcpError {
    AcpError::invalid_params(json!({ "path": path, "reason": "path must be absolute" }))
}

/// Returns the request line with the MCP server added, or `None` if the request already lists a server with the same
/// name.
pub(super) fn add_mcp_server(
    line: &[u8],
    server: &McpServerCommand,
    negotiated: NegotiatedAcpProtocol,
) -> Result<Option<Vec<u8>>, MalformedJsonObjectError> {
    const MCP_SERVERS_PATH: &[&str] = &["params", "mcpServers"];
    let existing = json_members::find_path(line, MCP_SERVERS_PATH).map_or(&b"[]"[..], |range| &line[range]);
    let has_same_name = |entry: &Value| entry["name"] == SERVER_NAME;
    let known: Value = serde_json::from_slice(existing).unwrap_or_default();
    if known.as_array().into_iter().flatten().any(has_same_name) {
        return Ok(None);
    }
    let variable = |ticket: &McpServerTicketEnvVar| json!({ "name": ticket.variable, "value": ticket.secret });
    let entry = without_nulls(json!({
        "name": SERVER_NAME,
        "command": server.command,
        "args": server.arguments,
        "env": server.ticket.iter().map(variable).collect::<Vec<_>>(),
        "type": (negotiated.version >= VERSION_WITHOUT_FILES).then_some("stdio"),
    }));
    let extended = json_members::push_to_array(existing, &entry);
    Ok(Some(match json_members::find_path(line, MCP_SERVERS_PATH) {
        Some(range) => json_members::replace_range(line, &range, &extended),
        None => json_members::set_member(line, MCP_SERVERS_PATH, &json!([entry]))?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH_FILE_METHODS: AcpFileCapabilities = AcpFileCapabilities { read_text_file: true, write_text_file: true };

    fn rewrite(line: &str, ours: AcpFileCapabilities) -> (AcpFileCapabilities, AcpFileCapabilities, String) {
        let rewrite = rewrite_initialize(line.as_bytes(), ours).unwrap();
        (rewrite.editor_capabilities, rewrite.advertised, String::from_utf8(rewrite.agent_line).unwrap())
    }

    #[test]
    fn initialize_only_adds_file_capabilities() {
        let line = r#"{"id":0,"params":{"protocolVersion":1,"clientCapabilities":{"terminal":true,"_x":1.0}}}"#;
        let (editor, advertised, line) = rewrite(line, BOTH_FILE_METHODS);
        assert_eq!((editor, advertised), (AcpFileCapabilities::default(), BOTH_FILE_METHODS));
        assert_eq!(
            line,
            r#"{"id":0,"params":{"protocolVersion":1,"clientCapabilities":{"terminal":true,"_x":1.0,"fs":{"readTextFile":true,"writeTextFile":true}}}}"#
        );
        let bare = rewrite(r#"{"params":{"protocolVersion":1}}"#, BOTH_FILE_METHODS).2;
        assert!(bare.contains(r#""clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true}}"#));
    }

    #[test]
    fn keeps_editor_capabilities() {
        let existing = r#"{"params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true}}}}"#;
        assert_eq!(rewrite(existing, BOTH_FILE_METHODS), (BOTH_FILE_METHODS, BOTH_FILE_METHODS, existing.to_owned()));
        let reads = AcpFileCapabilities { read_text_file: true, write_text_file: false };
        let (editor, advertised, line) = rewrite(existing, reads);
        assert_eq!((editor, advertised), (BOTH_FILE_METHODS, reads));
        assert!(line.contains(r#""writeTextFile":false"#), "{line}");
    }

    #[test]
    fn protocol_v2_gets_no_file_capabilities() {
        let line = r#"{"params":{"protocolVersion":2,"capabilities":{},"info":{}}}"#;
        assert_eq!(
            rewrite(line, BOTH_FILE_METHODS),
            (AcpFileCapabilities::default(), AcpFileCapabilities::default(), line.to_owned())
        );
        let negotiated = |text: &str| parse_initialize_result(text.as_bytes());
        let first = NegotiatedAcpProtocol { version: 1, stdio_servers: true };
        assert_eq!(negotiated(r#"{"protocolVersion":1}"#), first);
        let second = r#"{"protocolVersion":2,"capabilities":{"session":{"mcp":{"stdio":{}}}}}"#;
        assert_eq!(negotiated(second), NegotiatedAcpProtocol { version: 2, stdio_servers: true });
        assert!(!negotiated(r#"{"protocolVersion":2}"#).stdio_servers);
    }

    #[test]
    fn session_setup_adds_mcp_server() {
        let ticket = McpServerTicketEnvVar { variable: "T", secret: "secret".to_owned() };
        let server = McpServerCommand {
            command: "/bin/stead".to_owned(),
            arguments: vec!["mcp".to_owned()],
            ticket: Some(ticket),
        };
        let add = |line: &str, version| {
            let negotiated = NegotiatedAcpProtocol { version, stdio_servers: true };
            let added = add_mcp_server(line.as_bytes(), &server, negotiated).unwrap();
            added.map(|line| String::from_utf8(line).unwrap())
        };
        let entry = r#"{"name":"stead","command":"/bin/stead","args":["mcp"],"env":[{"name":"T","value":"secret"}]}"#;
        let typed = r#"{"name":"stead","command":"/bin/stead","args":["mcp"],"env":[{"name":"T","value":"secret"}],"type":"stdio"}"#;
        assert_eq!(
            add(r#"{"params":{"mcpServers":[{"name":"x"}],"cwd":"/"}}"#, 1),
            Some(format!(r#"{{"params":{{"mcpServers":[{{"name":"x"}},{entry}],"cwd":"/"}}}}"#))
        );
        assert_eq!(
            add(r#"{"params":{"cwd":"/"}}"#, 2),
            Some(format!(r#"{{"params":{{"cwd":"/","mcpServers":[{typed}]}}}}"#))
        );
        assert_eq!(add(r#"{"params":{"mcpServers":[{"name":"stead"}]}}"#, 1), None);
    }

    #[test]
    fn rejects_relative_roots() {
        let read = |text: &str| parse_setup_params(text.as_bytes()).map(|params| params.roots);
        assert_eq!(read(r#"{"cwd":"/a","additionalDirectories":["/b"]}"#).unwrap(), ["/a", "/b"]);
        assert_eq!(read(r#"{"cwd":"/a","additionalDirectories":null}"#).unwrap(), ["/a"]);
        for params in [
            "{}",
            r#"{"cwd":""}"#,
            r#"{"cwd":"a"}"#,
            r#"{"cwd":"/a","additionalDirectories":["/b",""]}"#,
            r#"{"cwd":"/a","additionalDirectories":["b"]}"#,
            r#"{"cwd":7}"#,
        ] {
            assert_eq!(read(params).unwrap_err().code(), -32602, "{params}");
        }
    }
}
