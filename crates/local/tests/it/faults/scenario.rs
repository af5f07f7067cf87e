//! The changes under fault tests: every mutating operation, its undo, and its redo.

use serde_json::{Value, json};

use crate::support::LocalFixture;

#[derive(Clone, Copy)]
pub(crate) struct CallUnderFaultInjection {
    pub(crate) name: &'static str,
    prepare: fn(&LocalFixture) -> (&'static str, Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultTestDoUndoRedo {
    Do,
    Undo,
    Redo,
}

/// A large file exceeds the limit for content in the database.
const LARGE_FILE_BYTES: usize = 80 << 10;

fn text(letter: &str) -> String {
    letter.repeat(LARGE_FILE_BYTES)
}

fn write_file(fixture: &LocalFixture, path: &str, content: &str) -> Value {
    fixture.call_ok("write", json!({ "path": path, "content": content }))["version"].clone()
}

fn create_tree(fixture: &LocalFixture) {
    write_file(fixture, "d/one", "1");
    write_file(fixture, "d/sub/large", &text("l"));
    write_file(fixture, "d/sub/two", "2");
}

pub(crate) const SCENARIOS: &[CallUnderFaultInjection] = &[
    CallUnderFaultInjection { name: "create", prepare: |_| ("write", json!({ "path": "new", "content": "new" })) },
    CallUnderFaultInjection {
        name: "create_parents",
        prepare: |_| ("write", json!({ "path": "a/b/c", "content": "new" })),
    },
    CallUnderFaultInjection {
        name: "create_large",
        prepare: |_| ("write", json!({ "path": "a/new", "content": text("n") })),
    },
    CallUnderFaultInjection {
        name: "replace",
        prepare: |fixture| {
            let base = write_file(fixture, "f", "old");
            ("write", json!({ "path": "f", "content": "new", "base": base }))
        },
    },
    CallUnderFaultInjection {
        name: "replace_large",
        prepare: |fixture| {
            let base = write_file(fixture, "f", &text("o"));
            ("write", json!({ "path": "f", "content": text("n"), "base": base }))
        },
    },
    CallUnderFaultInjection {
        name: "append",
        prepare: |fixture| {
            write_file(fixture, "f", "old\n");
            ("append", json!({ "path": "f", "content": "new\n" }))
        },
    },
    CallUnderFaultInjection {
        name: "copy",
        prepare: |fixture| {
            write_file(fixture, "f", "old");
            ("copy", json!({ "from": "f", "to": "g/h" }))
        },
    },
    CallUnderFaultInjection {
        name: "copy_tree",
        prepare: |fixture| {
            create_tree(fixture);
            ("copy", json!({ "from": "d", "to": "e" }))
        },
    },
    CallUnderFaultInjection {
        name: "move",
        prepare: |fixture| {
            write_file(fixture, "f", "old");
            ("move", json!({ "from": "f", "to": "g/h" }))
        },
    },
    CallUnderFaultInjection {
        name: "move_over",
        prepare: |fixture| {
            write_file(fixture, "f", "one");
            write_file(fixture, "g", "two");
            ("move", json!({ "from": "f", "to": "g", "overwrite": true }))
        },
    },
    CallUnderFaultInjection {
        name: "move_over_large",
        prepare: |fixture| {
            write_file(fixture, "f", "one");
            write_file(fixture, "g", &text("g"));
            ("move", json!({ "from": "f", "to": "g", "overwrite": true }))
        },
    },
    CallUnderFaultInjection {
        name: "move_tree",
        prepare: |fixture| {
            create_tree(fixture);
            ("move", json!({ "from": "d", "to": "x/y" }))
        },
    },
    CallUnderFaultInjection {
        name: "remove",
        prepare: |fixture| {
            write_file(fixture, "f", "old");
            ("remove", json!({ "path": "f" }))
        },
    },
    CallUnderFaultInjection {
        name: "remove_tree",
        prepare: |fixture| {
            create_tree(fixture);
            ("remove", json!({ "path": "d", "recursive": true }))
        },
    },
    CallUnderFaultInjection {
        name: "restore",
        prepare: |fixture| {
            create_tree(fixture);
            let removed = fixture.call_ok("remove", json!({ "path": "d", "recursive": true }));
            ("restore", json!({ "trash": removed["trash"] }))
        },
    },
];

pub(crate) fn prepare_scenario(
    fixture: &LocalFixture,
    base: &CallUnderFaultInjection,
    direction: FaultTestDoUndoRedo,
) -> (&'static str, Value) {
    let (operation, arguments) = (base.prepare)(fixture);
    match direction {
        FaultTestDoUndoRedo::Do => (operation, arguments),
        FaultTestDoUndoRedo::Undo => {
            fixture.call_ok(operation, arguments);
            ("undo", json!({}))
        }
        FaultTestDoUndoRedo::Redo => {
            fixture.call_ok(operation, arguments);
            fixture.call_ok("undo", json!({}));
            ("redo", json!({}))
        }
    }
}

pub(crate) fn inverse_operation(direction: FaultTestDoUndoRedo) -> &'static str {
    match direction {
        FaultTestDoUndoRedo::Do | FaultTestDoUndoRedo::Redo => "undo",
        FaultTestDoUndoRedo::Undo => "redo",
    }
}
