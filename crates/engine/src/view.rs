//! What a plan may look at. Every look through here is judged against the caller's readable scope, so an operation
//! that discovers places cannot see around a rule. No method writes.

mod large;

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use path::{Name, RelPath};

use crate::{
    buffers::Buffer,
    caller::{Caller, Principal},
    control::Control,
    engine::{Call, Held},
    failure::{Failure, Kind},
    limits,
    operation::Target,
    plan::{Seen, Top, Tree},
    policy::{Action, Asked, InForce, Right, Tier},
    recall::{LastSeen, Recall, Shown},
    terms::{Evidence, Terms},
    unsaved::{Desktop, Unsaved},
    version::Version,
    workspace::{FileBytes, Listed, Looked, Node, Want, Workspace},
};

/// A caller's sight of a workspace during one call.
pub(crate) struct View<'a> {
    workspace: &'a dyn Workspace,
    pub(crate) caller: &'a Caller,
    pub(crate) control: &'a Control<'a>,
    pub(crate) terms: &'a Terms,
    /// The policy that this call is judged by.
    pub(crate) in_force: &'a InForce,
    /// The operation, as rules name it.
    pub(crate) operation: &'a str,
    /// Places that the call asked for and was let to see. Filled only where rules are about looking.
    passed: RwLock<Vec<RelPath>>,
    /// The text that editors have not saved.
    desktop: Desktop,
    /// What sessions last saw, where that is remembered.
    recall: Option<&'a Recall>,
    /// What the caller gave for a file that holds more than that after the call.
    given: RwLock<Option<(RelPath, Vec<u8>)>>,
}

/// One thing met on a walk.
pub(crate) struct Met<'a> {
    pub(crate) path: &'a RelPath,
    pub(crate) node: Node,
}

impl<'a> View<'a> {
    pub(crate) fn new(workspace: &'a dyn Workspace, call: &'a Call<'a>, in_force: &'a InForce) -> Self {
        Self {
            workspace,
            caller: call.caller,
            control: &call.control,
            terms: &call.terms,
            in_force,
            operation: call.operation,
            passed: RwLock::default(),
            desktop: Desktop::default(),
            recall: None,
            given: RwLock::default(),
        }
    }

    /// The same sight with a memory of what sessions saw.
    pub(crate) fn recalling(mut self, recall: &'a Recall) -> Self {
        self.recall = Some(recall);
        self
    }

    /// The caller is shown this version of a file, and these bytes if it is the whole.
    pub(crate) fn remember(&self, path: &RelPath, version: Version, bytes: Option<&[u8]>) {
        if let Some(recall) = self.recall {
            let unsaved = self.unsaved(path).ok().flatten();
            let unsaved = unsaved.is_some_and(|unsaved| unsaved.saved.version != version);
            recall.remember(self.caller, path, Shown { version, bytes, unsaved });
        }
    }

    /// What the caller gave for a file: all that it knows of it, where more was merged in.
    pub(crate) fn gave(&self, given: Option<(RelPath, Vec<u8>)>) {
        *self.given.write().unwrap_or_else(PoisonError::into_inner) = given;
    }

    /// What the caller knows of a file that the call leaves with these bytes.
    pub(crate) fn knows_of(&self, path: &RelPath, version: Version, bytes: &[u8]) -> (Version, Vec<u8>) {
        let given = self.given.read().unwrap_or_else(PoisonError::into_inner);
        match given.as_ref().filter(|(place, _)| place == path) {
            Some((_, given)) => (Version::of(given), given.clone()),
            None => (version, bytes.to_vec()),
        }
    }

    /// What the caller's session last saw of a file that it may read.
    pub(crate) fn last_seen(&self, path: &RelPath) -> Option<LastSeen> {
        self.recall?.last(self.caller, path).filter(|_| self.may_read(path))
    }

    /// The same sight for somebody else who would ask for something else.
    pub(crate) fn of(&self, caller: &'a Caller, operation: &'a str, terms: &'a Terms) -> Self {
        Self {
            workspace: self.workspace,
            caller,
            control: self.control,
            terms,
            in_force: self.in_force,
            operation,
            passed: RwLock::default(),
            desktop: Desktop::default(),
            recall: self.recall,
            given: RwLock::default(),
        }
    }

    /// The places that the call asked for were judged and may be seen.
    pub(crate) fn pass(&self, targets: &[Target]) {
        if self.in_force.policy.rules_reading() {
            let mut passed = self.passed.write().unwrap_or_else(PoisonError::into_inner);
            *passed = targets.iter().map(|target| target.path.clone()).collect();
        }
    }

