//! A unified diff, read as a patch and applied, gives the other side.
#![no_main]

use libfuzzer_sys::fuzz_target;
use text::{
    patch::{self, Action, Grammar, Rules},
    unified::{Labels, unified},
};

fuzz_target!(|sides: (&str, &str)| {
    let (old, new) = sides;
    let written = unified(old, new, Labels { old: "a/f", new: "b/f" }, 3, usize::MAX);
    assert_eq!(written.text.is_empty(), old == new);
    if old == new {
        return;
    }
    let patch = patch::parse(&written.text, Grammar::TOLERANT).expect("our own diff can be read");
    assert_eq!(patch.sections.len(), 1, "{}", written.text);
    if let Action::Update { chunks, .. } = &patch.sections[0].action {
        // Where the same lines stand in several places a diff may be refused, but never goes to the wrong one.
        if let Ok(applied) = patch::apply(old, chunks, &Rules::tolerant("f")) {
            assert_eq!(applied.text, new, "{}", written.text);
        }
    }
});
