//! What is changed on the way: the files that an editor is said to offer, and the servers that a session gets. Pure: text
//! in, text out, everything else as it came.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    scan::{self, Misshapen},
    sorry::Sorry,
    splice,
};

/// The name under which agents find the server that is added.
const SERVER_NAME: &str = "stead";
/// The first version of the protocol in which files are no longer the client's to offer.
pub(super) const VERSION_WITHOUT_FILES: u64 = 2;

/// How an agent starts a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What makes its calls belong to the session that it is started for, as a variable of its environment.
    pub ticket: Option<Ticket>,
}

/// What a server shows to belong to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// The variable.
    pub variable: &'static str,
    /// What nobody can guess.
    pub secret: String,
}

/// Whether something is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Offer {
    /// It is.
    Yes,
    /// It is not.
    #[default]
    No,
}

impl From<bool> for Offer {
    fn from(offered: bool) -> Self {
        if offered { Offer::Yes } else { Offer::No }
    }
}

/// Which of the file methods are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileOffer {
    /// `fs/read_text_file`.
    pub reads: Offer,
    /// `fs/write_text_file`.
    pub writes: Offer,
}

/// What an editor's `initialize` says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Opening {
    /// What the editor itself offers.
    pub(super) editor: FileOffer,
    /// What the agent is told, where it is told anything.
    pub(super) told: FileOffer,
    /// Whether the editor wants to hear of what was refused.
    pub(super) listens: Offer,
    /// The line for the agent.
    pub(super) line: Vec<u8>,
}

/// Where `initialize` has the client's capabilities in the first version.
const CAPABILITIES: &str = "clientCapabilities";

/// Announces files to the agent. A message of a later version, which has no place for it, stays as it is.
pub(super) fn initialize(line: &[u8], ours: FileOffer) -> Result<Opening, Misshapen> {
    let at = |path: &[&str]| {
        let place = scan::find_at(line, path)?;
        serde_json::from_slice::<Value>(&line[place]).ok()
    };
    let offers = |name: &str| at(&["params", CAPABILITIES, "fs", name]) == Some(Value::Bool(true));
    let editor = FileOffer { reads: offers("readTextFile").into(), writes: offers("writeTextFile").into() };
    let listens = at(&["params", CAPABILITIES, "_meta", "stead"]).is_some_and(|ours| !ours.is_null()).into();
    let version = at(&["params", "protocolVersion"]).and_then(|version| version.as_u64());
    let has_place = scan::find_at(line, &["params", CAPABILITIES]).is_some();
    if !has_place && version.is_some_and(|version| version >= VERSION_WITHOUT_FILES) {
        return Ok(Opening { editor, told: FileOffer::default(), listens, line: line.to_vec() });
    }
    let mut line = line.to_vec();
    for (name, before, offer) in
        [("readTextFile", editor.reads, ours.reads), ("writeTextFile", editor.writes, ours.writes)]
    {
        if before != offer || offer == Offer::No {
            let value = Value::Bool(offer == Offer::Yes);
            line = splice::put(&line, &["params", CAPABILITIES, "fs", name], &value)?;
        }
    }
    Ok(Opening { editor, told: ours, listens, line })
}

/// What the agent's answer to `initialize` settles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settled {
    /// The version that is spoken.
    pub(super) version: u64,
    /// Whether the agent starts servers that are programs.
    pub(super) programs: Offer,
}

/// Reads the agent's answer to `initialize`.
pub(super) fn settled(result: &[u8]) -> Settled {
    let at = |path: &[&str]| {
        let place = scan::find_at(result, path)?;
        serde_json::from_slice::<Value>(&result[place]).ok()
    };
    let version = at(&["protocolVersion"]).and_then(|version| version.as_u64()).unwrap_or(1);
    let programs = if version < VERSION_WITHOUT_FILES {
        // Every agent of the first version must.
        Offer::Yes
    } else {
        at(&["capabilities", "session", "mcp", "stdio"]).is_some_and(|offer| offer.is_object()).into()
    };
    Settled { version, programs }
}

/// What a session is set up with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Places {
    /// Its roots: the working directory, then the others.
    pub(super) roots: Vec<String>,
    /// Which session, where it already has an id.
    pub(super) session: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    cwd: String,
    additional_directories: Option<Vec<String>>,
    session_id: Option<String>,
}

/// Reads what a session is set up with. Every root is absolute.
pub(super) fn places(params: &[u8]) -> Result<Places, Sorry> {
    let given: Given = serde_json::from_slice(params).map_err(|error| Sorry::params(error.to_string()))?;
    let others = given.additional_directories.unwrap_or_default();
    let roots: Vec<String> = std::iter::once(given.cwd).chain(others).collect();
    match roots.iter().find(|root| !root.starts_with('/')) {
        Some(relative) => Err(not_absolute(relative)),
        None => Ok(Places { roots, session: given.session_id }),
    }
}

/// The error for a path that depends on where one stands.
pub(super) fn not_absolute(path: &str) -> Sorry {
    Sorry::params(json!({ "path": path, "reason": "path must be absolute" }))
}

