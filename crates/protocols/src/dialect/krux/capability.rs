//! The capabilities and their published names.

/// A capability, grouped by the module that handles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KruxCapability {
    File(KruxFileCapability),
    Search(KruxSearchCapability),
    Agent(KruxAgentCapability),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KruxFileCapability {
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
pub(super) enum KruxSearchCapability {
    ByName,
    ByContent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KruxAgentCapability {
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

const CAPABILITY_NAMES: &[(&str, KruxCapability)] = &[
    ("filesystem.read", KruxCapability::File(KruxFileCapability::Read)),
    ("filesystem.write", KruxCapability::File(KruxFileCapability::Write)),
    ("filesystem.list", KruxCapability::File(KruxFileCapability::List)),
    ("filesystem.delete", KruxCapability::File(KruxFileCapability::Delete)),
    ("filesystem.restore", KruxCapability::File(KruxFileCapability::Restore)),
    ("filesystem.stat", KruxCapability::File(KruxFileCapability::Stat)),
    ("filesystem.search", KruxCapability::Search(KruxSearchCapability::ByName)),
    ("filesystem.search_content", KruxCapability::Search(KruxSearchCapability::ByContent)),
    ("filesystem.copy", KruxCapability::File(KruxFileCapability::Copy)),
    ("filesystem.move", KruxCapability::File(KruxFileCapability::Move)),
    ("filesystem.watch", KruxCapability::Agent(KruxAgentCapability::Watch)),
    ("filesystem.unwatch", KruxCapability::Agent(KruxAgentCapability::Unwatch)),
    ("filesystem.append", KruxCapability::File(KruxFileCapability::Append)),
    ("agent.session", KruxCapability::Agent(KruxAgentCapability::Session)),
    ("agent.whoami", KruxCapability::Agent(KruxAgentCapability::Whoami)),
    ("agent.capabilities", KruxCapability::Agent(KruxAgentCapability::Capabilities)),
    ("agent.policy", KruxCapability::Agent(KruxAgentCapability::Policy)),
    ("alerts.send", KruxCapability::Agent(KruxAgentCapability::Alert)),
    ("system.disk_usage", KruxCapability::Agent(KruxAgentCapability::DiskUsage)),
    ("session.create", KruxCapability::Agent(KruxAgentCapability::BeginSession)),
    ("session.events", KruxCapability::Agent(KruxAgentCapability::ListEvents)),
    ("session.end", KruxCapability::Agent(KruxAgentCapability::EndSession)),
];

impl KruxCapability {
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
