//! What tests do to a workspace behind its back: files that other programs made, time that passes, bytes that expire.
//! Nothing here is recorded in the journal. A path that is none is a mistake in the test and panics.

use engine::{Failure, NEW_DIRECTORY_MODE, NEW_FILE_MODE, Policy, PolicyPlace, Version};
use path::RelPath;

use super::{
    MemoryWorkspace,
    tree::{Item, Tree},
};

impl MemoryWorkspace {
    /// Puts a file there, with the directories above it.
    pub fn put_file(&self, wire: &str, bytes: impl AsRef<[u8]>) {
        self.put(wire, Item::File(bytes.as_ref().to_vec()), NEW_FILE_MODE);
    }

    /// Puts a directory there, with the directories above it.
    pub fn put_directory(&self, wire: &str) {
        self.put(wire, Item::Directory, NEW_DIRECTORY_MODE);
    }

    /// Puts a link there, whatever it points at.
    pub fn put_link(&self, wire: &str, target: impl AsRef<[u8]>) {
        self.put(wire, Item::Link(target.as_ref().to_vec()), 0o777);
    }

    /// Puts a pipe there.
    pub fn put_special(&self, wire: &str) {
        self.put(wire, Item::Special, NEW_FILE_MODE);
    }

    /// Takes something away without a trace.
    pub fn take(&self, wire: &str) {
        self.state().tree.take(&place(wire));
    }

    /// Pretends that a file has this many names.
    pub fn set_links(&self, wire: &str, links: u64) {
        if let Some(placed) = self.state().tree.get_mut(&place(wire)) {
            placed.links = links;
        }
    }

    /// Sets the permission bits.
    pub fn set_mode(&self, wire: &str, mode: u32) {
        if let Some(placed) = self.state().tree.get_mut(&place(wire)) {
            placed.mode = mode;
        }
    }

    /// Leaves no space for anything.
    pub fn fill_up(&self) {
        self.state().full = true;
    }

    /// Makes the next call fail with this, whatever it is.
    pub fn fail_next(&self, failure: Failure) {
        self.state().fails = Some(failure);
    }

    /// Lets every editor die, as if its process were killed.
    pub fn lose_editors(&self) {
        super::buffers::lose(&mut self.state());
    }

    /// Lets time pass.
    pub fn advance_ms(&self, ms: i64) {
        self.state().now_ms += ms;
    }

    /// Puts this policy in force.
    #[expect(clippy::expect_used, reason = "a malformed policy is a mistake in the test")]
    pub fn set_policy(&self, text: &str) {
        let policy = Policy::parse(text).expect("a policy");
        self.state().in_force.policy = std::sync::Arc::new(policy);
    }

    /// Takes a file of the workspace for the policy file.
    #[expect(clippy::expect_used, reason = "a policy that is not there is a mistake in the test")]
    pub fn place_policy(&self, wire: &str) {
        let path = place(wire);
        let mut state = self.state();
        let identity = state.tree.get(&path).expect("the policy file").node().stamp.identity;
        state.in_force.place = Some(PolicyPlace { path, identity });
    }

    /// Forgets kept bytes, as a quota would.
    pub fn forget(&self, version: &Version) {
        self.state().kept.remove(version);
    }

    /// The bytes of a file, if one is there.
    pub fn bytes(&self, wire: &str) -> Option<Vec<u8>> {
        match self.state().tree.get(&place(wire)).map(|placed| &placed.item) {
            Some(Item::File(bytes)) => Some(bytes.clone()),
            Some(Item::Directory | Item::Link(_) | Item::Special) | None => None,
        }
    }

    /// The permission bits of what is there.
    pub fn mode(&self, wire: &str) -> Option<u32> {
        self.state().tree.get(&place(wire)).map(|placed| placed.mode)
    }

    /// Every place but the root, in order.
    pub fn paths(&self) -> Vec<String> {
        self.state().tree.paths().map(RelPath::to_string).collect()
    }

    fn put(&self, wire: &str, item: Item, mode: u32) {
        let path = place(wire);
        let mut state = self.state();
        let now_ms = state.now_ms;
        make_parents(&mut state.tree, &path, now_ms);
        state.tree.put(&path, item, mode, now_ms);
    }
}

fn make_parents(tree: &mut Tree, path: &RelPath, now_ms: i64) {
    for above in path.ancestors() {
        if tree.get(&above).is_none() {
            tree.put(&above, Item::Directory, NEW_DIRECTORY_MODE, now_ms);
        }
    }
}

#[expect(clippy::expect_used, reason = "a path that is none is a mistake in the test")]
fn place(wire: &str) -> RelPath {
    RelPath::from_wire(wire).expect("a path in wire form")
}