/// Adds a server to a session, unless the editor gives it one of the same name. Tells which.
pub(super) fn with_server(
    line: &[u8],
    server: &Server,
    settled: Settled,
) -> Result<(Vec<u8>, Offer), Misshapen> {
    const SERVERS: &[&str] = &["params", "mcpServers"];
    let given = scan::find_at(line, SERVERS).map_or(&b"[]"[..], |place| &line[place]);
    let named = |entry: &Value| entry["name"] == SERVER_NAME;
    let known: Value = serde_json::from_slice(given).unwrap_or_default();
    if known.as_array().into_iter().flatten().any(named) {
        return Ok((line.to_vec(), Offer::No));
    }
    let variable = |ticket: &Ticket| json!({ "name": ticket.variable, "value": ticket.secret });
    let mut entry = json!({
        "name": SERVER_NAME,
        "command": server.command,
        "args": server.arguments,
        "env": server.ticket.iter().map(variable).collect::<Vec<_>>(),
    });
    if settled.version >= VERSION_WITHOUT_FILES {
        entry["type"] = "stdio".into();
    }
    let pushed = splice::pushed(given, &entry);
    let line = match scan::find_at(line, SERVERS) {
        Some(place) => splice::replaced(line, &place, &pushed),
        None => splice::put(line, SERVERS, &json!([entry]))?,
    };
    Ok((line, Offer::Yes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: FileOffer = FileOffer { reads: Offer::Yes, writes: Offer::Yes };

    fn opening(line: &str, ours: FileOffer) -> (FileOffer, FileOffer, String) {
        let opening = initialize(line.as_bytes(), ours).unwrap();
        (opening.editor, opening.told, String::from_utf8(opening.line).unwrap())
    }

    #[test]
    fn files_are_announced_and_nothing_else_is_touched() {
        let line =
            r#"{"id":0,"params":{"protocolVersion":1,"clientCapabilities":{"terminal":true,"_x":1.0}}}"#;
        let (editor, told, line) = opening(line, BOTH);
        assert_eq!((editor, told), (FileOffer::default(), BOTH));
        assert_eq!(
            line,
            r#"{"id":0,"params":{"protocolVersion":1,"clientCapabilities":{"terminal":true,"_x":1.0,"fs":{"readTextFile":true,"writeTextFile":true}}}}"#
        );
        let bare = opening(r#"{"params":{"protocolVersion":1}}"#, BOTH).2;
        assert!(bare.contains(r#""clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true}}"#));
    }

    #[test]
    fn what_the_editor_offers_is_remembered() {
        let given = r#"{"params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true}}}}"#;
        assert_eq!(opening(given, BOTH), (BOTH, BOTH, given.to_owned()));
        let reads = FileOffer { reads: Offer::Yes, writes: Offer::No };
        let (editor, told, line) = opening(given, reads);
        assert_eq!((editor, told), (BOTH, reads));
        assert!(line.contains(r#""writeTextFile":false"#), "{line}");
    }

    #[test]
    fn a_later_version_has_no_files_to_announce() {
        let line = r#"{"params":{"protocolVersion":2,"capabilities":{},"info":{}}}"#;
        assert_eq!(opening(line, BOTH), (FileOffer::default(), FileOffer::default(), line.to_owned()));
        let settled_as = |text: &str| settled(text.as_bytes());
        let first = Settled { version: 1, programs: Offer::Yes };
        assert_eq!(settled_as(r#"{"protocolVersion":1}"#), first);
        let second = r#"{"protocolVersion":2,"capabilities":{"session":{"mcp":{"stdio":{}}}}}"#;
        assert_eq!(settled_as(second), Settled { version: 2, programs: Offer::Yes });
        assert_eq!(settled_as(r#"{"protocolVersion":2}"#).programs, Offer::No);
    }

    #[test]
    fn a_session_gets_one_more_server() {
        let ticket = Ticket { variable: "T", secret: "secret".to_owned() };
        let server = Server {
            command: "/bin/stead".to_owned(),
            arguments: vec!["mcp".to_owned()],
            ticket: Some(ticket),
        };
        let add = |line: &str, version| {
            let settled = Settled { version, programs: Offer::Yes };
            String::from_utf8(with_server(line.as_bytes(), &server, settled).unwrap().0).unwrap()
        };
        let entry =
            r#"{"name":"stead","command":"/bin/stead","args":["mcp"],"env":[{"name":"T","value":"secret"}]}"#;
        let typed = r#"{"name":"stead","command":"/bin/stead","args":["mcp"],"env":[{"name":"T","value":"secret"}],"type":"stdio"}"#;
        assert_eq!(
            add(r#"{"params":{"mcpServers":[{"name":"x"}],"cwd":"/"}}"#, 1),
            format!(r#"{{"params":{{"mcpServers":[{{"name":"x"}},{entry}],"cwd":"/"}}}}"#)
        );
        assert_eq!(
            add(r#"{"params":{"cwd":"/"}}"#, 2),
            format!(r#"{{"params":{{"cwd":"/","mcpServers":[{typed}]}}}}"#)
        );
        let own = r#"{"params":{"mcpServers":[{"name":"stead"}]}}"#;
        assert_eq!(add(own, 1), own);
    }

    #[test]
    fn roots_are_absolute() {
        let read = |text: &str| places(text.as_bytes()).map(|places| places.roots);
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
