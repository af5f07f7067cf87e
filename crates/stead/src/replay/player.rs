//! Plays the steps of a recording in a temporary directory through a dialect and an engine.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use stead_engine::{CallControl, Caller, FileNamePolicy, Principal};
use stead_local::{Durability, LocalWorkspaceOptions};
use stead_protocols::dialect::{Dialect, DialectFilesystemReach, DialectReply, DialectSet, DialectWorkspaceRootPath};

use super::{
    compare::{self, RecordedStepComparisonResult, RecordingReplayMismatch},
    directory::ReplayTempDirectory,
    placeholders::RecordingPlaceholders,
    recording::{RecordedToolCallStep, RecordingNewWorkspaceStep, RecordingStepAction},
};
use crate::{
    open_workspace::{self, CommandLineWorkspace},
    output::CommandError,
};

const DEFAULT_WORKSPACE: &str = "$ROOT/ws";
const AGENT_NAME: &str = "agent-1";
const SESSION_ID: &str = "s1";

type ReplayStepResult = Result<Option<RecordedStepComparisonResult>, CommandError>;

pub(super) struct RecordingPlayer {
    dialect: String,
    settings: Vec<String>,
    played: Option<ReplayCommandTempWorkspace>,
}

struct ReplayCommandTempWorkspace {
    // This field is declared first, so that the workspace is dropped before its directory.
    open_workspace: Option<CommandLineWorkspace>,
    directory: ReplayTempDirectory,
    workspace: PathBuf,
    placeholders: RecordingPlaceholders,
    settings: Vec<String>,
    matched_rows: Vec<usize>,
}

impl RecordingPlayer {
    pub(super) fn new(dialect: &str, settings: &[String]) -> Result<Self, CommandError> {
        let player = Self { dialect: dialect.to_owned(), settings: settings.to_vec(), played: None };
        // Reports an invalid setting before anything is created.
        build_dialects(&player.dialect, &player.settings, Path::new("/"))?;
        Ok(player)
    }

    pub(super) fn play_step(&mut self, action: RecordingStepAction) -> ReplayStepResult {
        if let RecordingStepAction::NewWorkspace(new) = action {
            self.played = None;
            self.played = Some(self.new_workspace(&new)?);
            return Ok(None);
        }
        if self.played.is_none() {
            self.played = Some(self.new_workspace(&RecordingNewWorkspaceStep { workspace: None, restrict: None })?);
        }
        let Some(set) = &mut self.played else { return Ok(None) };
        match action {
            RecordingStepAction::NewWorkspace(_) => {}
            RecordingStepAction::Mkdir { path } => set.directory.make_directory(&set.resolve_path(&path))?,
            RecordingStepAction::WriteFile(put) => {
                let bytes = put.bytes().map_err(CommandError::Usage)?;
                set.directory.write_file(&set.resolve_path(&put.path), &bytes)?;
            }
            RecordingStepAction::Symlink { path, target } => {
                set.directory.make_symlink(&set.resolve_path(&path), &set.placeholders.substitute(&target))?;
            }
            RecordingStepAction::Chmod { path, mode } => set.directory.set_mode(&set.resolve_path(&path), &mode)?,
            RecordingStepAction::ExpectFile(disk) => {
                let found = set.directory.read_file(&set.resolve_path(&disk.path))?;
                return Ok(Some(compare::compare_file(&disk.facts, found.as_ref())));
            }
            RecordingStepAction::ExpectAuditEntry { entry } => {
                let Some(opened) = &set.open_workspace else {
                    return Ok(Some(Err(RecordingReplayMismatch::new("an audit row", "no call was made yet"))));
                };
                return compare::compare_audit_row(&*opened.local, &entry, &mut set.matched_rows).map(Some);
            }
            RecordingStepAction::Call(call) => return set.play_call(&self.dialect, &self.settings, &call),
        }
        Ok(None)
    }

    fn new_workspace(&self, new: &RecordingNewWorkspaceStep) -> Result<ReplayCommandTempWorkspace, CommandError> {
        let directory = ReplayTempDirectory::new()?;
        let named = new.workspace.as_deref().unwrap_or(DEFAULT_WORKSPACE);
        let workspace = named.replace("$ROOT", directory.root());
        directory.make_directory(Path::new(&workspace))?;
        let placeholders = RecordingPlaceholders::new(directory.root(), &workspace);
        let chosen = build_dialects(&self.dialect, &self.settings, Path::new(&workspace))?;
        let restrict = new.restrict.map(|restrict| ("restrict", restrict.to_string()));
        let settings = supported_settings(&chosen, restrict.into_iter());
        Ok(ReplayCommandTempWorkspace {
            open_workspace: None,
            directory,
            workspace: workspace.into(),
            placeholders,
            settings,
            matched_rows: Vec::new(),
        })
    }
}

