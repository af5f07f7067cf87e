//! How long a call is likely to take, so that a host can choose a thread for it. A hint and nothing more: whether the
//! call may be, and what it answers, is judged by the pipeline as always.

use path::Reading;
use serde_json::{Map, Value};

use crate::{
    limits,
    plan::Top,
    workspace::{Last, Workspace},
};

/// What a call will do with its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Looks at one small file: over sooner than another thread could begin.
    Brief,
    /// Changes one small file: over in a moment, and worth a thread of its own only when others wait.
    Short,
    /// Works until it is done.
    Work,
    /// Mostly waits for something to happen.
    Wait,
}

/// How an operation's pace follows from its arguments. Declared in the table of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tempo {
    /// As long as the file at `path` is large.
    BySize,
    /// As long as `content` is large.
    ByContent,
    /// Until it is done.
    Steady,
    /// As long as `wait_ms` says.
    ByWait,
}

pub(crate) fn pace(
    workspace: &dyn Workspace,
    tempo: Tempo,
    arguments: &Map<String, Value>,
    reading: &Reading,
) -> Pace {
    match tempo {
        Tempo::Steady => Pace::Work,
        Tempo::BySize if is_small(workspace, arguments, reading) => Pace::Brief,
        Tempo::BySize => Pace::Work,
        Tempo::ByContent if has_little(arguments) => Pace::Short,
        Tempo::ByContent => Pace::Work,
        Tempo::ByWait if arguments.get("wait_ms").is_some_and(|wait| wait.as_u64() != Some(0)) => Pace::Wait,
        Tempo::ByWait => Pace::Work,
    }
}

/// How many bytes a call is likely to bring into memory, as far as that can be known before it is made.
pub(crate) fn weight(
    workspace: &dyn Workspace,
    tempo: Tempo,
    arguments: &Map<String, Value>,
    reading: &Reading,
) -> u64 {
    match tempo {
        Tempo::BySize => {
            let size = size(workspace, arguments, reading).unwrap_or_default();
            asked_for(arguments).map_or(size, |part| part.min(size))
        }
        Tempo::ByContent | Tempo::Steady | Tempo::ByWait => 0,
    }
}

/// The length of the part that was asked for, where one was.
fn asked_for(arguments: &Map<String, Value>) -> Option<u64> {
    let (first, last) = arguments.get("bytes")?.as_str()?.split_once('-')?;
    let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
    Some(last.saturating_sub(first).saturating_add(1))
}

fn has_little(arguments: &Map<String, Value>) -> bool {
    let content = arguments.get("content").and_then(Value::as_str);
    content.is_some_and(|content| content.len() as u64 <= limits::BRIEF_BYTES_MAX)
}

fn is_small(workspace: &dyn Workspace, arguments: &Map<String, Value>, reading: &Reading) -> bool {
    size(workspace, arguments, reading).is_some_and(|size| size <= limits::BRIEF_BYTES_MAX)
}

/// The size of the file at `path`, if there is one.
fn size(workspace: &dyn Workspace, arguments: &Map<String, Value>, reading: &Reading) -> Option<u64> {
    let spelled = arguments.get("path").and_then(Value::as_str)?;
    let spelling = path::parse(spelled, &workspace.profile().roots, reading).ok()?;
    let (found, seen) = workspace.find(&spelling.path, Last::Follow).ok()?;
    let node = match seen {
        Some(node) => node,
        None => workspace.stat(&found).ok()??,
    };
    (node.top == Top::File).then_some(node.size)
}
