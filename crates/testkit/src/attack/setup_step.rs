//! Parses the setup steps of the attack corpus.

use std::io;

use serde_json::{Map, Value};

#[derive(Debug, Clone)]
pub(crate) enum AttackSetupStep {
    File(String, Vec<u8>),
    Directory(String),
    Link(String, String),
    HardLink(String, String),
    Fifo(String),
    Socket(String),
    Device(String, u32, u32),
    OutsideFile(String, Vec<u8>),
    OutsideDirectory(String),
    OutsideFifo(String),
    OutsideSocket(String),
    OutsideLink(String, String),
    SiblingFile(String, Vec<u8>),
    SparseFile(String, u64),
    PolicyFile(String),
    SetMode(String, u32),
    Remove(String),
    DeepDirectories(String, usize),
    /// The chain of symbolic links is `c40 -> c39 -> … -> c0 -> target`.
    LinkChain(String, usize, String),
    MountFilesystem(String, String),
    BindMount(String, String),
    WorkspaceMount,
    ReadOnlyWorkspaceMount,
    AllowMountInside(String),
    StateInWorkspace(String),
    SetPrincipal(String),
    OpenWorkspace,
    ReplaceRoot,
    AdvanceClocks(i64),
    ShiftWallClock(i64),
    PurgeExpired,
    /// The attacker thread starts when the request of the case runs.
    StartAttacker(AttackerAction),
    Call {
        operation: String,
        arguments: Map<String, Value>,
        principal: Option<String>,
        expected_refusal: Option<String>,
    },
}

#[derive(Debug, Clone)]
pub(crate) enum AttackerAction {
    SwapNames(String, String),
    MoveDirectoryOut(String),
    GrowFile(String),
    RetargetLink(String, String, String),
}

impl AttackSetupStep {
    pub(crate) fn parse(value: &Value) -> io::Result<Self> {
        match value {
            Value::String(text) => parse_text(text).ok_or_else(|| malformed_step(text)),
            Value::Object(object) => parse_object(object).ok_or_else(|| malformed_step(&value.to_string())),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                Err(malformed_step(&value.to_string()))
            }
        }
    }

    pub(crate) fn needs_mounts(&self) -> bool {
        matches!(
            self,
            AttackSetupStep::MountFilesystem(..)
                | AttackSetupStep::BindMount(..)
                | AttackSetupStep::WorkspaceMount
                | AttackSetupStep::ReadOnlyWorkspaceMount
        )
    }

    pub(crate) fn needs_devices(&self) -> bool {
        matches!(self, AttackSetupStep::Device(..))
    }

    pub(crate) fn needs_in_process(&self) -> bool {
        matches!(
            self,
            AttackSetupStep::AdvanceClocks(_) | AttackSetupStep::ShiftWallClock(_) | AttackSetupStep::PurgeExpired
        )
    }
}

fn malformed_step(text: &str) -> io::Error {
    io::Error::other(format!("not an instruction: {text}"))
}

fn parse_object(object: &Map<String, Value>) -> Option<AttackSetupStep> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
    let arguments = match object.get("arguments") {
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return None,
        None => Map::new(),
    };
    let (principal, refused) = (text("as"), text("refused"));
    Some(AttackSetupStep::Call { operation: text("call")?, arguments, principal, expected_refusal: refused })
}

