//! One instruction of a setup. Owns the small notation in which trees are written; never touches a file.

use std::io;

use serde_json::{Map, Value};

/// One thing that is done before the case is asked.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A file in the workspace with this text.
    File(String, Vec<u8>),
    /// A directory in the workspace.
    Directory(String),
    /// A symbolic link.
    Link(String, String),
    /// A second name of a file.
    HardLink(String, String),
    /// A named pipe.
    Fifo(String),
    /// A listening socket.
    Socket(String),
    /// A character device.
    Device(String, u32, u32),
    /// A file beside the workspace, in the outside directory.
    OutFile(String, Vec<u8>),
    /// A directory there.
    OutDirectory(String),
    /// A named pipe there.
    OutFifo(String),
    /// A listening socket there.
    OutSocket(String),
    /// A link there.
    OutLink(String, String),
    /// A file beside the workspace directory itself.
    Sibling(String, Vec<u8>),
    /// A file that is nothing but a hole of so many bytes.
    Sparse(String, u64),
    /// The policy file in the state directory.
    Policy(String),
    /// Permission bits.
    Mode(String, u32),
    /// Takes away a file, link or empty directory.
    Gone(String),
    /// A chain of directories deeper than any path can say.
    Deep(String, usize),
    /// Links that lead to one another: `c40 -> c39 -> … -> c0 -> target`.
    Chain(String, usize, String),
    /// A file system of its own at a place.
    Mount(String, String),
    /// A directory of elsewhere at a place.
    Bind(String, String),
    /// The whole workspace is a mount of its own.
    OwnMount,
    /// The same, and nobody can write to it.
    ReadOnlyMount,
    /// The mount at this place belongs to the workspace.
    AllowMount(String),
    /// The state directory lies at this place inside the workspace.
    StateInside(String),
    /// Who asks from here on.
    Principal(String),
    /// The workspace is opened now, not later.
    Open,
    /// The workspace directory is renamed and a link to the outside takes its name.
    SwapRoot,
    /// Both clocks go on.
    Later(i64),
    /// Only the wall clock is set.
    WallJump(i64),
    /// What has passed its time is emptied.
    Expire,
    /// An attacker that works during the whole case.
    Concurrent(Attacker),
    /// A call made first, by whom.
    Call {
        /// The operation.
        operation: String,
        /// Its arguments.
        arguments: Map<String, Value>,
        /// Who makes it, when it is not whoever asks.
        principal: Option<String>,
        /// The refusal that must come of it, when one must.
        refused: Option<String>,
    },
}

/// What an attacker does, over and over.
#[derive(Debug, Clone)]
pub(crate) enum Attacker {
    /// Exchanges two names.
    Swap(String, String),
    /// Moves a directory out of the workspace and back.
    MoveOut(String),
    /// Lengthens a file.
    Grow(String),
    /// Makes a link point at one place and at another.
    Retarget(String, String, String),
}

impl Step {
    /// Reads one instruction.
    pub(crate) fn parse(value: &Value) -> io::Result<Self> {
        match value {
            Value::String(text) => from_text(text).ok_or_else(|| malformed(text)),
            Value::Object(object) => from_object(object).ok_or_else(|| malformed(&value.to_string())),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                Err(malformed(&value.to_string()))
            }
        }
    }

    /// Whether it needs a mount namespace of its own.
    pub(crate) fn needs_mounts(&self) -> bool {
        matches!(self, Step::Mount(..) | Step::Bind(..) | Step::OwnMount | Step::ReadOnlyMount)
    }

    /// Whether it needs the right to make devices.
    pub(crate) fn needs_devices(&self) -> bool {
        matches!(self, Step::Device(..))
    }

    /// Whether only a subject inside this process can do it.
    pub(crate) fn needs_inside(&self) -> bool {
        matches!(self, Step::Later(_) | Step::WallJump(_) | Step::Expire)
    }
}

fn malformed(text: &str) -> io::Error {
    io::Error::other(format!("not an instruction: {text}"))
}

fn from_object(object: &Map<String, Value>) -> Option<Step> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
    let arguments = match object.get("arguments") {
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return None,
        None => Map::new(),
    };
    let (principal, refused) = (text("as"), text("refused"));
    Some(Step::Call { operation: text("call")?, arguments, principal, refused })
}

