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

fn has_little(arguments: &Map<String, Value>) -> bool {
    let content = arguments.get("content").and_then(Value::as_str);
    content.is_some_and(|content| content.len() as u64 <= limits::BRIEF_BYTES_MAX)
}

fn is_small(workspace: &dyn Workspace, arguments: &Map<String, Value>, reading: &Reading) -> bool {
    let spelled = arguments.get("path").and_then(Value::as_str);
    let Some(spelling) = spelled.and_then(|text| path::parse(text, &workspace.profile().roots, reading).ok())
    else {
        return false;
    };
    let node = workspace.locate(&spelling.path, Last::Follow).and_then(|found| workspace.stat(&found));
    matches!(node, Ok(Some(node)) if node.top == Top::File && node.size <= limits::BRIEF_BYTES_MAX)
}
