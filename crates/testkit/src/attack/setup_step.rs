//! A setup step. Owns the notation in which trees are written; never touches a file.

use std::io;

use serde_json::{Map, Value};

/// One step before the request.
#[derive(Debug, Clone)]
pub(crate) enum SetupStep {
    /// A file in the workspace with this text.
    File(String, Vec<u8>),
    /// A directory in the workspace.
    Directory(String),
    /// A symbolic link.
    Link(String, String),
    /// A hard link to a file.
    HardLink(String, String),
    /// A named pipe.
    Fifo(String),
    /// A listening socket.
    Socket(String),
    /// A character device.
    Device(String, u32, u32),
    /// A file in the outside directory.
    OutsideFile(String, Vec<u8>),
    /// A directory outside.
    OutsideDirectory(String),
    /// A named pipe outside.
    OutsideFifo(String),
    /// A listening socket outside.
    OutsideSocket(String),
    /// A link outside.
    OutsideLink(String, String),
    /// A file next to the workspace directory.
    SiblingFile(String, Vec<u8>),
    /// A sparse file of this size.
    SparseFile(String, u64),
    /// The policy file in the state directory.
    PolicyFile(String),
    /// Permission bits.
    SetMode(String, u32),
    /// Removes a file, link or empty directory.
    Remove(String),
    /// A chain of directories deeper than any path.
    DeepDirectories(String, usize),
    /// A chain of links: `c40 -> c39 -> … -> c0 -> target`.
    LinkChain(String, usize, String),
    /// Mounts a file system.
    MountFilesystem(String, String),
    /// Bind-mounts another directory.
    BindMount(String, String),
    /// Makes the workspace a mount.
    WorkspaceMount,
    /// Makes the workspace a read-only mount.
    ReadOnlyWorkspaceMount,
    /// Declares the mount at this path part of the workspace.
    AllowMountInside(String),
    /// Puts the state directory at this path inside the workspace.
    StateInWorkspace(String),
    /// The caller from here on.
    SetPrincipal(String),
    /// Opens the workspace now.
    OpenWorkspace,
    /// Renames the workspace directory and puts a link to the outside in its place.
    ReplaceRoot,
    /// Advances both clocks.
    AdvanceClocks(i64),
    /// Sets only the wall clock.
    ShiftWallClock(i64),
    /// Purges expired trash items.
    PurgeExpired,
    /// Starts an attacker for the whole case.
    StartAttacker(AttackerAction),
    /// Makes a call first.
    Call {
        /// The operation.
        operation: String,
        /// The arguments.
        arguments: Map<String, Value>,
        /// The caller, if not the one of the case.
        principal: Option<String>,
        /// The expected error, if any.
        expected_refusal: Option<String>,
    },
}

/// What an attacker does repeatedly.
#[derive(Debug, Clone)]
pub(crate) enum AttackerAction {
    /// Exchanges two names.
    SwapNames(String, String),
    /// Moves a directory out of the workspace and back.
    MoveDirectoryOut(String),
    /// Extends a file.
    GrowFile(String),
    /// Makes a link alternate between two targets.
    RetargetLink(String, String, String),
}

impl SetupStep {
    /// Parses one step.
    pub(crate) fn parse(value: &Value) -> io::Result<Self> {
        match value {
            Value::String(text) => parse_text(text).ok_or_else(|| malformed_step(text)),
            Value::Object(object) => parse_object(object).ok_or_else(|| malformed_step(&value.to_string())),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                Err(malformed_step(&value.to_string()))
            }
        }
    }

    /// Whether it needs a mount namespace.
    pub(crate) fn needs_mounts(&self) -> bool {
        matches!(
            self,
            SetupStep::MountFilesystem(..)
                | SetupStep::BindMount(..)
                | SetupStep::WorkspaceMount
                | SetupStep::ReadOnlyWorkspaceMount
        )
    }

    /// Whether it needs the right to create devices.
    pub(crate) fn needs_devices(&self) -> bool {
        matches!(self, SetupStep::Device(..))
    }

    /// Whether it needs a subject in this process.
    pub(crate) fn needs_in_process(&self) -> bool {
        matches!(self, SetupStep::AdvanceClocks(_) | SetupStep::ShiftWallClock(_) | SetupStep::PurgeExpired)
    }
}

fn malformed_step(text: &str) -> io::Error {
    io::Error::other(format!("not an instruction: {text}"))
}

fn parse_object(object: &Map<String, Value>) -> Option<SetupStep> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
    let arguments = match object.get("arguments") {
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return None,
        None => Map::new(),
    };
    let (principal, refused) = (text("as"), text("refused"));
    Some(SetupStep::Call { operation: text("call")?, arguments, principal, expected_refusal: refused })
}