fn from_text(text: &str) -> Option<Step> {
    let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
    let own = str::to_owned;
    let pair = |by: &str| rest.split_once(by).map(|(left, right)| (own(left), own(right)));
    let with_text = |(name, text): (String, String)| (name, text.into_bytes());
    Some(match verb {
        "file" => with_text(pair(" = ")?).into_step(Step::File),
        "bytes" => {
            let (name, digits) = pair(" = ")?;
            Step::File(name, super::case::from_hex(&digits).ok()?)
        }
        "dir" => Step::Directory(own(rest)),
        "symlink" => pair(" -> ")?.into_step(Step::Link),
        "hardlink" => pair(" => ")?.into_step(Step::HardLink),
        "fifo" => Step::Fifo(own(rest)),
        "socket" => Step::Socket(own(rest)),
        "chardev" => {
            let (name, numbers) = pair(" ")?;
            let (major, minor) = numbers.split_once(':')?;
            Step::Device(name, major.parse().ok()?, minor.parse().ok()?)
        }
        "out-file" => with_text(pair(" = ")?).into_step(Step::OutFile),
        "out-dir" => Step::OutDirectory(own(rest)),
        "out-fifo" => Step::OutFifo(own(rest)),
        "out-socket" => Step::OutSocket(own(rest)),
        "out-symlink" => pair(" -> ")?.into_step(Step::OutLink),
        "sibling" => with_text(pair(" = ")?).into_step(Step::Sibling),
        "chmod" => {
            let (mode, name) = pair(" ")?;
            Step::Mode(name, u32::from_str_radix(&mode, 8).ok()?)
        }
        "sparse" => {
            let (name, bytes) = pair(" bytes=")?;
            Step::Sparse(name, bytes.parse().ok()?)
        }
        "gone" => Step::Gone(own(rest)),
        "deep-tree" => {
            let (name, levels) = pair(" levels=")?;
            Step::Deep(name, levels.parse().ok()?)
        }
        "symlink-chain" => {
            let (name, rest) = pair(" length=")?;
            let (length, target) = rest.split_once(" target=")?;
            Step::Chain(name, length.parse().ok()?, own(target))
        }
        "concurrent" => Step::Concurrent(attacker(rest)?),
        _ => return from_text_about_the_server(verb, rest),
    })
}

fn from_text_about_the_server(verb: &str, rest: &str) -> Option<Step> {
    let own = str::to_owned;
    let pair = || rest.split_once(' ').map(|(left, right)| (own(left), own(right)));
    Some(match verb {
        "mount" => pair()?.into_step(Step::Mount),
        "bind" => pair()?.into_step(Step::Bind),
        "self-bind" => Step::OwnMount,
        "remount-ro" => Step::ReadOnlyMount,
        "allow-mount" => Step::AllowMount(own(rest)),
        "state" => Step::StateInside(own(rest)),
        "policy" => Step::Policy(own(rest)),
        "principal" => Step::Principal(own(rest)),
        "open" => Step::Open,
        "swap-root" => Step::SwapRoot,
        "later" => Step::Later(minutes(rest)?),
        "wall-jump" => Step::WallJump(minutes(rest)?),
        "expire" => Step::Expire,
        _ => return None,
    })
}

fn attacker(text: &str) -> Option<Attacker> {
    let (verb, rest) = text.split_once(' ')?;
    Some(match verb {
        "swap" => {
            let (one, other) = rest.split_once(" <-> ")?;
            Attacker::Swap(one.to_owned(), other.to_owned())
        }
        "move-out" => Attacker::MoveOut(rest.to_owned()),
        "grow" => Attacker::Grow(rest.to_owned()),
        "retarget" => {
            let (link, targets) = rest.split_once(" -> ")?;
            let (one, other) = targets.split_once(" | ")?;
            Attacker::Retarget(link.to_owned(), one.to_owned(), other.to_owned())
        }
        _ => return None,
    })
}

/// `25h`, `167h59m`, `-48h`, in milliseconds.
fn minutes(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (hours, rest) = digits.split_once('h')?;
    let left = if rest.is_empty() { 0 } else { rest.strip_suffix('m')?.parse::<i64>().ok()? };
    Some(sign * (hours.parse::<i64>().ok()? * 60 + left) * 60_000)
}

/// Two values become a step.
trait IntoStep<A, B> {
    fn into_step(self, make: fn(A, B) -> Step) -> Step;
}

impl<A, B> IntoStep<A, B> for (A, B) {
    fn into_step(self, make: fn(A, B) -> Step) -> Step {
        make(self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_notation_is_read() {
        let step = |text: &str| format!("{:?}", Step::parse(&json!(text)).unwrap());
        assert_eq!(step("symlink a -> $O/x"), r#"Link("a", "$O/x")"#);
        assert_eq!(step("later 167h59m"), "Later(604740000)");
        assert_eq!(step("wall-jump -48h"), "WallJump(-172800000)");
        assert_eq!(step("concurrent swap d <-> evil"), r#"Concurrent(Swap("d", "evil"))"#);
        assert!(Step::parse(&json!("fiel f = x")).is_err());
        assert!(Step::parse(&json!(1)).is_err());
        assert!(Step::parse(&json!({ "call": "read", "arguments": 1 })).is_err());
    }
}
