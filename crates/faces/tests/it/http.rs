//! The HTTP face as clients, browsers and attackers meet it, over a real connection.

mod attacks;
mod fair;
mod files;
mod metadata;
mod sockets;
mod streams;
mod tls;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use engine::{Access, Caller, Engine, Grants, Principal};
use faces::{
    dialect::Place,
    http::{
        Admission, Admitted, Credential, Door, Hall, Keeping, Listener, Names, NotAdmitted, Settings, opened,
    },
};
use serde_json::Value;
use testkit::MemoryWorkspace;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Nothing here takes longer unless something hangs.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// Two workspaces and their tokens: `one`, `two` for the second, `reader`, which changes nothing, and `ann`, a person's.
pub(crate) struct Doors {
    pub(crate) workspaces: [Arc<MemoryWorkspace>; 2],
    /// Set to take `one` away.
    pub(crate) revoked: AtomicBool,
}

impl Door for Doors {
    fn admit(&self, credential: Credential<'_>) -> Result<Admission, NotAdmitted> {
        let Credential::Token(token) = credential else { return Err(NotAdmitted::Unknown) };
        let (at, grants) = match token {
            "one" if !self.revoked.load(Ordering::Relaxed) => (0, Grants::default()),
            "two" => (1, Grants::default()),
            // Another principal in the first workspace, and one of many tokens of the first.
            "other" | "one-more" | "ann" => (0, Grants::default()),
            "reader" => (0, Grants { access: Access::ReadOnly, ..Grants::default() }),
            _ => return Err(NotAdmitted::Unknown),
        };
        let name = token.trim_end_matches("-more").to_owned();
        let principal = if name == "ann" { Principal::User(name) } else { Principal::Agent(name) };
        let mut caller = Caller::new(principal, format!("http-{token}"), "http");
        caller.grants = grants;
        let engine = Engine::new(self.workspaces[at].clone());
        let place = Place { workspace: MemoryWorkspace::ROOT.to_owned() };
        let to = Admitted::Workspace { id: at.to_string(), place, opening: opened(engine) };
        Ok(Admission { key: token.to_owned(), caller, to })
    }

    fn still_admits(&self, key: &str) -> bool {
        key != "one" || !self.revoked.load(Ordering::Relaxed)
    }
}

/// A server that runs.
pub(crate) struct House {
    pub(crate) doors: Arc<Doors>,
    pub(crate) hall: Arc<Hall>,
    pub(crate) port: u16,
    serving: JoinHandle<()>,
}

/// One answer.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Said {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl House {
    pub(crate) async fn open() -> Self {
        Self::behind(Listener::Tcp, Names::loopback).await
    }

    /// Behind a listener of this kind, known by these names.
    pub(crate) async fn behind(
        kind: impl FnOnce(TcpListener) -> Listener,
        names: impl FnOnce(u16) -> Names,
    ) -> Self {
        Self::kept(kind, names, Keeping::default()).await
    }

    /// The same, kept in this way.
    pub(crate) async fn kept(
        kind: impl FnOnce(TcpListener) -> Listener,
        names: impl FnOnce(u16) -> Names,
        keeping: Keeping,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let doors = Arc::new(Doors {
            workspaces: [Arc::new(MemoryWorkspace::new()), Arc::new(MemoryWorkspace::new())],
            revoked: AtomicBool::new(false),
        });
        let settings = Settings {
            place: Place { workspace: MemoryWorkspace::ROOT.to_owned() },
            mcp_dialects: vec!["stead".to_owned()],
            rpc_dialects: vec!["stead".to_owned(), "krux".to_owned()],
            workspace_calls_max: 64,
        };
        let hall = Hall::kept(doors.clone(), names(port), settings, keeping);
        let serving = tokio::spawn(faces::http::serve(hall.clone(), kind(listener)));
        Self { doors, hall, port, serving }
    }

    pub(crate) async fn connect(&self) -> BufReader<TcpStream> {
        BufReader::new(TcpStream::connect(("127.0.0.1", self.port)).await.unwrap())
    }

    /// Sends bytes as they are on a connection of their own.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> Said {
        let mut connection = self.connect().await;
        connection.get_mut().write_all(bytes).await.unwrap();
        hear(&mut connection).await
    }

    /// A request with a token.
    pub(crate) async fn ask(&self, token: &str, line: &str, headers: &[&str], body: &[u8]) -> Said {
        let mut head = format!("{line} HTTP/1.1\r\nHost: localhost:{}\r\n", self.port);
        if !token.is_empty() {
            head.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        for header in headers {
            head.push_str(&format!("{header}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        self.raw(&[head.as_bytes(), body].concat()).await
    }

    /// A call of an operation.
    pub(crate) async fn call(&self, token: &str, operation: &str, arguments: &Value) -> Said {
        let line = format!("POST /v1/{operation}");
        self.ask(token, &line, &["Content-Type: application/json"], arguments.to_string().as_bytes()).await
    }

    /// Stops it in good order.
    pub(crate) async fn close(self) {
        self.hall.stop();
        tokio::time::timeout(PATIENCE, self.serving).await.expect("the server ends").unwrap();
    }
}

/// The head of an answer.
pub(crate) async fn hear_head(connection: &mut BufReader<TcpStream>) -> Said {
    let mut said = Said { status: 0, headers: Vec::new(), body: Vec::new() };
    loop {
        let mut line = String::new();
        let read = tokio::time::timeout(PATIENCE, connection.read_line(&mut line));
        assert!(read.await.expect("the server answers").unwrap() > 0, "the server closed after {said:?}");
        let line = line.trim_end();
        match (line.split_once(' '), line.split_once(": ")) {
            (Some(("HTTP/1.1", rest)), _) => said.status = rest[..3].parse().unwrap(),
            (_, Some((name, value))) => said.headers.push((name.to_ascii_lowercase(), value.to_owned())),
            _ if line.is_empty() => return said,
            _ => panic!("{line}"),
        }
    }
}

/// A whole answer.
pub(crate) async fn hear(connection: &mut BufReader<TcpStream>) -> Said {
    let mut said = hear_head(connection).await;
    let length = said.header("content-length").map_or(0, |length| length.parse().unwrap());
    if said.status != 304 {
        said.body = vec![0; length];
        connection.read_exact(&mut said.body).await.unwrap();
    }
    said
}
