//! Changes that tests make to the memory workspace without the engine; the journal does not record them. An invalid
//! path causes a panic, because the path is a mistake in the test.

use stead_engine::{
    Error, InWorkspacePolicyFileLocation, NEW_DIRECTORY_MODE, NEW_FILE_MODE, Policy, Version, Workspace,
};
use stead_path::RelPath;

use super::{
    MemoryWorkspace,
    tree::{InMemoryTreeNodeContent, MemoryTree},
};

impl MemoryWorkspace {
    /// Creates a file and its missing parents.
    pub fn put_file(&self, wire: &str, bytes: impl AsRef<[u8]>) {
        self.put_item(wire, InMemoryTreeNodeContent::File(bytes.as_ref().to_vec()), NEW_FILE_MODE);
    }

    /// Creates a directory and its missing parents.
    pub fn put_directory(&self, wire: &str) {
        self.put_item(wire, InMemoryTreeNodeContent::Directory, NEW_DIRECTORY_MODE);
    }

    /// Creates a symbolic link, whose target need not exist or be inside the workspace.
    pub fn put_link(&self, wire: &str, target: impl AsRef<[u8]>) {
        self.put_item(wire, InMemoryTreeNodeContent::Link(target.as_ref().to_vec()), 0o777);
    }

    /// Creates a special file, such as a named pipe.
    pub fn put_special(&self, wire: &str) {
        self.put_item(wire, InMemoryTreeNodeContent::Special, NEW_FILE_MODE);
    }

    /// Removes a path without a journal entry.
    pub fn remove_silently(&self, wire: &str) {
        self.lock_state().tree.take_subtree(&rel_path(wire));
    }

    /// Sets the number of hard links that a file reports.
    pub fn set_link_count(&self, wire: &str, links: u64) {
        if let Some(placed) = self.lock_state().tree.get_mut(&rel_path(wire)) {
            placed.links = links;
        }
    }

    /// Sets the permission bits of a path.
    pub fn set_mode(&self, wire: &str, mode: u32) {
        if let Some(placed) = self.lock_state().tree.get_mut(&rel_path(wire)) {
            placed.mode = mode;
        }
    }

    /// Makes the disk of the memory workspace full.
    pub fn fill_up(&self) {
        self.lock_state().is_full = true;
    }

    /// Makes the next call of the memory workspace fail with this error.
    pub fn fail_next(&self, failure: Error) {
        self.lock_state().next_error = Some(failure);
    }

    /// Turns all open buffers into drafts, as if all editors had crashed.
    pub fn kill_editors(&self) {
        self.lock_state().holders.end_process();
    }

    /// Ends what belongs to the process: open buffers become drafts, and watches of the process end.
    #[expect(clippy::expect_used, reason = "the rows of a memory workspace can be written")]
    pub fn end_process(&self) {
        self.lock_state().holders.end_process();
        (self as &dyn Workspace).delete_ended_watches().expect("watches");
    }

    /// Advances the clock of the memory workspace by this many milliseconds.
    pub fn advance_ms(&self, ms: i64) {
        self.lock_state().now_ms += ms;
    }

    /// Replaces the policy of the memory workspace by the policy in this TOML text.
    #[expect(clippy::expect_used, reason = "a malformed policy is a mistake in the test")]
    pub fn set_policy(&self, text: &str) {
        let policy = Policy::parse(text).expect("a policy");
        self.lock_state().policy.policy = std::sync::Arc::new(policy);
    }

    /// Marks a file of the workspace as the protected policy file.
    #[expect(clippy::expect_used, reason = "a policy that is not there is a mistake in the test")]
    pub fn protect_policy_file(&self, wire: &str) {
        let path = rel_path(wire);
        let mut state = self.lock_state();
        let identity = state.tree.get(&path).expect("the policy file").node().identity;
        state.policy.file_location = Some(InWorkspacePolicyFileLocation { path, identity });
    }

    /// Deletes a retained file version, as happens when the quota for retained versions is exceeded.
    pub fn forget_version(&self, version: &Version) {
        self.lock_state().retained_versions.remove(version);
    }

    /// Returns the bytes of a file; `None` if the path is not a file.
    pub fn bytes(&self, wire: &str) -> Option<Vec<u8>> {
        match self.lock_state().tree.get(&rel_path(wire)).map(|placed| &placed.item) {
            Some(InMemoryTreeNodeContent::File(bytes)) => Some(bytes.clone()),
            Some(
                InMemoryTreeNodeContent::Directory
                | InMemoryTreeNodeContent::Link(_)
                | InMemoryTreeNodeContent::Special,
            )
            | None => None,
        }
    }

    /// Returns the permission bits of a path; `None` if the path does not exist.
    pub fn mode(&self, wire: &str) -> Option<u32> {
        self.lock_state().tree.get(&rel_path(wire)).map(|placed| placed.mode)
    }

    /// Returns all paths in the workspace except the root, in order.
    pub fn all_paths(&self) -> Vec<String> {
        self.lock_state().tree.paths().map(RelPath::to_string).collect()
    }

    fn put_item(&self, wire: &str, item: InMemoryTreeNodeContent, mode: u32) {
        let path = rel_path(wire);
        let mut state = self.lock_state();
        let now_ms = state.now_ms;
        make_parents(&mut state.tree, &path, now_ms);
        state.tree.put(&path, item, mode, now_ms);
    }
}

fn make_parents(tree: &mut MemoryTree, path: &RelPath, now_ms: i64) {
    for above in path.ancestors() {
        if tree.get(&above).is_none() {
            tree.put(&above, InMemoryTreeNodeContent::Directory, NEW_DIRECTORY_MODE, now_ms);
        }
    }
}

#[expect(clippy::expect_used, reason = "a path that is none is a mistake in the test")]
fn rel_path(wire: &str) -> RelPath {
    RelPath::from_wire(wire).expect("a path in wire form")
}
