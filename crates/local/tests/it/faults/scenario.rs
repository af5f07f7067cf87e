//! The changes that are disturbed: every mutating operation, then each of them undone, then each redone.

use serde_json::{Value, json};

use crate::support::Fixture;

/// One call, with what must be there before it.
#[derive(Clone, Copy)]
pub(crate) struct Base {
    pub(crate) name: &'static str,
    /// Makes the world ready and answers the call.
    ready: fn(&Fixture) -> (&'static str, Value),
}

/// Which way the call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Do,
    Undo,
    Redo,
}

/// Larger than what the store keeps inline.
const LARGE: usize = 80 << 10;

fn text(letter: &str) -> String {
    letter.repeat(LARGE)
}

fn write(fixture: &Fixture, path: &str, content: &str) -> Value {
    fixture.ok("write", json!({ "path": path, "content": content }))["version"].clone()
}

fn tree(fixture: &Fixture) {
    write(fixture, "d/one", "1");
    write(fixture, "d/sub/large", &text("l"));
    write(fixture, "d/sub/two", "2");
}

/// Every scenario.
pub(crate) const BASES: &[Base] = &[
    Base { name: "create", ready: |_| ("write", json!({ "path": "new", "content": "new" })) },
    Base { name: "create_parents", ready: |_| ("write", json!({ "path": "a/b/c", "content": "new" })) },
    Base { name: "create_large", ready: |_| ("write", json!({ "path": "a/new", "content": text("n") })) },
    Base {
        name: "replace",
        ready: |fixture| {
            let base = write(fixture, "f", "old");
            ("write", json!({ "path": "f", "content": "new", "base": base }))
        },
    },
    Base {
        name: "replace_large",
        ready: |fixture| {
            let base = write(fixture, "f", &text("o"));
            ("write", json!({ "path": "f", "content": text("n"), "base": base }))
        },
    },
    Base {
        name: "append",
        ready: |fixture| {
            write(fixture, "f", "old\n");
            ("append", json!({ "path": "f", "content": "new\n" }))
        },
    },
    Base {
        name: "copy",
        ready: |fixture| {
            write(fixture, "f", "old");
            ("copy", json!({ "from": "f", "to": "g/h" }))
        },
    },
    Base {
        name: "copy_tree",
        ready: |fixture| {
            tree(fixture);
            ("copy", json!({ "from": "d", "to": "e" }))
        },
    },
    Base {
        name: "move",
        ready: |fixture| {
            write(fixture, "f", "old");
            ("move", json!({ "from": "f", "to": "g/h" }))
        },
    },
    Base {
        name: "move_over",
        ready: |fixture| {
            write(fixture, "f", "one");
            write(fixture, "g", "two");
            ("move", json!({ "from": "f", "to": "g", "overwrite": true }))
        },
    },
    Base {
        name: "move_over_large",
        ready: |fixture| {
            write(fixture, "f", "one");
            write(fixture, "g", &text("g"));
            ("move", json!({ "from": "f", "to": "g", "overwrite": true }))
        },
    },
    Base {
        name: "move_tree",
        ready: |fixture| {
            tree(fixture);
            ("move", json!({ "from": "d", "to": "x/y" }))
        },
    },
    Base {
        name: "remove",
        ready: |fixture| {
            write(fixture, "f", "old");
            ("remove", json!({ "path": "f" }))
        },
    },
    Base {
        name: "remove_tree",
        ready: |fixture| {
            tree(fixture);
            ("remove", json!({ "path": "d", "recursive": true }))
        },
    },
    Base {
        name: "restore",
        ready: |fixture| {
            tree(fixture);
            let removed = fixture.ok("remove", json!({ "path": "d", "recursive": true }));
            ("restore", json!({ "trash": removed["trash"] }))
        },
    },
];

/// Gets a workspace ready for a scenario and answers the call that is disturbed.
pub(crate) fn ready(fixture: &Fixture, base: &Base, way: Way) -> (&'static str, Value) {
    let (operation, arguments) = (base.ready)(fixture);
    match way {
        Way::Do => (operation, arguments),
        Way::Undo => {
            fixture.ok(operation, arguments);
            ("undo", json!({}))
        }
        Way::Redo => {
            fixture.ok(operation, arguments);
            fixture.ok("undo", json!({}));
            ("redo", json!({}))
        }
    }
}

/// The call that takes a scenario's call back.
pub(crate) fn inverse(way: Way) -> &'static str {
    match way {
        Way::Do | Way::Redo => "undo",
        Way::Undo => "redo",
    }
}
