//! The capabilities of the `krux` dialect and their published names.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KruxTool {
    File(KruxFileOperation),
    Search(KruxSearchTool),
    Agent(KruxAgentAndSessionOperation),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KruxFileOperation {
    Read,
    Write,
    Append,
    List,
    Stat,
    Delete,
    Restore,
    Copy,
    Move,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KruxSearchTool {
    ByName,
    ByContent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KruxAgentAndSessionOperation {
    Session,
    Whoami,
    Capabilities,
    Policy,
    Alert,
    DiskUsage,
    BeginSession,
    ListEvents,
    EndSession,
    Watch,
    Unwatch,
}

const CAPABILITY_NAMES: &[(&str, KruxTool)] = &[
    ("filesystem.read", KruxTool::File(KruxFileOperation::Read)),
    ("filesystem.write", KruxTool::File(KruxFileOperation::Write)),
    ("filesystem.list", KruxTool::File(KruxFileOperation::List)),
    ("filesystem.delete", KruxTool::File(KruxFileOperation::Delete)),
    ("filesystem.restore", KruxTool::File(KruxFileOperation::Restore)),
    ("filesystem.stat", KruxTool::File(KruxFileOperation::Stat)),
    ("filesystem.search", KruxTool::Search(KruxSearchTool::ByName)),
    ("filesystem.search_content", KruxTool::Search(KruxSearchTool::ByContent)),
    ("filesystem.copy", KruxTool::File(KruxFileOperation::Copy)),
    ("filesystem.move", KruxTool::File(KruxFileOperation::Move)),
    ("filesystem.watch", KruxTool::Agent(KruxAgentAndSessionOperation::Watch)),
    ("filesystem.unwatch", KruxTool::Agent(KruxAgentAndSessionOperation::Unwatch)),
    ("filesystem.append", KruxTool::File(KruxFileOperation::Append)),
    ("agent.session", KruxTool::Agent(KruxAgentAndSessionOperation::Session)),
    ("agent.whoami", KruxTool::Agent(KruxAgentAndSessionOperation::Whoami)),
    ("agent.capabilities", KruxTool::Agent(KruxAgentAndSessionOperation::Capabilities)),
    ("agent.policy", KruxTool::Agent(KruxAgentAndSessionOperation::Policy)),
    ("alerts.send", KruxTool::Agent(KruxAgentAndSessionOperation::Alert)),
    ("system.disk_usage", KruxTool::Agent(KruxAgentAndSessionOperation::DiskUsage)),
    ("session.create", KruxTool::Agent(KruxAgentAndSessionOperation::BeginSession)),
    ("session.events", KruxTool::Agent(KruxAgentAndSessionOperation::ListEvents)),
    ("session.end", KruxTool::Agent(KruxAgentAndSessionOperation::EndSession)),
];

impl KruxTool {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        CAPABILITY_NAMES.iter().find(|(known, _)| *known == name).map(|(_, capability)| *capability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::DialectDefinition;

    #[test]
    fn capability_names_match_definition() {
        let definition = DialectDefinition::from_json(super::super::DEFINITION_JSON).unwrap();
        let declared: Vec<&str> = definition.operations.iter().map(|tool| tool.name.as_str()).collect();
        let mut known: Vec<&str> = CAPABILITY_NAMES.iter().map(|(name, _)| *name).collect();
        let mut sorted = declared.clone();
        sorted.sort_unstable();
        known.sort_unstable();
        assert_eq!(sorted, known);
    }
}
