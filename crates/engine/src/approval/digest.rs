//! What an approval is bound to. Fields are written one after another, each with its length, so that no two different
//! plans have the same bytes. Times that pass by themselves are no part of it.

use journal::Digest;
use path::RelPath;
use serde_json::Value;

use crate::{
    engine::Call,
    failure::Failure,
    operation::Target,
    plan::{Change, Content, Expect, Mode, Plan, Seen, Top, Tree},
    version::Version,
    view::View,
    workspace::Stamp,
};

/// What an approval is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Binding {
    /// The call alone.
    pub(crate) call: Digest,
    /// The call with what it would do.
    pub(crate) plan: Digest,
}

/// The digest of a call: its operation, tool and whole arguments.
pub(crate) fn of_call(call: &Call<'_>) -> Digest {
    let mut out = Fields::new("call");
    out.text(call.operation);
    out.optional(call.terms.tool.as_deref());
    out.value(&Value::Object(call.arguments.clone()));
    out.digest()
}

/// The digest of a call that changes nothing: the call, the places it looks at and the policy.
pub(crate) fn of_targets(view: &View<'_>, call: &Digest, targets: &[Target]) -> Digest {
    let mut out = Fields::new("look");
    out.bytes(call.as_bytes());
    out.number(view.in_force.policy.version());
    for target in targets {
        out.path(&target.path);
    }
    out.digest()
}

/// The digest of a plan: the call, every change with what it expects, and the policy.
pub(crate) fn of_plan(view: &View<'_>, call: &Digest, plan: &Plan) -> Result<Digest, Failure> {
    let mut out = Fields::new("plan");
    out.bytes(call.as_bytes());
    out.number(view.in_force.policy.version());
    out.text(&format!("{:?}", plan.link));
    out.number(plan.changes.len() as u64);
    for change in &plan.changes {
        write_change(&mut out, view, change)?;
    }
    Ok(out.digest())
}

fn write_change(out: &mut Fields, view: &View<'_>, change: &Change) -> Result<(), Failure> {
    match change {
        Change::Put { path, expect, content, version, size, mode } => {
            out.text("put");
            out.path(path);
            out.expect(expect);
            out.content(content);
            out.version(version);
            out.number(*size);
            out.mode(mode);
        }
        Change::MakeDirectory { path, mode } => {
            out.text("make_directory");
            out.path(path);
            out.number(u64::from(*mode));
        }
        Change::MakeLink { path, target } => {
            out.text("make_link");
            out.path(path);
            out.bytes(target);
        }
        Change::Move { from, to, expect, over, tree } => {
            out.text("move");
            out.path(from);
            out.path(to);
            out.expect(expect);
            out.expect(over);
            out.tree(view, from, expect, tree)?;
        }
        Change::Remove { path, expect, keep_until_ms: _, tree } => {
            out.text("remove");
            out.path(path);
            out.expect(expect);
            out.tree(view, path, expect, tree)?;
        }
        Change::RemoveDirectory { path } => {
            out.text("remove_directory");
            out.path(path);
        }
        Change::Restore { trash, path, tree } => {
            out.text("restore");
            out.text(trash);
            out.path(path);
            out.size(tree);
        }
    }
    Ok(())
}

/// Fields with their lengths.
struct Fields(Vec<u8>);

impl Fields {
    fn new(about: &str) -> Self {
        let mut fields = Self(Vec::with_capacity(512));
        fields.text("stead approval 1");
        fields.text(about);
        fields
    }

    fn digest(&self) -> Digest {
        Version::of(&self.0).0
    }

    fn number(&mut self, number: u64) {
        self.0.extend(number.to_be_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn optional(&mut self, text: Option<&str>) {
        self.number(u64::from(text.is_some()));
        self.text(text.unwrap_or_default());
    }

    fn path(&mut self, path: &RelPath) {
        self.bytes(path.as_bytes());
    }

    fn version(&mut self, version: &Version) {
        self.bytes(version.0.as_bytes());
    }

    /// A value, whatever the order of its members.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => self.text(&value.to_string()),
            Value::String(text) => {
                self.text("s");
                self.text(text);
            }
            Value::Array(items) => {
                self.text("a");
                self.number(items.len() as u64);
                for item in items {
                    self.value(item);
                }
            }
            Value::Object(fields) => {
                self.text("o");
                self.number(fields.len() as u64);
                let mut sorted: Vec<_> = fields.iter().collect();
                sorted.sort_by_key(|(name, _)| name.as_str());
                for (name, item) in sorted {
                    self.text(name);
                    self.value(item);
                }
            }
        }
    }

    fn expect(&mut self, expect: &Expect) {
        match expect {
            Expect::Absent => self.text("absent"),
            Expect::File(Seen { version, .. }) => {
                self.text("file");
                self.version(version);
            }
            Expect::Node(stamp) => {
                self.text("node");
                self.identity(stamp);
            }
        }
    }

    fn identity(&mut self, stamp: &Stamp) {
        self.number(stamp.identity.0);
        self.number(stamp.identity.1);
    }

    fn content(&mut self, content: &Content) {
        match content {
            // The version that follows says which bytes.
            Content::Bytes(_) => self.text("bytes"),
            Content::Kept(version) => {
                self.text("kept");
                self.version(version);
            }
            Content::CopyOf(path, seen) => {
                self.text("copy");
                self.path(path);
                self.version(&seen.version);
            }
        }
    }

    fn mode(&mut self, mode: &Mode) {
        match mode {
            Mode::Keep => self.text("keep"),
            Mode::Set(bits) => {
                self.text("set");
                self.number(u64::from(*bits));
            }
            Mode::Like(path, seen) => {
                self.text("like");
                self.path(path);
                self.version(&seen.version);
            }
        }
    }

    fn size(&mut self, tree: &Tree) {
        self.text(match tree.top {
            Top::File => "file",
            Top::Directory => "directory",
            Top::Link => "link",
            Top::Special => "special",
        });
        self.number(tree.files);
        self.number(tree.directories);
        self.number(tree.bytes);
    }

    /// A tree that goes as a whole: everything in it, by what changes when it is replaced or written.
    fn tree(&mut self, view: &View<'_>, top: &RelPath, expect: &Expect, tree: &Tree) -> Result<(), Failure> {
        self.size(tree);
        if tree.top != Top::Directory || *expect == Expect::Absent {
            return Ok(());
        }
        let Some(node) = view.workspace().stat(top)? else { return Ok(()) };
        let mut inner = Fields::new("tree");
        view.walk_whole(top, node, &mut |met| {
            inner.path(met.path);
            inner.identity(&met.node.stamp);
            if met.node.top != Top::Directory {
                inner.number(met.node.size);
                inner.0.extend(met.node.stamp.modified_ns.to_be_bytes());
                inner.0.extend(met.node.stamp.changed_ns.to_be_bytes());
            }
            Ok(())
        })?;
        let digest = inner.digest();
        self.bytes(digest.as_bytes());
        Ok(())
    }
}