fn parse_text(text: &str) -> Option<SetupStep> {
    let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
    let own = str::to_owned;
    let pair = |by: &str| rest.split_once(by).map(|(left, right)| (own(left), own(right)));
    let with_text = |(name, text): (String, String)| (name, text.into_bytes());
    Some(match verb {
        "file" => with_text(pair(" = ")?).into_step(SetupStep::File),
        "bytes" => {
            let (name, digits) = pair(" = ")?;
            SetupStep::File(name, super::case::decode_hex(&digits).ok()?)
        }
        "dir" => SetupStep::Directory(own(rest)),
        "symlink" => pair(" -> ")?.into_step(SetupStep::Link),
        "hardlink" => pair(" => ")?.into_step(SetupStep::HardLink),
        "fifo" => SetupStep::Fifo(own(rest)),
        "socket" => SetupStep::Socket(own(rest)),
        "chardev" => {
            let (name, numbers) = pair(" ")?;
            let (major, minor) = numbers.split_once(':')?;
            SetupStep::Device(name, major.parse().ok()?, minor.parse().ok()?)
        }
        "out-file" => with_text(pair(" = ")?).into_step(SetupStep::OutsideFile),
        "out-dir" => SetupStep::OutsideDirectory(own(rest)),
        "out-fifo" => SetupStep::OutsideFifo(own(rest)),
        "out-socket" => SetupStep::OutsideSocket(own(rest)),
        "out-symlink" => pair(" -> ")?.into_step(SetupStep::OutsideLink),
        "sibling" => with_text(pair(" = ")?).into_step(SetupStep::SiblingFile),
        "chmod" => {
            let (mode, name) = pair(" ")?;
            SetupStep::SetMode(name, u32::from_str_radix(&mode, 8).ok()?)
        }
        "sparse" => {
            let (name, bytes) = pair(" bytes=")?;
            SetupStep::SparseFile(name, bytes.parse().ok()?)
        }
        "gone" => SetupStep::Remove(own(rest)),
        "deep-tree" => {
            let (name, levels) = pair(" levels=")?;
            SetupStep::DeepDirectories(name, levels.parse().ok()?)
        }
        "symlink-chain" => {
            let (name, rest) = pair(" length=")?;
            let (length, target) = rest.split_once(" target=")?;
            SetupStep::LinkChain(name, length.parse().ok()?, own(target))
        }
        "concurrent" => SetupStep::StartAttacker(parse_attacker(rest)?),
        _ => return parse_server_text(verb, rest),
    })
}

fn parse_server_text(verb: &str, rest: &str) -> Option<SetupStep> {
    let own = str::to_owned;
    let pair = || rest.split_once(' ').map(|(left, right)| (own(left), own(right)));
    Some(match verb {
        "mount" => pair()?.into_step(SetupStep::MountFilesystem),
        "bind" => pair()?.into_step(SetupStep::BindMount),
        "self-bind" => SetupStep::WorkspaceMount,
        "remount-ro" => SetupStep::ReadOnlyWorkspaceMount,
        "allow-mount" => SetupStep::AllowMountInside(own(rest)),
        "state" => SetupStep::StateInWorkspace(own(rest)),
        "policy" => SetupStep::PolicyFile(own(rest)),
        "principal" => SetupStep::SetPrincipal(own(rest)),
        "open" => SetupStep::OpenWorkspace,
        "swap-root" => SetupStep::ReplaceRoot,
        "later" => SetupStep::AdvanceClocks(parse_offset_ms(rest)?),
        "wall-jump" => SetupStep::ShiftWallClock(parse_offset_ms(rest)?),
        "expire" => SetupStep::PurgeExpired,
        _ => return None,
    })
}

fn parse_attacker(text: &str) -> Option<AttackerAction> {
    let (verb, rest) = text.split_once(' ')?;
    Some(match verb {
        "swap" => {
            let (one, other) = rest.split_once(" <-> ")?;
            AttackerAction::SwapNames(one.to_owned(), other.to_owned())
        }
        "move-out" => AttackerAction::MoveDirectoryOut(rest.to_owned()),
        "grow" => AttackerAction::GrowFile(rest.to_owned()),
        "retarget" => {
            let (link, targets) = rest.split_once(" -> ")?;
            let (one, other) = targets.split_once(" | ")?;
            AttackerAction::RetargetLink(link.to_owned(), one.to_owned(), other.to_owned())
        }
        _ => return None,
    })
}

/// `25h`, `167h59m`, `-48h`, in milliseconds.
fn parse_offset_ms(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (hours, rest) = digits.split_once('h')?;
    let left = if rest.is_empty() { 0 } else { rest.strip_suffix('m')?.parse::<i64>().ok()? };
    Some(sign * (hours.parse::<i64>().ok()? * 60 + left) * 60_000)
}

trait AttackSetupStepFromPairExt<A, B> {
    fn into_step(self, make: fn(A, B) -> SetupStep) -> SetupStep;
}

impl<A, B> AttackSetupStepFromPairExt<A, B> for (A, B) {
    fn into_step(self, make: fn(A, B) -> SetupStep) -> SetupStep {
        make(self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn step_notation_is_parsed() {
        let step = |text: &str| format!("{:?}", SetupStep::parse(&json!(text)).unwrap());
        assert_eq!(step("symlink a -> $O/x"), r#"Link("a", "$O/x")"#);
        assert_eq!(step("later 167h59m"), "AdvanceClocks(604740000)");
        assert_eq!(step("wall-jump -48h"), "ShiftWallClock(-172800000)");
        assert_eq!(step("concurrent swap d <-> evil"), r#"StartAttacker(SwapNames("d", "evil"))"#);
        assert!(SetupStep::parse(&json!("fiel f = x")).is_err());
        assert!(SetupStep::parse(&json!(1)).is_err());
        assert!(SetupStep::parse(&json!({ "call": "read", "arguments": 1 })).is_err());
    }
}