fn parse_text(text: &str) -> Option<AttackSetupStep> {
    let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
    let own = str::to_owned;
    let pair = |by: &str| rest.split_once(by).map(|(left, right)| (own(left), own(right)));
    let with_text = |(name, text): (String, String)| (name, text.into_bytes());
    Some(match verb {
        "file" => with_text(pair(" = ")?).into_step(AttackSetupStep::File),
        "bytes" => {
            let (name, digits) = pair(" = ")?;
            AttackSetupStep::File(name, super::case::decode_hex(&digits).ok()?)
        }
        "dir" => AttackSetupStep::Directory(own(rest)),
        "symlink" => pair(" -> ")?.into_step(AttackSetupStep::Link),
        "hardlink" => pair(" => ")?.into_step(AttackSetupStep::HardLink),
        "fifo" => AttackSetupStep::Fifo(own(rest)),
        "socket" => AttackSetupStep::Socket(own(rest)),
        "chardev" => {
            let (name, numbers) = pair(" ")?;
            let (major, minor) = numbers.split_once(':')?;
            AttackSetupStep::Device(name, major.parse().ok()?, minor.parse().ok()?)
        }
        "out-file" => with_text(pair(" = ")?).into_step(AttackSetupStep::OutsideFile),
        "out-dir" => AttackSetupStep::OutsideDirectory(own(rest)),
        "out-fifo" => AttackSetupStep::OutsideFifo(own(rest)),
        "out-socket" => AttackSetupStep::OutsideSocket(own(rest)),
        "out-symlink" => pair(" -> ")?.into_step(AttackSetupStep::OutsideLink),
        "sibling" => with_text(pair(" = ")?).into_step(AttackSetupStep::SiblingFile),
        "chmod" => {
            let (mode, name) = pair(" ")?;
            AttackSetupStep::SetMode(name, u32::from_str_radix(&mode, 8).ok()?)
        }
        "sparse" => {
            let (name, bytes) = pair(" bytes=")?;
            AttackSetupStep::SparseFile(name, bytes.parse().ok()?)
        }
        "gone" => AttackSetupStep::Remove(own(rest)),
        "deep-tree" => {
            let (name, levels) = pair(" levels=")?;
            AttackSetupStep::DeepDirectories(name, levels.parse().ok()?)
        }
        "symlink-chain" => {
            let (name, rest) = pair(" length=")?;
            let (length, target) = rest.split_once(" target=")?;
            AttackSetupStep::LinkChain(name, length.parse().ok()?, own(target))
        }
        "concurrent" => AttackSetupStep::StartAttacker(parse_attacker(rest)?),
        _ => return parse_server_text(verb, rest),
    })
}

fn parse_server_text(verb: &str, rest: &str) -> Option<AttackSetupStep> {
    let own = str::to_owned;
    let pair = || rest.split_once(' ').map(|(left, right)| (own(left), own(right)));
    Some(match verb {
        "mount" => pair()?.into_step(AttackSetupStep::MountFilesystem),
        "bind" => pair()?.into_step(AttackSetupStep::BindMount),
        "self-bind" => AttackSetupStep::WorkspaceMount,
        "remount-ro" => AttackSetupStep::ReadOnlyWorkspaceMount,
        "allow-mount" => AttackSetupStep::AllowMountInside(own(rest)),
        "state" => AttackSetupStep::StateInWorkspace(own(rest)),
        "policy" => AttackSetupStep::PolicyFile(own(rest)),
        "principal" => AttackSetupStep::SetPrincipal(own(rest)),
        "open" => AttackSetupStep::OpenWorkspace,
        "swap-root" => AttackSetupStep::ReplaceRoot,
        "later" => AttackSetupStep::AdvanceClocks(parse_offset_ms(rest)?),
        "wall-jump" => AttackSetupStep::ShiftWallClock(parse_offset_ms(rest)?),
        "expire" => AttackSetupStep::PurgeExpired,
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

/// Parses a time offset such as `25h`, `167h59m` or `-48h` into milliseconds.
fn parse_offset_ms(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (hours, rest) = digits.split_once('h')?;
    let left = if rest.is_empty() { 0 } else { rest.strip_suffix('m')?.parse::<i64>().ok()? };
    Some(sign * (hours.parse::<i64>().ok()? * 60 + left) * 60_000)
}

trait AttackSetupStepFromPairExt<A, B> {
    fn into_step(self, make: fn(A, B) -> AttackSetupStep) -> AttackSetupStep;
}

impl<A, B> AttackSetupStepFromPairExt<A, B> for (A, B) {
    fn into_step(self, make: fn(A, B) -> AttackSetupStep) -> AttackSetupStep {
        make(self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn step_notation_is_parsed() {
        let step = |text: &str| format!("{:?}", AttackSetupStep::parse(&json!(text)).unwrap());
        assert_eq!(step("symlink a -> $O/x"), r#"Link("a", "$O/x")"#);
        assert_eq!(step("later 167h59m"), "AdvanceClocks(604740000)");
        assert_eq!(step("wall-jump -48h"), "ShiftWallClock(-172800000)");
        assert_eq!(step("concurrent swap d <-> evil"), r#"StartAttacker(SwapNames("d", "evil"))"#);
        assert!(AttackSetupStep::parse(&json!("fiel f = x")).is_err());
        assert!(AttackSetupStep::parse(&json!(1)).is_err());
        assert!(AttackSetupStep::parse(&json!({ "call": "read", "arguments": 1 })).is_err());
    }
}