    /// Who asks for what, as rules see it. What a tool's definition says binds agents: a person has said yes already.
    pub(crate) fn asked(&self) -> Asked<'a> {
        let declared = match &self.caller.principal {
            Principal::Agent(_) => self.terms.tier,
            Principal::User(_) | Principal::System | Principal::Outside => None,
        };
        let tool = self.terms.tool.as_deref();
        Asked { principal: &self.caller.principal, operation: self.operation, tool, declared }
    }

    /// Whether a rule lets this place be looked at. What needs a person's yes to be seen is left out of walks, unless
    /// it is what the call asked for.
    fn may_look(&self, path: &RelPath) -> bool {
        let asked = self.asked();
        let tier = |right| self.in_force.policy.judge(&asked, &Action::new(right, path)).tier;
        tier(Right::Read).max(tier(Right::List)) < Tier::ApprovalRequired
            || self.passed.read().unwrap_or_else(PoisonError::into_inner).contains(path)
    }

    /// The workspace itself, for journal look-ups that no scope guards.
    pub(crate) fn workspace(&self) -> &'a dyn Workspace {
        self.workspace
    }

    /// What one file held, if the terms ask for it.
    pub(crate) fn evidence(
        &self,
        path: &RelPath,
        before: Option<&[u8]>,
        after: Option<&[u8]>,
    ) -> Option<Held> {
        match self.terms.evidence {
            Evidence::None => None,
            Evidence::Bytes => Some(Held {
                path: path.clone(),
                before: before.map(<[u8]>::to_vec),
                after: after.map(<[u8]>::to_vec),
            }),
        }
    }

    /// Whether this caller was granted a place to see.
    pub(crate) fn was_granted(&self, path: &RelPath) -> bool {
        let grants = &self.caller.grants;
        grants.readable.iter().any(|granted| path.is_within(granted)) && !grants.hidden.hide(path)
    }

    /// Whether this caller may see a place.
    pub(crate) fn may_read(&self, path: &RelPath) -> bool {
        self.was_granted(path) && (!self.in_force.policy.rules_reading() || self.may_look(path))
    }

    /// Whether this caller sees what is there, no more and no less than everybody else who does.
    pub(crate) fn sees_all(&self) -> bool {
        let grants = &self.caller.grants;
        let granted = grants.hidden.is_empty() && grants.readable.iter().any(RelPath::is_root);
        granted && !self.in_force.policy.rules_reading()
    }

    /// Whether this caller may see a place or something below it, so that a directory above a grant can be listed.
    pub(crate) fn may_pass(&self, path: &RelPath) -> bool {
        let grants = &self.caller.grants;
        let passed = || grants.readable.iter().any(|granted| granted.is_within(path));
        self.may_read(path) || (passed() && !grants.hidden.hide(path))
    }

    fn readable(&self, path: &RelPath) -> Result<(), Failure> {
        if self.may_read(path) {
            return Ok(());
        }
        Err(Failure::new(Kind::OutOfScope, "that place is outside what you may read"))
    }

    /// Whether names in a directory must be judged one by one.
    fn must_sift(&self, directory: &RelPath) -> bool {
        self.in_force.policy.rules_reading()
            || !self.caller.grants.hidden.is_empty()
            || !self.may_read(directory)
    }

    /// What is under these names of one directory.
    pub(crate) fn stat_names(&self, directory: &RelPath, names: &[Name]) -> Result<Vec<Looked>, Failure> {
        let mut looked = self.workspace.stat_names(directory, names)?;
        if self.must_sift(directory) {
            for (name, looked) in names.iter().zip(&mut looked) {
                if let Err(failure) = self.readable(&directory.join(name)?) {
                    *looked = Err(failure);
                }
            }
        }
        Ok(looked)
    }

    /// Bytes of a file with the version of the whole: the text that an editor has not saved, or what is on disk.
    pub(crate) fn read(&self, path: &RelPath, want: Want) -> Result<FileBytes, Failure> {
        self.readable(path)?;
        self.read_for_change(path, want)
    }

    /// The same for a call that may change a file without being allowed to read it. Nothing of it is answered.
    pub(crate) fn read_for_change(&self, path: &RelPath, want: Want) -> Result<FileBytes, Failure> {
        match self.unsaved(path)? {
            Some(unsaved) => unsaved.file(want),
            None => self.saved(path, want),
        }
    }

    /// The version of a file and the stamp it had.
    pub(crate) fn observe(&self, path: &RelPath) -> Result<Seen, Failure> {
        if let Some(unsaved) = self.unsaved(path)? {
            return Ok(unsaved.seen());
        }
        let file = self.saved(path, Want::Nothing)?;
        Ok(Seen { version: file.version, stamp: file.node.stamp })
    }

    /// What an editor has of a file that the disk has not.
    pub(crate) fn unsaved(&self, path: &RelPath) -> Result<Option<Arc<Unsaved>>, Failure> {
        self.desktop.unsaved(self.workspace, path)
    }

    /// The same for a caller who may read the file.
    pub(crate) fn unsaved_readable(&self, path: &RelPath) -> Option<Arc<Unsaved>> {
        // What cannot be looked up is read from the disk.
        self.may_read(path).then(|| self.unsaved(path).ok().flatten()).flatten()
    }

    /// What editors have not saved at or below a place, of files that the caller may read.
    pub(crate) fn unsaved_within(&self, top: &RelPath) -> Result<BTreeMap<RelPath, Arc<Unsaved>>, Failure> {
        let mut found = BTreeMap::new();
        for path in self.open_within(top)? {
            if let Some(unsaved) = self.unsaved_readable(&path) {
                found.insert(path, unsaved);
            }
        }
        Ok(found)
    }

    /// The unsaved texts that this call has looked at.
    pub(crate) fn unsaved_used(&self) -> Vec<Arc<Unsaved>> {
        self.desktop.used()
    }

    /// The buffer that an editor has open of a file, whether it holds anything unsaved or not.
    pub(crate) fn open_buffer(&self, path: &RelPath) -> Result<Option<Buffer>, Failure> {
        self.desktop.open(self.workspace, path)
    }

    /// The files at or below a place that editors have open.
    pub(crate) fn open_within(&self, top: &RelPath) -> Result<Vec<RelPath>, Failure> {
        self.desktop.open_within(self.workspace, top)
    }

    /// What editors that went away left of a file.
    pub(crate) fn drafts(&self, path: &RelPath) -> Result<Vec<Buffer>, Failure> {
        self.desktop.drafts(self.workspace, path)
    }

    /// Every buffer and draft.
    pub(crate) fn buffers(&self) -> Result<Vec<Buffer>, Failure> {
        self.desktop.all(self.workspace)
    }

    /// The places of the call are locked: from now on no editor changes its text of them.
    pub(crate) fn locked(&self) {
        self.desktop.look_again();
    }

    /// The names in a directory that this caller may see.
    pub(crate) fn list(&self, path: &RelPath) -> Result<Vec<Listed>, Failure> {
        let mut names = self.workspace.list(path)?;
        self.keep_visible(path, &mut names);
        Ok(names)
    }

    /// Takes away the names of a directory that this caller may not see.
    pub(crate) fn keep_visible(&self, directory: &RelPath, names: &mut Vec<Listed>) {
        if self.must_sift(directory) {
            names.retain(|listed| directory.join(&listed.name).is_ok_and(|child| self.may_pass(&child)));
        }
    }

    /// The short name of a version: the entry that made it, or the first digits of its hash.
    pub(crate) fn rev(&self, path: &RelPath, version: &Version) -> String {
        match self.workspace.rev_of(path, version) {
            Ok(Some(number)) => format!("r{number}"),
            Ok(None) | Err(_) => version.short(),
        }
    }

    /// Walks a tree, parents before children, without following links, and counts it. What lies deeper than any path
    /// can say fails the walk.
    pub(crate) fn walk(
        &self,
        top: &RelPath,
        node: Node,
        visit: &mut dyn FnMut(Met<'_>) -> Result<(), Failure>,
    ) -> Result<Tree, Failure> {
        self.walk_as(Depths::Nameable, top, node, visit)
    }

    /// The same for a tree that goes as a whole: what lies deeper than any path can say is not entered.
    pub(crate) fn walk_whole(
        &self,
        top: &RelPath,
        node: Node,
        visit: &mut dyn FnMut(Met<'_>) -> Result<(), Failure>,
    ) -> Result<Tree, Failure> {
        self.walk_as(Depths::Any, top, node, visit)
    }

    /// What is in a directory, last name first.
    fn children(&self, path: &RelPath, depths: Depths) -> Result<Vec<(RelPath, Node)>, Failure> {
        let mut names: Vec<Name> = self.workspace.list(path)?.into_iter().map(|listed| listed.name).collect();
        names.reverse();
        if depths == Depths::Any {
            names.retain(|name| path.join(name).is_ok());
        }
        let mut children = Vec::with_capacity(names.len());
        for (name, looked) in names.iter().zip(self.workspace.stat_names(path, &names)?) {
            // Gone since it was listed: somebody else removed it, which is no concern of a walk.
            if let Some(node) = looked? {
                children.push((path.join(name)?, node));
            }
        }
        Ok(children)
    }

    fn walk_as(
        &self,
        depths: Depths,
        top: &RelPath,
        node: Node,
        visit: &mut dyn FnMut(Met<'_>) -> Result<(), Failure>,
    ) -> Result<Tree, Failure> {
        let mut tree = Tree { top: node.top, files: 0, directories: 0, bytes: 0 };
        let mut waiting = vec![(top.clone(), node)];
        while let Some((path, node)) = waiting.pop() {
            self.control.check()?;
            match node.top {
                Top::Directory => {
                    tree.directories += 1;
                    waiting.extend(self.children(&path, depths)?);
                }
                Top::File | Top::Link | Top::Special => {
                    tree.files += 1;
                    tree.bytes += node.size;
                }
            }
            visit(Met { path: &path, node })?;
            let done = tree.files + tree.directories;
            if done.is_multiple_of(PROGRESS_EVERY) {
                self.control.advance(PROGRESS_EVERY);
            }
            if done + waiting.len() as u64 > limits::TREE_ENTRIES_MAX {
                return Err(Failure::new(
                    Kind::TooLarge,
                    format!("more than {} entries below {top}", limits::TREE_ENTRIES_MAX),
                )
                .hint("work on a smaller subtree"));
            }
        }
        Ok(tree)
    }
}

/// How deep a tree may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depths {
    /// As deep as a path can say.
    Nameable,
    /// As deep as it is.
    Any,
}

/// Entries between two progress reports.
const PROGRESS_EVERY: u64 = 512;