impl ReplayCommandTempWorkspace {
    fn resolve_path(&self, written: &str) -> PathBuf {
        self.workspace.join(self.placeholders.substitute(written))
    }

    fn play_call(&mut self, dialect: &str, base: &[String], call: &RecordedToolCallStep) -> ReplayStepResult {
        let (tool, variant) = split_variant(&call.tool);
        let forbidden = call.forbidden_globs.as_deref().unwrap_or("none");
        let settings: Vec<String> = [base, &self.settings].concat();
        let chosen = build_dialects(dialect, &settings, &self.workspace)?;
        let call_settings = supported_settings(&chosen, [("forbidden_globs", forbidden.to_owned())].into_iter());
        let variant: Vec<String> = variant.into_iter().map(|setting| self.placeholders.substitute(&setting)).collect();
        let dialects = match build_dialects(dialect, &[settings, call_settings, variant].concat(), &self.workspace) {
            // A setting that the dialect lacks is a difference from the recorded server, not a usage error.
            Err(CommandError::Usage(problem)) => {
                return Ok(call
                    .expect
                    .is_some()
                    .then(|| Err(RecordingReplayMismatch::new("the settings of the call", problem))));
            }
            other => other?,
        };
        let Some(dialect) = dialects.find_by_tool(tool) else {
            return Ok(Some(Err(RecordingReplayMismatch::new(format!("a tool {tool}"), "no such tool"))));
        };
        let reply = self.run_call(dialect, tool, call)?;
        let result = compare::compare_answer(call, &reply, &mut self.placeholders);
        self.placeholders.bind_trash_handles(&reply.json_fields());
        Ok(result)
    }

    fn run_call(
        &mut self,
        dialect: &Arc<dyn Dialect>,
        tool: &str,
        call: &RecordedToolCallStep,
    ) -> Result<DialectReply, CommandError> {
        let opened = match self.open_workspace.take() {
            Some(opened) => opened,
            None => {
                open_throwaway_workspace(&self.workspace, self.directory.state_path(), &dialect.filesystem_reach())?
            }
        };
        let arguments = self.placeholders.substitute_object(&call.args);
        let mut caller = Caller::new(Principal::Agent(AGENT_NAME.to_owned()), SESSION_ID, "replay");
        dialect.restrict_grants(&mut caller);
        let call = dialect.translate_with_tier(tool, &arguments);
        let finished = call.run(&opened.engine, &caller, None, &CallControl::default());
        self.open_workspace = Some(opened);
        Ok(finished.reply)
    }
}

fn open_throwaway_workspace(
    workspace: &Path,
    state: PathBuf,
    reach: &DialectFilesystemReach,
) -> Result<CommandLineWorkspace, CommandError> {
    let mut options = match reach {
        DialectFilesystemReach::Workspace => LocalWorkspaceOptions::new(workspace.to_owned(), state),
        DialectFilesystemReach::WholeMachine => open_workspace::whole_machine_options(workspace, state)?,
    };
    options.durability = Durability::Fast;
    options.name_profile = FileNamePolicy::Posix;
    open_workspace::open_with_options(options)
}

fn build_dialects(dialect: &str, settings: &[String], workspace: &Path) -> Result<DialectSet, CommandError> {
    let location = DialectWorkspaceRootPath { root: workspace.to_string_lossy().into_owned() };
    DialectSet::from_names(&[dialect.to_owned()], settings, &location)
        .map_err(|error| CommandError::Usage(error.to_string()))
}

fn supported_settings(dialects: &DialectSet, wanted: impl Iterator<Item = (&'static str, String)>) -> Vec<String> {
    let has = |name: &str| {
        dialects.iter().any(|dialect| dialect.definition().options.iter().any(|option| option.name == name))
    };
    wanted.filter(|(name, _)| has(name)).map(|(name, value)| format!("{name}={value}")).collect()
}

/// Splits a recorded tool name with settings, such as `read_file(lines,max=10)`, into the name and the settings.
fn split_variant(tool: &str) -> (&str, Vec<String>) {
    let Some((name, inside)) = tool.strip_suffix(')').and_then(|tool| tool.split_once('(')) else {
        return (tool, Vec::new());
    };
    let setting = |word: &str| match word.split_once('=') {
        None => format!("read_mode={word}"),
        Some(("max", bytes)) => format!("read_bytes_max={bytes}"),
        Some((name, value)) => format!("{name}={value}"),
    };
    (name, inside.split(',').map(setting).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_variant_is_split_from_its_settings() {
        assert_eq!(split_variant("list_dir"), ("list_dir", vec![]));
        let settings = vec!["read_mode=lines".to_owned(), "read_bytes_max=10".to_owned()];
        assert_eq!(split_variant("read_file(lines,max=10)"), ("read_file", settings));
    }
}
