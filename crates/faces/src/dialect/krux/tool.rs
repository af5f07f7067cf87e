//! The capabilities, by their names.

/// Every capability, by what its answer is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    File(File),
    Moving(Moving),
    Seek(Seek),
    Watch(Watching),
    Desk(Desk),
}

/// What reads or writes one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum File {
    Read,
    Write,
    Append,
    List,
    Stat,
}

/// What takes something from one place to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moving {
    Delete,
    Restore,
    Copy,
    Move,
}

/// What finds something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seek {
    Names,
    Contents,
}

/// What begins or ends a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watching {
    Begin,
    End,
}

/// What is not about files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Desk {
    Session,
    Whoami,
    Capabilities,
    Policy,
    Alert,
    DiskUsage,
    Begin,
    Events,
    End,
}

/// The capability of every name.
const NAMES: &[(&str, Tool)] = &[
    ("filesystem.read", Tool::File(File::Read)),
    ("filesystem.write", Tool::File(File::Write)),
    ("filesystem.list", Tool::File(File::List)),
    ("filesystem.delete", Tool::Moving(Moving::Delete)),
    ("filesystem.restore", Tool::Moving(Moving::Restore)),
    ("filesystem.stat", Tool::File(File::Stat)),
    ("filesystem.search", Tool::Seek(Seek::Names)),
    ("filesystem.search_content", Tool::Seek(Seek::Contents)),
    ("filesystem.copy", Tool::Moving(Moving::Copy)),
    ("filesystem.move", Tool::Moving(Moving::Move)),
    ("filesystem.watch", Tool::Watch(Watching::Begin)),
    ("filesystem.unwatch", Tool::Watch(Watching::End)),
    ("filesystem.append", Tool::File(File::Append)),
    ("agent.session", Tool::Desk(Desk::Session)),
    ("agent.whoami", Tool::Desk(Desk::Whoami)),
    ("agent.capabilities", Tool::Desk(Desk::Capabilities)),
    ("agent.policy", Tool::Desk(Desk::Policy)),
    ("alerts.send", Tool::Desk(Desk::Alert)),
    ("system.disk_usage", Tool::Desk(Desk::DiskUsage)),
    ("session.create", Tool::Desk(Desk::Begin)),
    ("session.events", Tool::Desk(Desk::Events)),
    ("session.end", Tool::Desk(Desk::End)),
];

impl Tool {
    pub(super) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, tool)| *tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Definition;

    #[test]
    fn every_declared_capability_is_known_and_no_other() {
        let definition = Definition::read(super::super::GENERATED).unwrap();
        let declared: Vec<&str> = definition.operations.iter().map(|one| one.name.as_str()).collect();
        let mut known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        let mut sorted = declared.clone();
        sorted.sort_unstable();
        known.sort_unstable();
        assert_eq!(sorted, known);
    }
}
